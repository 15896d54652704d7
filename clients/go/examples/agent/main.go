// An agent's loop against a model that is made up: it calls one tool, then answers.
//
//	go run ./agent [ADDRESS [SESSION [QUESTION ...]]]
//
// Without a session it begins one; without questions it asks two of its own. Where OTEL_EXPORTER_OTLP_ENDPOINT
// is set, each turn is a trace that goes there.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	contextengine "github.com/contextengine/contextengine/clients/go"
	pb "github.com/contextengine/contextengine/clients/go/contextenginev1"
)

func main() {
	target, sessionID := contextengine.DefaultTarget, contextengine.NewID()
	questions := []string{"Where is order 4711?", "And order 4712?"}
	if len(os.Args) > 1 {
		target = os.Args[1]
	}
	if len(os.Args) > 2 {
		sessionID = os.Args[2]
	}
	if len(os.Args) > 3 {
		questions = os.Args[3:]
	}
	ctx := context.Background()
	stop, err := startTracing(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer stop(ctx)
	client, err := contextengine.New(target)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	session := client.Session(&pb.SessionRef{AgentId: "example", SessionId: sessionID})
	for _, question := range questions {
		err := traced(ctx, "invoke_agent example", func(ctx context.Context) error {
			return turn(ctx, session, question)
		})
		if err != nil {
			log.Fatal(err)
		}
	}
}

func turn(ctx context.Context, session *contextengine.Session, question string) error {
	ingest := []*pb.Message{contextengine.User(question)}
	for {
		var assembly *contextengine.Assembly
		err := tracedCall(ctx, "Assemble", func(ctx context.Context) (err error) {
			assembly, err = session.Assemble(ctx, &pb.AssembleRequest{Ingest: ingest})
			return err
		})
		if err != nil {
			return err
		}
		if assembly.Degraded != nil {
			fmt.Println("the service is away:", assembly.Degraded.Reason)
		}
		reply, calls := model(assembly.Messages())
		if len(calls) == 0 {
			fmt.Println(contextengine.TextOf(reply))
			return tracedCall(ctx, "AfterTurn", func(ctx context.Context) error {
				_, err := session.AfterTurn(ctx, &pb.AfterTurnRequest{Messages: []*pb.Message{reply}})
				return err
			})
		}
		ingest = []*pb.Message{reply}
		for _, call := range calls {
			ingest = append(ingest, contextengine.ToolResult(call.CallId, "in Utrecht, due tomorrow"))
		}
	}
}

// model stands in for a provider: it asks for the tool once a question, then answers with what the tool said.
func model(messages []*pb.Message) (*pb.Message, []*pb.ToolCallPart) {
	last := messages[len(messages)-1]
	if last.Role == pb.Role_ROLE_TOOL {
		return contextengine.Assistant("It is " + contextengine.TextOf(last) + "."), nil
	}
	order := strings.Trim(contextengine.TextOf(last)[strings.LastIndex(contextengine.TextOf(last), " "):], " ?")
	call := contextengine.ToolCall("call-"+order, "find_order", []byte(`{"order": "`+order+`"}`))
	return contextengine.Assistant("", call), []*pb.ToolCallPart{call}
}
