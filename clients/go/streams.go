package contextengine

import (
	"context"
	"errors"
	"io"
	"iter"

	pb "github.com/contextengine/contextengine/clients/go/contextenginev1"
	"google.golang.org/grpc"
)

// Import stores a whole session, all or none. Messages keep the ids they have; the very same again is no error.
func (c *Client) Import(
	ctx context.Context, header *pb.ImportRequest_Header, messages iter.Seq[*pb.Message],
) (*pb.ImportResponse, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.Sessions.Import(ctx)
	if err != nil {
		return nil, err
	}
	err = stream.Send(&pb.ImportRequest{Kind: &pb.ImportRequest_Header_{Header: header}})
	for message := range messages {
		if err != nil {
			break
		}
		err = stream.Send(&pb.ImportRequest{Kind: &pb.ImportRequest_Message{Message: message}})
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	// io.EOF: the server has answered already; its answer says why.
	return stream.CloseAndRecv()
}

// Export streams a session's rows as they are stored: the session, its messages in order, its summaries.
func (s *Session) Export(ctx context.Context, request *pb.ExportRequest) iter.Seq2[*pb.ExportResponse, error] {
	request = shallow(orNew(request))
	request.Session = s.ref
	return replies(ctx, func(ctx context.Context) (grpc.ServerStreamingClient[pb.ExportResponse], error) {
		return s.client.Sessions.Export(ctx, request)
	})
}

// Watch streams what happens to the session, from now or from a resume position.
func (s *Session) Watch(ctx context.Context, request *pb.WatchRequest) iter.Seq2[*pb.WatchResponse, error] {
	request = shallow(orNew(request))
	request.AgentId, request.SessionId = s.ref.GetAgentId(), s.ref.GetSessionId()
	return s.client.Watch(ctx, request)
}

// Watch streams what happens to sessions, from now or from a resume position.
func (c *Client) Watch(ctx context.Context, request *pb.WatchRequest) iter.Seq2[*pb.WatchResponse, error] {
	return replies(ctx, func(ctx context.Context) (grpc.ServerStreamingClient[pb.WatchResponse], error) {
		return c.Sessions.Watch(ctx, request)
	})
}

// replies iterates over a stream, which ends when the iteration is left.
func replies[R any](
	ctx context.Context, open func(context.Context) (grpc.ServerStreamingClient[R], error),
) iter.Seq2[*R, error] {
	return func(yield func(*R, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := open(ctx)
		for err == nil {
			var reply *R
			if reply, err = stream.Recv(); err == nil && !yield(reply, nil) {
				return
			}
		}
		if !errors.Is(err, io.EOF) {
			yield(nil, err)
		}
	}
}
