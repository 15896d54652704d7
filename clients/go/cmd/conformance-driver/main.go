// The driver of the Go client; see tests/conformance/protocol.md.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	contextengine "github.com/contextengine/contextengine/clients/go"
	pb "github.com/contextengine/contextengine/clients/go/contextenginev1"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

type asked struct {
	Op       string
	Target   string
	Settings struct {
		Timeouts          map[string]float64
		RetryFor          *float64 `json:"retry_for"`
		Token             string
		Insecure          bool
		Fallback          *bool
		Breaker           bool
		MaxQueuedMessages int    `json:"max_queued_messages"`
		MaxQueuedBytes    int    `json:"max_queued_bytes"`
		SpillFile         string `json:"spill_file"`
	}
	Session *struct {
		AgentID   string `json:"agent_id"`
		SessionID string `json:"session_id"`
	}
	RPC string

	Traceparent, Tracestate string

	Method   string
	Request  []byte
	Delta    *bool
	Fallback *bool
	Host     [][]byte `json:"host_messages"`
	Messages [][]byte
	Held     [][]byte
	Last     []byte
	Later    [][]byte
	UTF16    []uint16
	Format   string
	In       string
	Out      [][]byte

	ResumePosition string `json:"resume_position"`
	Count          int

	Hello    []byte
	Text     string
	Delay    float64
	Failures int64
}

type answer map[string]any

type driver struct {
	client  *contextengine.Client
	handles map[string]*contextengine.Session
	lending *lending
}

func main() {
	input := bufio.NewReader(os.Stdin)
	output := json.NewEncoder(os.Stdout)
	d := &driver{}
	for {
		line, err := input.ReadBytes('\n')
		if err != nil {
			return
		}
		var a asked
		if err = json.Unmarshal(line, &a); err == nil {
			var found answer
			if found, err = d.answer(context.Background(), a); err == nil {
				err = output.Encode(found)
			}
		}
		if err != nil {
			if err := output.Encode(told(err)); err != nil {
				return
			}
		}
	}
}

func told(err error) answer {
	var found *contextengine.Error
	if !errors.As(err, &found) {
		return answer{"defect": err.Error()}
	}
	violations := []answer{}
	for _, violation := range found.Violations {
		violations = append(violations, answer{"field": violation.Field, "description": violation.Description})
	}
	var retry any
	if found.RetryAfter != nil {
		retry = found.RetryAfter.Seconds()
	}
	metadata := found.Metadata
	if metadata == nil {
		metadata = map[string]string{}
	}
	return answer{"error": answer{
		"type": found.Kind().Name, "reason": found.Reason, "code": contextengine.CodeName(found.Code),
		"message": found.Message, "violations": violations, "metadata": metadata, "retry_after": retry,
	}}
}

func (d *driver) answer(ctx context.Context, a asked) (answer, error) {
	switch a.Op {
	case "connect":
		return answer{}, d.connect(a)
	case "call":
		return d.call(ctx, a)
	case "together":
		return d.together(ctx, a)
	case "traced":
		span, err := spanOf(a.Traceparent, a.Tracestate)
		if err != nil {
			return nil, err
		}
		return d.call(trace.ContextWithRemoteSpanContext(ctx, span), a)
	case "session":
		return d.session(ctx, a)
	case "assemble":
		request := &pb.AssembleRequest{}
		read(a.Request, request)
		assemble := d.handle(a).Assemble
		if a.Delta != nil && !*a.Delta {
			assemble = d.handle(a).AssembleWhole
		}
		options := a.options()
		if a.Host != nil {
			options = append(options, contextengine.HostMessages(decoded[pb.Message](a.Host)...))
		}
		context, err := assemble(ctx, request, options...)
		if err != nil {
			return nil, err
		}
		var degraded any
		if context.Degraded != nil {
			degraded = answer{"reason": context.Degraded.Reason, "unqueued": context.Degraded.Unqueued}
		}
		return answer{"items": encoded(context.Items), "response": written(context.Response), "degraded": degraded}, nil
	case "project_codex":
		request := &pb.AssembleRequest{}
		read(a.Request, request)
		return responded(d.handle(a).ProjectCodex(ctx, request))
	case "flush":
		if a.Session == nil {
			return answer{}, d.client.Flush(ctx)
		}
		return answer{}, d.handle(a).Flush(ctx)
	case "pending":
		pending := d.client.Pending()
		if a.Session != nil {
			pending = d.handle(a).Pending()
		}
		return answer{"pending": pending, "rejected": len(d.client.Rejected())}, nil
	case "import":
		header := &pb.ImportRequest_Header{Session: d.handle(a).Ref()}
		return responded(d.client.Import(ctx, header, slices.Values(decoded[pb.Message](a.Messages))))
	case "export":
		messages := []*pb.Message{}
		for row, err := range d.handle(a).Export(ctx, nil) {
			if err != nil {
				return nil, err
			}
			if row.GetMessage() != nil {
				messages = append(messages, row.GetMessage().Message)
			}
		}
		return answer{"messages": encoded(messages)}, nil
	case "watch":
		events := []*pb.WatchResponse{}
		for event, err := range d.handle(a).Watch(ctx, &pb.WatchRequest{ResumePosition: a.ResumePosition}) {
			if err != nil {
				return nil, err
			}
			if events = append(events, event); len(events) == a.Count {
				break
			}
		}
		return answer{"events": encoded(events)}, nil
	case "lend":
		d.lending = lend(ctx, d.client, a)
		return answer{}, nil
	case "lent":
		jobs, err := d.lending.end()
		return answer{"jobs": jobs}, err
	case "fallback":
		request := &pb.AssembleRequest{}
		read(a.Request, request)
		var last *pb.AssembleResponse
		if a.Last != nil {
			last = &pb.AssembleResponse{}
			read(a.Last, last)
		}
		response := contextengine.MakeUp(request, decoded[pb.Item](a.Held), last, decoded[pb.Message](a.Later))
		return answer{"response": written(response)}, nil
	case "text":
		_, err := d.client.ContextEngine.Ingest(ctx, &pb.IngestRequest{
			Session: &pb.SessionRef{AgentId: "text", SessionId: "text"}, Message: contextengine.User(textOf(a.UTF16)),
		})
		if err != nil && !errors.Is(err, contextengine.ErrInvalidField) {
			return nil, err
		}
		return answer{"refused": err != nil}, nil
	case "format":
		return format(a)
	case "id":
		return answer{"id": contextengine.NewID()}, nil
	}
	return nil, fmt.Errorf("unknown op %q", a.Op)
}

// spanOf is the span of a W3C context.
func spanOf(parent, state string) (trace.SpanContext, error) {
	var config trace.SpanContextConfig
	fields := strings.Split(parent, "-")
	var err error
	if config.TraceID, err = trace.TraceIDFromHex(fields[1]); err != nil {
		return trace.SpanContext{}, err
	}
	if config.SpanID, err = trace.SpanIDFromHex(fields[2]); err != nil {
		return trace.SpanContext{}, err
	}
	if fields[3] == "01" {
		config.TraceFlags = trace.FlagsSampled
	}
	config.TraceState, err = trace.ParseTraceState(state)
	return trace.NewSpanContext(config), err
}

func (d *driver) connect(a asked) error {
	if d.client != nil {
		d.client.Close()
	}
	s := a.Settings
	timeouts := map[string]time.Duration{}
	for name, seconds := range s.Timeouts {
		timeouts[name] = time.Duration(seconds * float64(time.Second))
	}
	options := []contextengine.Option{contextengine.WithTimeouts(timeouts), contextengine.WithToken(s.Token)}
	if s.RetryFor != nil {
		options = append(options, contextengine.WithRetryFor(time.Duration(*s.RetryFor*float64(time.Second))))
	}
	if s.Insecure {
		options = append(options, contextengine.WithInsecure())
	}
	if s.Fallback != nil && !*s.Fallback {
		options = append(options, contextengine.WithoutFallback())
	}
	if s.Breaker {
		options = append(options, contextengine.WithBreaker())
	}
	if s.MaxQueuedMessages > 0 {
		options = append(options, contextengine.WithQueueLimits(s.MaxQueuedMessages, s.MaxQueuedBytes))
	}
	if s.SpillFile != "" {
		options = append(options, contextengine.WithSpillFile(s.SpillFile))
	}
	var err error
	d.client, err = contextengine.New(a.Target, options...)
	d.handles = map[string]*contextengine.Session{}
	return err
}

func (d *driver) handle(a asked) *contextengine.Session {
	key := a.Session.AgentID + "/" + a.Session.SessionID
	if d.handles[key] == nil {
		d.handles[key] = d.client.Session(&pb.SessionRef{AgentId: a.Session.AgentID, SessionId: a.Session.SessionID})
	}
	return d.handles[key]
}

// call calls a unary rpc by its name.
func (d *driver) call(ctx context.Context, a asked) (answer, error) {
	service, method, _ := strings.Cut(a.RPC, ".")
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName("contextengine.v1." + a.RPC))
	if err != nil {
		return nil, err
	}
	descriptor := found.(protoreflect.MethodDescriptor)
	request, reply := create(descriptor.Input()), create(descriptor.Output())
	read(a.Request, request)
	if err := d.client.Conn().Invoke(ctx, "/contextengine.v1."+service+"/"+method, request, reply); err != nil {
		return nil, err
	}
	return answer{"response": written(reply)}, nil
}

func (d *driver) together(ctx context.Context, a asked) (answer, error) {
	answers := make([]answer, a.Count)
	var calls sync.WaitGroup
	for i := range answers {
		calls.Add(1)
		go func() {
			defer calls.Done()
			found, err := d.call(ctx, a)
			if err != nil {
				found = told(err)
			}
			answers[i] = found
		}()
	}
	calls.Wait()
	return answer{"answers": answers}, nil
}

// options are those of a call of a handle.
func (a asked) options() []contextengine.CallOption {
	switch {
	case a.Fallback == nil:
		return nil
	case *a.Fallback:
		return []contextengine.CallOption{contextengine.Bearing()}
	}
	return []contextengine.CallOption{contextengine.Failing()}
}

func (d *driver) session(ctx context.Context, a asked) (answer, error) {
	session := d.handle(a)
	switch a.Method {
	case "ingest":
		return borne(ctx, a, &pb.IngestRequest{}, session.Ingest)
	case "ingest_batch":
		return borne(ctx, a, &pb.IngestBatchRequest{}, session.IngestBatch)
	case "after_turn":
		return borne(ctx, a, &pb.AfterTurnRequest{}, session.AfterTurn)
	case "report_usage":
		return borne(ctx, a, &pb.ReportUsageRequest{}, session.ReportUsage)
	case "bootstrap":
		return through(ctx, a, &pb.BootstrapRequest{}, session.Bootstrap)
	case "compact":
		return through(ctx, a, &pb.CompactRequest{}, session.Compact)
	case "should_compact":
		return through(ctx, a, &pb.ShouldCompactRequest{}, session.ShouldCompact)
	case "commit_compaction":
		return through(ctx, a, &pb.CommitCompactionRequest{}, session.CommitCompaction)
	case "maintain":
		return through(ctx, a, &pb.MaintainRequest{}, session.Maintain)
	case "record_host_change":
		return through(ctx, a, &pb.RecordHostChangeRequest{}, session.RecordHostChange)
	case "update_model":
		return through(ctx, a, &pb.UpdateModelRequest{}, session.UpdateModel)
	case "status":
		return through(ctx, a, &pb.GetStatusRequest{}, session.Status)
	case "list_tools":
		return through(ctx, a, &pb.ListToolsRequest{}, session.ListTools)
	case "call_tool":
		return through(ctx, a, &pb.CallToolRequest{}, session.CallTool)
	case "prepare_subagent":
		return through(ctx, a, &pb.PrepareSubagentSpawnRequest{}, session.PrepareSubagent)
	case "rollback_subagent":
		request := &pb.RollbackSubagentSpawnRequest{}
		read(a.Request, request)
		return responded(session.RollbackSubagent(ctx, request.SpawnToken))
	case "end_as_subagent":
		return through(ctx, a, &pb.EndSubagentRequest{}, session.EndAsSubagent)
	case "reset":
		return through(ctx, a, &pb.ResetSessionRequest{}, session.Reset)
	case "end":
		return through(ctx, a, &pb.EndSessionRequest{}, session.End)
	case "delete":
		return through(ctx, a, &pb.DeleteRequest{}, session.Delete)
	case "dispose":
		return responded(session.Dispose(ctx))
	}
	return nil, fmt.Errorf("unknown method %q", a.Method)
}

// borne is through of a call that chooses what it does while the service is away.
func borne[Q, R proto.Message](
	ctx context.Context, a asked, request Q, call func(context.Context, Q, ...contextengine.CallOption) (R, error),
) (answer, error) {
	read(a.Request, request)
	return responded(call(ctx, request, a.options()...))
}

func through[Q, R proto.Message](ctx context.Context, a asked, request Q, call func(context.Context, Q) (R, error)) (answer, error) {
	read(a.Request, request)
	return responded(call(ctx, request))
}
