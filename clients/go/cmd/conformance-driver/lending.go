package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	contextengine "github.com/contextengine/contextengine/clients/go"
	pb "github.com/contextengine/contextengine/clients/go/contextenginev1"
)

// lending is a model that is lent beside whatever else is asked.
type lending struct {
	jobs   atomic.Int64
	cancel context.CancelFunc
	ended  chan error
}

func lend(ctx context.Context, client *contextengine.Client, a asked) *lending {
	hello := &pb.AttachRequest_Hello{}
	read(a.Hello, hello)
	ctx, cancel := context.WithCancel(ctx)
	l := &lending{cancel: cancel, ended: make(chan error, 1)}
	complete := func(ctx context.Context, _ *pb.AttachResponse_Job) (*pb.AttachRequest_Completion, error) {
		if l.jobs.Add(1) <= a.Failures {
			return nil, errors.New("not this one")
		}
		select {
		case <-time.After(time.Duration(a.Delay * float64(time.Second))):
			return &pb.AttachRequest_Completion{Text: a.Text}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	go func() { l.ended <- client.Lend(ctx, hello, complete) }()
	return l
}

func (l *lending) end() (int64, error) {
	l.cancel()
	return l.jobs.Load(), <-l.ended
}
