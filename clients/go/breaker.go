package contextengine

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	health "google.golang.org/grpc/health/grpc_health_v1"
)

const (
	// probePatience is how long from its beginning calls wait for the answer of one question, all together.
	probePatience = 50 * time.Millisecond
	// probeTimeout is how long one question may take. It goes on beside the calls, which do not wait for it.
	probeTimeout = 5 * time.Second
)

// breaker is whether the service is known to be away, so that no call waits for it once more: open from the first call that
// finds nobody, or nobody who answers, until one is answered.
type breaker struct {
	mutex sync.Mutex
	// known is what the call failed with that found the service away. Nil: it is there, as far as is known.
	known *Error
	// asked is closed once the question is answered that goes on. Nil: none does.
	asked chan struct{}
	// until is how long calls wait for its answer.
	until time.Time
}

// answered: the service is there.
func (b *breaker) answered() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.known = nil
}

// failed: a call has given up with this error.
func (b *breaker) failed(err error) {
	var found *Error
	if !errors.As(err, &found) {
		return
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	switch {
	case found.Code == codes.Unavailable, found.Reason == "" && isNoAnswer(found.Code):
		b.known = found
	case found.Reason != "":
		b.known = nil
	}
}

func isNoAnswer(code codes.Code) bool {
	return code == codes.DeadlineExceeded || code == codes.Unknown || code == codes.Internal
}

// away is what the call failed with that found the service away, an error of its own for each caller. Nil: the service may be
// asked. While it is away, this begins a question where none goes on, and waits for its answer until it is a moment old.
func (b *breaker) away(ctx context.Context, serves func(context.Context) bool) error {
	b.mutex.Lock()
	if b.known == nil {
		b.mutex.Unlock()
		return nil
	}
	if b.asked == nil {
		b.asked = make(chan struct{})
		b.until = time.Now().Add(probePatience)
		go b.ask(serves, b.asked)
	}
	asked, until := b.asked, b.until
	b.mutex.Unlock()
	select {
	case <-asked:
	case <-time.After(time.Until(until)):
	case <-ctx.Done(): // the call itself says so
		return nil
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.known == nil {
		return nil
	}
	again := *b.known
	return &again
}

func (b *breaker) ask(serves func(context.Context) bool, asked chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	there := serves(ctx)
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if there {
		b.known = nil
	}
	b.asked = nil
	close(asked)
}

// serves asks whether the server serves. Whoever refuses the question is there too.
func (c *Client) serves(ctx context.Context) bool {
	reply, err := health.NewHealthClient(c.conn).Check(ctx, &health.HealthCheckRequest{})
	if err == nil {
		return reply.GetStatus() == health.HealthCheckResponse_SERVING
	}
	var found *Error
	if !errors.As(typed(err), &found) {
		return false
	}
	switch found.Code {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return false
	}
	return true
}
