package contextengine

import (
	"context"
	"errors"
	"strings"
	"sync"

	pb "github.com/contextengine/contextengine/clients/go/contextenginev1"
	"google.golang.org/protobuf/proto"
)

// ErrDeltaMismatch says that a delta does not fit the list that is held. The next call gets the whole list.
var ErrDeltaMismatch = errors.New("contextengine: the reply does not fit the list that is held")

// Degraded says why the client made an assembly by itself.
type Degraded struct {
	// Reason is the error's reason, or the name of its gRPC code where it has none.
	Reason string
	// Err is the error.
	Err *Error
	// Unqueued is how many messages of `ingest` the full queue did not take: nobody stores them but the caller.
	Unqueued int
}

// Assembly is the context for one model call, whole. Items are shared with later assemblies: read them, do not change them.
type Assembly struct {
	// Items is the whole list, in order.
	Items []*pb.Item
	// Response is the reply as it came; its items may be only what follows the reused ones.
	Response *pb.AssembleResponse
	// Degraded says why the client made it by itself. Nil: the service did.
	Degraded *Degraded
}

// Messages is what to send to the model, in order.
func (a *Assembly) Messages() []*pb.Message {
	messages := make([]*pb.Message, len(a.Items))
	for i, item := range a.Items {
		messages[i] = item.Message
	}
	return messages
}

// Fits says whether the list is within its budget and as asked.
func (a *Assembly) Fits() bool { return a.Response.Outcome == pb.AssembleResponse_OUTCOME_FITS }

// Session is a handle on one session of an agent. It remembers its last assembly, so that replies carry only what is new.
//
// While the service is away, Assemble answers a context made by the client, marked Degraded; what is written waits and is
// sent before the next call; Ingest, IngestBatch, AfterTurn and ReportUsage then answer an empty reply. Each of these calls may
// choose for itself, by Bearing and Failing. Requests need no session: the handle sets it, on a copy.
type Session struct {
	client *Client
	ref    *pb.SessionRef

	mu    sync.Mutex
	held  *Assembly     // what the service knows that is held
	last  *Assembly     // the last good assembly, for contexts made without the service
	later []*pb.Message // what was handed over since
}

// Ref names the session in every call.
func (s *Session) Ref() *pb.SessionRef { return s.ref }

// Pending tells how many messages of the session wait for the service to come back.
func (s *Session) Pending() int { return s.client.queue.count(s.ref) }

// Flush sends what waits.
func (s *Session) Flush(ctx context.Context) error { return s.client.flush(ctx, s.ref) }

// Assemble answers the whole context for one model call. It stores `ingest` first.
func (s *Session) Assemble(
	ctx context.Context, request *pb.AssembleRequest, options ...CallOption,
) (*Assembly, error) {
	return s.assemble(ctx, request, true, bearingOf(options))
}

// AssembleWhole is Assemble that asks for the whole list again.
func (s *Session) AssembleWhole(
	ctx context.Context, request *pb.AssembleRequest, options ...CallOption,
) (*Assembly, error) {
	return s.assemble(ctx, request, false, bearingOf(options))
}

func (s *Session) assemble(
	ctx context.Context, request *pb.AssembleRequest, delta bool, how bearing,
) (*Assembly, error) {
	ctx, cancel := s.client.deadline(ctx, "ContextEngine.Assemble")
	defer cancel()
	request = withIDs(orNew(request)).(*pb.AssembleRequest)
	request.Session = s.ref
	s.mu.Lock()
	held := s.held
	s.mu.Unlock()
	if !delta || held == nil {
		held = &Assembly{Response: &pb.AssembleResponse{}}
	} else {
		request.KnownContextHash = held.Response.ContextHash
		request.KnownEpoch = held.Response.GetContextProjection().GetEpoch()
	}
	reply, err := behind(ctx, s, func() (*pb.AssembleResponse, error) { return s.client.ContextEngine.Assemble(ctx, request) })
	if err != nil {
		return s.bearAssemble(request, err, how)
	}
	reused, total := int(reply.GetCache().GetReusedCount()), int(reply.GetCache().GetTotalCount())
	s.mu.Lock()
	defer s.mu.Unlock()
	if reused < 0 || reused > len(held.Items) || reused+len(reply.Items) != total {
		s.held = nil
		return nil, ErrDeltaMismatch
	}
	items := append(held.Items[:reused:reused], reply.Items...)
	s.held = &Assembly{Items: items, Response: reply}
	s.last, s.later = s.held, nil
	return s.held, nil
}

// ProjectCodex assembles and projects for Codex in one call. Give the turn's prompt, and in `projection` the binding of the
// last projection with the native thread in it; its target need not be set. Store the binding of the answer with the thread.
func (s *Session) ProjectCodex(ctx context.Context, request *pb.AssembleRequest) (*pb.ProjectResponse, error) {
	request = shallow(orNew(request))
	options := shallow(orNew(request.Projection))
	options.Target = pb.ProjectionTarget_PROJECTION_TARGET_CODEX
	request.Projection = options
	assembly, err := s.Assemble(ctx, request)
	if err != nil || assembly.Degraded == nil {
		return assembly.projection(), err
	}
	action := pb.ProjectionAction_PROJECTION_ACTION_START
	if options.GetBinding().GetThreadId() != "" {
		action = pb.ProjectionAction_PROJECTION_ACTION_RESUME
	}
	var texts []string
	for _, part := range request.Prompt {
		if text := part.GetText(); text != nil {
			texts = append(texts, text.Text)
		}
	}
	return &pb.ProjectResponse{
		Target: options.Target, Renderer: options.Renderer, Instructions: options.BaseInstructions,
		Prompt: strings.Join(texts, "\n"), Action: action, Binding: options.Binding,
		Warnings: []string{
			"degraded: " + assembly.Degraded.Reason + ", the context of the session is not in this projection",
		},
	}, nil
}

func (a *Assembly) projection() *pb.ProjectResponse {
	if a == nil {
		return nil
	}
	return a.Response.Projection
}

// Ingest stores one message durably. The same id with other content is ErrMessageConflict.
func (s *Session) Ingest(
	ctx context.Context, request *pb.IngestRequest, options ...CallOption,
) (*pb.IngestResponse, error) {
	request = shallow(orNew(request))
	request.Session = s.ref
	request = withIDs(request).(*pb.IngestRequest)
	entry := &pb.AfterTurnRequest{Session: s.ref, RequestId: request.RequestId}
	if request.Message != nil {
		entry.Messages = []*pb.Message{request.Message}
	}
	return write(ctx, s, bearingOf(options), "ContextEngine.Ingest", entry, func(ctx context.Context) (*pb.IngestResponse, error) {
		return s.client.ContextEngine.Ingest(ctx, request)
	})
}

// IngestBatch stores messages durably, all or none.
func (s *Session) IngestBatch(
	ctx context.Context, request *pb.IngestBatchRequest, options ...CallOption,
) (*pb.IngestBatchResponse, error) {
	request = withIDs(orNew(request)).(*pb.IngestBatchRequest)
	request.Session = s.ref
	entry := &pb.AfterTurnRequest{Session: s.ref, Messages: request.Messages, RequestId: request.RequestId}
	return write(ctx, s, bearingOf(options), "ContextEngine.IngestBatch", entry, func(ctx context.Context) (*pb.IngestBatchResponse, error) {
		return s.client.ContextEngine.IngestBatch(ctx, request)
	})
}

// AfterTurn says that a turn is over and hands over what it added. Conflicts are listed and stop nothing.
func (s *Session) AfterTurn(
	ctx context.Context, request *pb.AfterTurnRequest, options ...CallOption,
) (*pb.AfterTurnResponse, error) {
	request = withIDs(orNew(request)).(*pb.AfterTurnRequest)
	request.Session = s.ref
	return write(ctx, s, bearingOf(options), "ContextEngine.AfterTurn", request, func(ctx context.Context) (*pb.AfterTurnResponse, error) {
		return s.client.ContextEngine.AfterTurn(ctx, request)
	})
}

// ReportUsage says what the provider billed for an assembly, or that it refused one for its length.
func (s *Session) ReportUsage(
	ctx context.Context, request *pb.ReportUsageRequest, options ...CallOption,
) (*pb.ReportUsageResponse, error) {
	ctx, cancel := s.client.deadline(ctx, "ContextEngine.ReportUsage")
	defer cancel()
	request = shallow(orNew(request))
	request.Session = s.ref
	reply, err := behind(ctx, s, func() (*pb.ReportUsageResponse, error) {
		return s.client.ContextEngine.ReportUsage(ctx, request)
	})
	if err != nil && s.bears(err, bearingOf(options)) != nil {
		return &pb.ReportUsageResponse{}, nil
	}
	return reply, err
}

// Compact compacts the stored view, or proposes to.
func (s *Session) Compact(ctx context.Context, request *pb.CompactRequest) (*pb.CompactResponse, error) {
	ctx, cancel := s.client.deadline(ctx, "ContextEngine.Compact")
	defer cancel()
	request = shallow(orNew(request))
	request.Session = s.ref
	return behind(ctx, s, func() (*pb.CompactResponse, error) { return s.client.ContextEngine.Compact(ctx, request) })
}

// RecordHostChange says what the harness did to its own transcript.
func (s *Session) RecordHostChange(
	ctx context.Context, request *pb.RecordHostChangeRequest,
) (*pb.RecordHostChangeResponse, error) {
	ctx, cancel := s.client.deadline(ctx, "ContextEngine.RecordHostChange")
	defer cancel()
	request = shallow(orNew(request))
	request.Session = s.ref
	reply, err := behind(ctx, s, func() (*pb.RecordHostChangeResponse, error) {
		return s.client.ContextEngine.RecordHostChange(ctx, request)
	})
	s.forget(err)
	return reply, err
}

// Reset empties the session's view. Rows stay.
func (s *Session) Reset(ctx context.Context, request *pb.ResetSessionRequest) (*pb.ResetSessionResponse, error) {
	ctx, cancel := s.client.deadline(ctx, "ContextEngine.ResetSession")
	defer cancel()
	request = shallow(orNew(request))
	request.Session = s.ref
	reply, err := behind(ctx, s, func() (*pb.ResetSessionResponse, error) {
		return s.client.ContextEngine.ResetSession(ctx, request)
	})
	s.forget(err)
	return reply, err
}

// End ends the conversation for now. A later write opens it again.
func (s *Session) End(ctx context.Context, request *pb.EndSessionRequest) (*pb.EndSessionResponse, error) {
	ctx, cancel := s.client.deadline(ctx, "ContextEngine.EndSession")
	defer cancel()
	request = shallow(orNew(request))
	request.Session = s.ref
	return behind(ctx, s, func() (*pb.EndSessionResponse, error) { return s.client.ContextEngine.EndSession(ctx, request) })
}

// Delete erases the session and everything derived from it, what waits to be sent included. This cannot be undone.
func (s *Session) Delete(ctx context.Context, request *pb.DeleteRequest) (*pb.DeleteResponse, error) {
	ctx, cancel := s.client.deadline(ctx, "Sessions.Delete")
	defer cancel()
	request = shallow(orNew(request))
	request.Session = s.ref
	reply, err := behind(ctx, s, func() (*pb.DeleteResponse, error) { return s.client.Sessions.Delete(ctx, request) })
	s.forget(err)
	return reply, err
}

// forget drops what the session was, after a change that succeeded.
func (s *Session) forget(err error) {
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.last, s.later = nil, nil
	}
}

// bears is the error where the handle bears it. Nil: it must be raised.
func (s *Session) bears(err error, how bearing) *Error {
	wanted := s.client.queue != nil
	if how.fallback != nil {
		wanted = *how.fallback
	}
	if !wanted {
		return nil
	}
	return borne(err)
}

// bearAssemble is the context without the service. It answers the error where that is not borne.
func (s *Session) bearAssemble(request *pb.AssembleRequest, err error, how bearing) (*Assembly, error) {
	cause := s.bears(err, how)
	if cause == nil {
		return nil, err
	}
	degraded := &Degraded{Reason: cause.Reason, Err: cause}
	if degraded.Reason == "" {
		degraded.Reason = CodeName(cause.Code)
	}
	if s.client.queue == nil {
		degraded.Unqueued = len(request.Ingest)
	} else if len(request.Ingest) > 0 {
		entry := &pb.AfterTurnRequest{Session: s.ref, Messages: request.Ingest, RequestId: request.RequestId}
		setID(&entry.RequestId)
		if err := s.client.queue.add(entry); errors.Is(err, ErrQueueFull) {
			degraded.Unqueued = len(request.Ingest)
		} else if err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var held []*pb.Item
	var last *pb.AssembleResponse
	if s.last != nil {
		held, last = s.last.Items, s.last.Response
	}
	shown := request
	if how.given {
		// What is ingested stands in the host's list already.
		shown = shallow(request)
		shown.Ingest, shown.Live = nil, &pb.LiveList{Messages: how.list}
	}
	response := MakeUp(shown, held, last, s.later)
	s.handed(request.Ingest)
	return &Assembly{Items: response.Items, Response: response, Degraded: degraded}, nil
}

// handed keeps what was handed over since the last good assembly. The lock is held.
func (s *Session) handed(messages []*pb.Message) {
	s.later = append(s.later, messages...)
	if len(s.later) > maxQueuedMessages {
		s.later = s.later[len(s.later)-maxQueuedMessages:]
	}
}

// write writes messages, or queues the entry that stands for them.
func write[R any, P interface {
	*R
	proto.Message
}](
	ctx context.Context, s *Session, how bearing, name string, entry *pb.AfterTurnRequest,
	call func(context.Context) (P, error),
) (P, error) {
	ctx, cancel := s.client.deadline(ctx, name)
	defer cancel()
	reply, err := behind(ctx, s, func() (P, error) { return call(ctx) })
	if err != nil {
		if s.bears(err, how) == nil || s.client.queue == nil {
			return nil, err
		}
		setID(&entry.RequestId)
		if err := s.client.queue.add(entry); err != nil {
			return nil, err
		}
		reply = new(R)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handed(entry.Messages[min(int(max(entry.GetPrePromptMessageCount(), 0)), len(entry.Messages)):])
	return reply, nil
}

// behind calls after what waits was sent.
func behind[P any](ctx context.Context, s *Session, call func() (P, error)) (P, error) {
	if err := s.client.flush(ctx, s.ref); err != nil {
		var none P
		return none, err
	}
	return call()
}

// orNew is the message, or an empty one where there is none.
func orNew[T any, M interface {
	*T
	proto.Message
}](message M) M {
	if message == nil {
		return new(T)
	}
	return message
}
