// Package contextengine is the client of contextengine, the gRPC service that decides what a language model sees.
//
//	client, err := contextengine.New("127.0.0.1:50051")
//	…
//	defer client.Close()
//	session := client.Session(&pb.SessionRef{AgentId: "support", SessionId: "case-1"})
//	context, err := session.Assemble(ctx, &pb.AssembleRequest{Ingest: []*pb.Message{contextengine.User("Where is my order?")}})
//	reply := callModel(context.Messages())
//	session.AfterTurn(ctx, &pb.AfterTurnRequest{Messages: []*pb.Message{reply}})
//
// How it behaves when the service is away, what it sends twice and how errors are typed is the same in every language; see
// clients/README.md in the repository.
package contextengine
