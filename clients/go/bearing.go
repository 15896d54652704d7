package contextengine

import (
	pb "github.com/contextengine/contextengine/clients/go/contextenginev1"
)

// CallOption changes how one call of a session handle differs from what the client is set to.
type CallOption func(*bearing)

// bearing is what a call does while the service is away.
type bearing struct {
	// fallback: true bears it, false fails. Nil: as the client does.
	fallback *bool
	// list is the host's own, if given is true.
	list  []*pb.Message
	given bool
}

func bearingOf(options []CallOption) bearing {
	var found bearing
	for _, option := range options {
		option(&found)
	}
	return found
}

// Bearing has the call bear that the service is away, although the client does not. Without a queue nothing of it is queued,
// and writes fail all the same.
func Bearing() CallOption { return bears(true) }

// Failing has the call fail while the service is away, although the client bears it. Nothing of it is queued.
func Failing() CallOption { return bears(false) }

func bears(fallback bool) CallOption { return func(b *bearing) { b.fallback = &fallback } }

// HostMessages is the host's own list, for the degraded case of Assemble alone: while the service is away the context is made of
// it, so that a handle that has seen nothing yet does not answer an empty one. It is not sent.
func HostMessages(messages ...*pb.Message) CallOption {
	return func(b *bearing) { b.list, b.given = messages, true }
}
