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
	// trialTimeout is how long a trial holds the other calls back at most: the longest deadline of a call that waits for no
	// model. A compaction that happens to be the trial may take ten times as long.
	trialTimeout = 60 * time.Second
	// probeFirstPause is how long nothing is asked once the trial behind a question has failed: as long as a question that hangs
	// takes anyway. Twice as long each further time.
	probeFirstPause = 5 * time.Second
	// probeLongestPause is the longest: calls that are answered again are found within a minute, and a call of 2 s that hangs
	// each minute costs an agent a thirtieth of its time.
	probeLongestPause = 60 * time.Second
)

// breaker is whether the service is known to be away, so that no call waits for it once more: open from the first call that
// finds nobody, or nobody who answers; half-open once the service says that it serves, when calls go through as trials, all of
// them while that was never wrong, then one at a time; closed once a call is answered.
type breaker struct {
	mutex sync.Mutex
	// known is what the newest call failed with that found the service away. Nil: closed.
	known    *Error
	halfOpen bool
	// trialUntil is how long a trial holds others back.
	trialUntil time.Time
	// pause is the newest one between a trial that failed and the next question. 0: none has failed.
	pause       time.Duration
	pausedUntil time.Time
	// asked is closed once the question is answered that goes on. Nil: none does.
	asked chan struct{}
	// until is how long calls wait for its answer.
	until time.Time
}

// answered: a call was answered, the service is there.
func (b *breaker) answered() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.close()
}

func (b *breaker) close() {
	b.known, b.halfOpen, b.pause = nil, false, 0
	b.trialUntil, b.pausedUntil = time.Time{}, time.Time{}
}

// failed: a call has given up with this error. trial is what admit said of it. Where the service said that it serves and a
// trial finds it away, it is asked the later the next time.
func (b *breaker) failed(err error, trial bool) {
	found := &Error{}
	errors.As(err, &found)
	away := found.Code == codes.Unavailable || found.Reason == "" && isNoAnswer(found.Code)
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if found.Reason != "" && !away {
		b.close()
		return
	}
	if away {
		b.known = found
	}
	if away && trial && b.halfOpen {
		b.halfOpen = false
		b.pause = min(max(2*b.pause, probeFirstPause), probeLongestPause)
		b.pausedUntil = time.Now().Add(b.pause)
	}
	if trial { // of one that was cancelled nothing is known: another may be the trial
		b.trialUntil = time.Time{}
	}
}

func isNoAnswer(code codes.Code) bool {
	return code == codes.DeadlineExceeded || code == codes.Unknown || code == codes.Internal
}

// admit lets a call through; whether it is a trial. An error is what the call failed with that found the service away, one of
// its own for each caller. Where it is time to, this begins a question, and waits for its answer until it is a moment old.
func (b *breaker) admit(ctx context.Context, serves func(context.Context) bool) (trial bool, err error) {
	b.ask(ctx, serves)
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.known == nil || ctx.Err() != nil { // a call that is cancelled says so itself
		return false, nil
	}
	if now := time.Now(); b.halfOpen && (b.pause == 0 || !now.Before(b.trialUntil)) {
		b.trialUntil = now.Add(trialTimeout)
		return true, nil
	}
	again := *b.known
	return false, &again
}

func (b *breaker) ask(ctx context.Context, serves func(context.Context) bool) {
	b.mutex.Lock()
	if b.known == nil || b.halfOpen || time.Now().Before(b.pausedUntil) {
		b.mutex.Unlock()
		return
	}
	if b.asked == nil {
		b.asked = make(chan struct{})
		b.until = time.Now().Add(probePatience)
		go b.question(serves, b.asked)
	}
	asked, until := b.asked, b.until
	b.mutex.Unlock()
	select {
	case <-asked:
	case <-time.After(time.Until(until)):
	case <-ctx.Done():
	}
}

func (b *breaker) question(serves func(context.Context) bool, asked chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	there := serves(ctx)
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.halfOpen = there && b.known != nil
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
