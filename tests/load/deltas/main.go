// Command deltas is ghz for the one-round-trip step. A template of ghz sees nothing of replies, but a step names the list that the
// reply before it made, so that the answer is the delta. This program runs a profile with ghz's own runner and puts the
// context_hash of a session's last reply into its next request; all else is ghz.
//
//	deltas --config profiles/step.json [--duration 5s] [--concurrency 16] ... [HOST:PORT]
//
// Flags mean what they mean to ghz, and the report is ghz's. A worker of ghz has one call in flight, and the profile gives each
// worker a session of its own.
package main

import (
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"sync"

	"github.com/bojand/ghz/printer"
	"github.com/bojand/ghz/runner"
	"github.com/jhump/protoreflect/desc"
	"github.com/jhump/protoreflect/dynamic"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
)

// lists remembers, for each session, the hash of the list that its last reply made. As a codec it reads every reply on its way: the
// reply does not name its session, but the ids of the messages that it stored, and these are the call's own.
type lists struct {
	encoding.Codec
	guard   sync.Mutex
	session map[string]string // by the id of the first message of a call in flight
	hash    map[string][]byte // by session
	replies uint
	deltas  uint
}

// Unmarshal decodes a reply as ghz does, and notes its hash.
func (l *lists) Unmarshal(data []byte, into any) error {
	err := l.Codec.Unmarshal(data, into)
	reply, ours := into.(*dynamic.Message)
	if err != nil || !ours { // what is not dynamic is ghz's own talk with the server's reflection
		return err
	}
	stored := reply.GetFieldByName("stored").([]any)
	if len(stored) == 0 {
		return fmt.Errorf("a step stored nothing")
	}
	id := stored[0].(*dynamic.Message).GetFieldByName("id").(string)
	l.guard.Lock()
	defer l.guard.Unlock()
	l.replies++
	if cache := reply.GetFieldByName("cache").(*dynamic.Message); cache.GetFieldByName("delta").(bool) {
		l.deltas++
	}
	if session, known := l.session[id]; known {
		delete(l.session, id)
		l.hash[session] = reply.GetFieldByName("context_hash").([]byte)
	}
	return nil
}

// request renders the profile's template and names the list that its session holds.
func (l *lists) request(method *desc.MethodDescriptor, call *runner.CallData, template string) ([]byte, error) {
	body, err := call.ExecuteData(template)
	if err != nil {
		return nil, err
	}
	request := dynamic.NewMessage(method.GetInputType())
	if err := request.UnmarshalJSON(body); err != nil {
		return nil, err
	}
	ingest := request.GetFieldByName("ingest").([]any)
	if len(ingest) == 0 {
		return nil, fmt.Errorf("the profile stores nothing: a step has messages in `ingest`")
	}
	id := ingest[0].(*dynamic.Message).GetFieldByName("id").(string)
	session := request.GetFieldByName("session").(*dynamic.Message).GetFieldByName("session_id").(string)
	l.guard.Lock()
	defer l.guard.Unlock()
	l.session[id] = session
	if held := l.hash[session]; held != nil {
		request.SetFieldByName("known_context_hash", held)
	}
	encoded, err := request.Marshal()
	// ghz takes binary data for messages that begin with their lengths, if they can be read so.
	return append(binary.AppendUvarint(nil, uint64(len(encoded))), encoded...), err
}

func main() {
	log.SetFlags(0)
	config := flag.String("config", "", "the profile, a configuration file of ghz")
	protoset := flag.String("protoset", "", "descriptors; without, the server is asked by reflection")
	duration := flag.Duration("duration", 0, "how long, in place of the profile's")
	concurrency := flag.Uint("concurrency", 0, "workers, in place of the profile's")
	connections := flag.Uint("connections", 0, "connections, in place of the profile's")
	rps := flag.Uint("rps", 0, "calls a second at most, in place of the profile's")
	format := flag.String("format", "summary", "the report's format, as ghz names them")
	output := flag.String("output", "", "the file of the report; without, it is printed")
	flag.Parse()

	var profile runner.Config
	if err := runner.LoadConfig(*config, &profile); err != nil {
		log.Fatal(err)
	}
	if flag.NArg() > 0 {
		profile.Host = flag.Arg(0)
	}
	if *protoset != "" {
		profile.Protoset = *protoset
	}
	if *duration > 0 {
		profile.Z = runner.Duration(*duration)
	}
	if *concurrency > 0 {
		profile.C = *concurrency
	}
	if *connections > 0 {
		profile.Connections = *connections
	}
	if *rps > 0 {
		profile.RPS = *rps
	}
	report, err := run(&profile)
	if err != nil {
		log.Fatal(err)
	}
	file := os.Stdout
	if *output != "" {
		if file, err = os.Create(*output); err != nil {
			log.Fatal(err)
		}
	}
	if err := (&printer.ReportPrinter{Report: report, Out: file}).Print(*format); err != nil {
		log.Fatal(err)
	}
	if err := file.Close(); err != nil {
		log.Fatal(err)
	}
}

// run runs a profile. Replies that are no deltas are an error, but for the first of each worker.
func run(profile *runner.Config) (*runner.Report, error) {
	template, err := json.Marshal(profile.Data)
	if err != nil {
		return nil, err
	}
	held := &lists{
		Codec:   encoding.GetCodec(proto.Name),
		session: map[string]string{},
		hash:    map[string][]byte{},
	}
	report, err := runner.Run(profile.Call, profile.Host,
		runner.WithConfig(profile),
		runner.WithBinaryDataFunc(func(method *desc.MethodDescriptor, call *runner.CallData) []byte {
			body, err := held.request(method, call, string(template))
			if err != nil {
				log.Fatalf("%s: %v", profile.Call, err) // ghz has no way to hear of it
			}
			return body
		}),
		runner.WithDefaultCallOptions([]grpc.CallOption{
			grpc.ForceCodec(held), grpc.MaxCallRecvMsgSize(1 << 30), grpc.MaxCallSendMsgSize(1 << 30),
		}),
	)
	// The first reply of each worker is the whole list.
	if err == nil && held.replies > held.deltas+profile.C {
		err = fmt.Errorf("of %d replies only %d were deltas", held.replies, held.deltas)
	}
	return report, err
}
