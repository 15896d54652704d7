package contextengine

import (
	"context"

	pb "github.com/contextengine/contextengine/clients/go/contextenginev1"
)

// Bootstrap introduces a host and the session to each other. Optional.
func (s *Session) Bootstrap(ctx context.Context, request *pb.BootstrapRequest) (*pb.BootstrapResponse, error) {
	request = shallow(orNew(request))
	request.Session = s.ref
	return s.client.ContextEngine.Bootstrap(ctx, request)
}

// ShouldCompact answers whether a compaction is due.
func (s *Session) ShouldCompact(
	ctx context.Context, request *pb.ShouldCompactRequest,
) (*pb.ShouldCompactResponse, error) {
	request = shallow(orNew(request))
	request.Session = s.ref
	return s.client.ContextEngine.ShouldCompact(ctx, request)
}

// CommitCompaction takes or refuses what a compaction with `propose_only` proposed.
func (s *Session) CommitCompaction(
	ctx context.Context, request *pb.CommitCompactionRequest,
) (*pb.CommitCompactionResponse, error) {
	request = shallow(orNew(request))
	request.Session = s.ref
	return s.client.ContextEngine.CommitCompaction(ctx, request)
}

// Maintain answers the transcript rewrites that the engine would like; with `lend`, jobs for a model that the host can lend
// only now, whose results go into `completions` of the next call.
func (s *Session) Maintain(ctx context.Context, request *pb.MaintainRequest) (*pb.MaintainResponse, error) {
	request = shallow(orNew(request))
	request.Session = s.ref
	return s.client.ContextEngine.Maintain(ctx, request)
}

// UpdateModel sets the session's model, its window and its factor.
func (s *Session) UpdateModel(ctx context.Context, request *pb.UpdateModelRequest) (*pb.UpdateModelResponse, error) {
	request = shallow(orNew(request))
	request.Session = s.ref
	return s.client.ContextEngine.UpdateModel(ctx, request)
}

// Status answers how the session is: counts, tokens, engine, jobs, usage.
func (s *Session) Status(ctx context.Context, request *pb.GetStatusRequest) (*pb.GetStatusResponse, error) {
	request = shallow(orNew(request))
	request.Session = s.ref
	return s.client.ContextEngine.GetStatus(ctx, request)
}

// ListTools answers the tools that the session's engine offers to the model.
func (s *Session) ListTools(ctx context.Context, request *pb.ListToolsRequest) (*pb.ListToolsResponse, error) {
	request = shallow(orNew(request))
	request.Session = s.ref
	return s.client.ContextEngine.ListTools(ctx, request)
}

// CallTool runs such a tool. Bad arguments and unknown tools answer a JSON error. Sent once.
func (s *Session) CallTool(ctx context.Context, request *pb.CallToolRequest) (*pb.CallToolResponse, error) {
	request = shallow(orNew(request))
	request.Session = s.ref
	return s.client.ContextEngine.CallTool(ctx, request)
}

// PrepareSubagent prepares the context of a child of this session before it starts. What waits is sent first: a fork is to
// show it.
func (s *Session) PrepareSubagent(
	ctx context.Context, request *pb.PrepareSubagentSpawnRequest,
) (*pb.PrepareSubagentSpawnResponse, error) {
	ctx, cancel := s.client.deadline(ctx, "ContextEngine.PrepareSubagentSpawn")
	defer cancel()
	request = shallow(orNew(request))
	request.Parent = s.ref
	return behind(ctx, s, func() (*pb.PrepareSubagentSpawnResponse, error) {
		return s.client.ContextEngine.PrepareSubagentSpawn(ctx, request)
	})
}

// RollbackSubagent takes a preparation of this session back. Safe twice and after expiry.
func (s *Session) RollbackSubagent(
	ctx context.Context, spawnToken string,
) (*pb.RollbackSubagentSpawnResponse, error) {
	request := &pb.RollbackSubagentSpawnRequest{SpawnToken: spawnToken, Parent: s.ref}
	return s.client.ContextEngine.RollbackSubagentSpawn(ctx, request)
}

// EndAsSubagent says that this session, a child, ended. An unknown child is no error.
func (s *Session) EndAsSubagent(ctx context.Context, request *pb.EndSubagentRequest) (*pb.EndSubagentResponse, error) {
	request = shallow(orNew(request))
	request.Child = s.ref
	return s.client.ContextEngine.EndSubagent(ctx, request)
}

// Dispose frees what the server holds in memory for the session.
func (s *Session) Dispose(ctx context.Context) (*pb.DisposeSessionResponse, error) {
	return s.client.ContextEngine.DisposeSession(ctx, &pb.DisposeSessionRequest{Session: s.ref})
}
