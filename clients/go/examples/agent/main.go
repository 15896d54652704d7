// An agent's loop against a model that is made up: it calls one tool, then answers.
//
//	go run ./examples/agent 127.0.0.1:50051
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
	target := contextengine.DefaultTarget
	if len(os.Args) > 1 {
		target = os.Args[1]
	}
	client, err := contextengine.New(target)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	session := client.Session(&pb.SessionRef{AgentId: "example", SessionId: contextengine.NewID()})
	for _, question := range []string{"Where is order 4711?", "And order 4712?"} {
		if err := turn(context.Background(), session, question); err != nil {
			log.Fatal(err)
		}
	}
}

func turn(ctx context.Context, session *contextengine.Session, question string) error {
	ingest := []*pb.Message{contextengine.User(question)}
	for {
		assembly, err := session.Assemble(ctx, &pb.AssembleRequest{Ingest: ingest})
		if err != nil {
			return err
		}
		if assembly.Degraded != nil {
			fmt.Println("the service is away:", assembly.Degraded.Reason)
		}
		reply, calls := model(assembly.Messages())
		if len(calls) == 0 {
			fmt.Println(contextengine.TextOf(reply))
			_, err = session.AfterTurn(ctx, &pb.AfterTurnRequest{Messages: []*pb.Message{reply}})
			return err
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
