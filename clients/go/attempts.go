package contextengine

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
)

const (
	// maxAttempts is how often a call is sent at most that is refused, and how often a stream is opened.
	maxAttempts       = 4
	firstAttemptPause = 100 * time.Millisecond
	// longestAttemptPause is below a second even with the jitter: a server that is back is used within one.
	longestAttemptPause = 800 * time.Millisecond
	// jitter is the part by which a pause differs: clients that lost one server do not come back all at once.
	jitter = 0.2
)

// absence is since when the service is away, as all calls of one client see it: they wait for it together, not each anew.
type absence struct {
	mutex           sync.Mutex
	answered, since time.Time
}

// end: the service has answered something.
func (a *absence) end() {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.answered, a.since = time.Now(), time.Time{}
}

// begin: an attempt that was sent then found nobody. What another call was answered meanwhile is the newer news.
func (a *absence) begin(sent time.Time) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.since.IsZero() && !a.answered.After(sent) {
		a.since = time.Now()
	}
}

// began is when the first attempt found nobody. Zero while the service is there.
func (a *absence) began() time.Time {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.since
}

// attempts are those of one unary call, within its deadline.
type attempts struct {
	// sent is when the last attempt went out, missed when the first one found nobody.
	sent, missed time.Time
	// absence is what the client knows: retryFor counts from its beginning.
	absence *absence
	// retryFor is how long UNAVAILABLE is answered with another attempt.
	retryFor           time.Duration
	absences, refusals int
}

// pause is how long to wait before the next attempt. False: there is none, since it would not help or would come too late.
func (a *attempts) pause(ctx context.Context, err error) (time.Duration, bool) {
	var found *Error
	if !errors.As(err, &found) {
		return 0, false
	}
	// A deadline that passed or a broken connection has no reason, and is no answer.
	if found.Code != codes.Unavailable && found.Reason != "" {
		a.absence.end()
	}
	var pause time.Duration
	switch {
	case found.Code == codes.Unavailable:
		var again bool
		if pause, again = a.whileAway(); !again {
			return 0, false
		}
	case found.Reason == ErrOverloaded.Reason || found.Reason == ErrLostRace.Reason:
		pause = firstAttemptPause << a.refusals
		if found.RetryAfter != nil {
			pause = *found.RetryAfter
		}
		if a.refusals++; a.refusals >= maxAttempts {
			return 0, false
		}
	default:
		return 0, false
	}
	a.sent = time.Now().Add(pause)
	end, has := ctx.Deadline()
	return pause, !has || a.sent.Before(end)
}

// whileAway is the pause after an attempt that found nobody. False: the service was asked for long enough.
func (a *attempts) whileAway() (time.Duration, bool) {
	now := time.Now()
	a.absence.begin(a.sent)
	if a.missed.IsZero() {
		a.missed = now
	}
	// Where others are answered meanwhile, this call still does not ask for ever.
	since := a.missed
	if began := a.absence.began(); !began.IsZero() && began.Before(since) {
		since = began
	}
	usual := min(longestAttemptPause, firstAttemptPause*pow3(a.absences))
	a.absences++
	pause := time.Duration(float64(usual) * (1 - jitter + 2*jitter*rand.Float64()))
	return pause, now.Add(pause).Sub(since) < a.retryFor
}

// pow3 is a power of 3, as far as pauses grow.
func pow3(exponent int) time.Duration {
	power := time.Duration(1)
	for range min(exponent, maxAttempts) {
		power *= 3
	}
	return power
}
