package contextengine

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	pb "github.com/contextengine/contextengine/clients/go/contextenginev1"
	"google.golang.org/grpc"
)

const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
	// A lease is extended after a third of its time, within these bounds: the clocks of two machines differ.
	keepOften, keepSeldom = time.Second, 20 * time.Second
)

// Lend lends a model to the server until the context ends, and answers nil then. Each job is given to complete, in a goroutine
// of its own; its context ends when nobody wants the job any more. It answers a completion that lacks no more than its ids. Its
// error is told to the server as a failure that may pass.
//
// A stream that breaks is opened anew, and answers that were not received go out again. An error that no new stream would mend
// is answered.
func (c *Client) Lend(
	ctx context.Context, hello *pb.AttachRequest_Hello,
	complete func(context.Context, *pb.AttachResponse_Job) (*pb.AttachRequest_Completion, error),
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := &lending{
		hello:    &pb.AttachRequest{Kind: &pb.AttachRequest_Hello_{Hello: hello}},
		complete: complete,
		answers:  map[string]*pb.AttachRequest{},
		jobs:     map[string]context.CancelFunc{},
	}
	for pause := firstPause; ; {
		welcomed, err := l.serve(ctx, c.Runtime)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && borne(err) == nil:
			return err
		case welcomed:
			pause = firstPause
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(3*pause, longestPause)
	}
}

type lending struct {
	hello    *pb.AttachRequest
	complete func(context.Context, *pb.AttachResponse_Job) (*pb.AttachRequest_Completion, error)

	mu      sync.Mutex
	stream  grpc.BidiStreamingClient[pb.AttachRequest, pb.AttachResponse]
	answers map[string]*pb.AttachRequest
	jobs    map[string]context.CancelFunc
}

// serve works on one stream to its end, and tells whether it was welcomed.
func (l *lending) serve(ctx context.Context, runtime pb.RuntimeClient) (welcomed bool, err error) {
	onStream, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := runtime.Attach(onStream)
	if err != nil {
		return false, err
	}
	l.mu.Lock()
	l.stream = stream
	l.say(l.hello)
	for _, answer := range l.answers {
		l.say(answer)
	}
	l.mu.Unlock()
	for {
		reply, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return welcomed, nil
		}
		if err != nil {
			return welcomed, err
		}
		welcomed = welcomed || reply.GetWelcome() != nil
		l.hear(ctx, reply)
	}
}

// say sends on the stream there is, under the lock: a stream takes one message at a time. An error shows in Recv too.
func (l *lending) say(request *pb.AttachRequest) { _ = l.stream.Send(request) }

func (l *lending) hear(ctx context.Context, reply *pb.AttachResponse) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch kind := reply.Kind.(type) {
	case *pb.AttachResponse_Job_:
		working, cancel := context.WithCancel(ctx)
		l.jobs[kind.Job.JobId] = cancel
		go func() {
			defer cancel()
			l.work(working, kind.Job)
		}()
	case *pb.AttachResponse_Receipt_:
		delete(l.answers, kind.Receipt.JobId)
	case *pb.AttachResponse_Cancel_:
		if cancel := l.jobs[kind.Cancel.JobId]; cancel != nil {
			cancel()
		}
	}
}

func (l *lending) work(ctx context.Context, job *pb.AttachResponse_Job) {
	done := make(chan struct{})
	go l.keep(job, done)
	completion, err := l.complete(ctx, job)
	close(done)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.jobs, job.JobId)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		slog.Warn("contextengine: the lent model failed", "job", job.JobId, "error", err)
		completion = &pb.AttachRequest_Completion{Error: "model_failed", Retryable: true}
	}
	completion = shallow(orNew(completion))
	completion.JobId, completion.LeaseId = job.JobId, job.LeaseId
	answer := &pb.AttachRequest{Kind: &pb.AttachRequest_Completion_{Completion: completion}}
	l.answers[job.JobId] = answer
	l.say(answer)
}

// keep extends the job's lease while it is worked on.
func (l *lending) keep(job *pb.AttachResponse_Job, done <-chan struct{}) {
	every := min(max(time.Until(job.LeaseExpireTime.AsTime())/3, keepOften), keepSeldom)
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
			keep := &pb.AttachRequest_KeepLease{JobId: job.JobId, LeaseId: job.LeaseId}
			l.mu.Lock()
			l.say(&pb.AttachRequest{Kind: &pb.AttachRequest_KeepLease_{KeepLease: keep}})
			l.mu.Unlock()
		}
	}
}
