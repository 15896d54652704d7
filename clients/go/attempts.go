package contextengine

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"
)

const (
	// maxAttempts is how often a call is sent at most that is refused, or that asks for a server known to be away.
	maxAttempts         = 4
	firstAttemptPause   = 100 * time.Millisecond
	longestAttemptPause = 2 * time.Second
	// jitter is the part by which a pause differs: clients that lost one server do not come back all at once.
	jitter = 0.2
)

// attempts are those of one unary call, within its deadline.
type attempts struct {
	began time.Time
	// retryFor is how long UNAVAILABLE is answered with another attempt.
	retryFor time.Duration
	// knownAway: a call asked for that long in vain, and nobody has answered since.
	knownAway          bool
	absences, refusals int
}

// pause is how long to wait before the next attempt. False: there is none, since it would not help or would come too late.
func (a *attempts) pause(ctx context.Context, err error) (time.Duration, bool) {
	var found *Error
	if !errors.As(err, &found) {
		a.knownAway = false
		return 0, false
	}
	var pause time.Duration
	switch {
	case found.Code == codes.Unavailable:
		usual := min(longestAttemptPause, firstAttemptPause*pow3(a.absences))
		pause = time.Duration(float64(usual) * (1 - jitter + 2*jitter*rand.Float64()))
		a.absences++
		enough := a.knownAway && a.absences >= maxAttempts
		late := time.Since(a.began)+pause >= a.retryFor
		a.knownAway = a.knownAway || late && a.retryFor > 0
		if enough || late {
			return 0, false
		}
	case found.Reason == ErrOverloaded.Reason || found.Reason == ErrLostRace.Reason:
		a.knownAway = false
		pause = firstAttemptPause << a.refusals
		if found.RetryAfter != nil {
			pause = *found.RetryAfter
		}
		if a.refusals++; a.refusals >= maxAttempts {
			return 0, false
		}
	default:
		a.knownAway = false
		return 0, false
	}
	end, has := ctx.Deadline()
	return pause, !has || time.Now().Add(pause).Before(end)
}

// pow3 is a power of 3, as far as pauses grow.
func pow3(exponent int) time.Duration {
	power := time.Duration(1)
	for range min(exponent, maxAttempts) {
		power *= 3
	}
	return power
}
