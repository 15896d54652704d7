package contextengine

import (
	"context"

	pb "github.com/contextengine/contextengine/clients/go/contextenginev1"
	"google.golang.org/grpc/codes"
)

// Flush sends what waits, of all sessions, the oldest first. Where some of it cannot be sent it goes on with the other sessions,
// all within one deadline, and answers the first error.
func (c *Client) Flush(ctx context.Context) error {
	ctx, cancel := c.deadline(ctx, "ContextEngine.AfterTurn")
	defer cancel()
	var first error
	for _, session := range c.queue.sessions() {
		err := c.flush(ctx, session)
		if first == nil {
			first = err
		}
		if err != nil && ctx.Err() != nil {
			break
		}
	}
	return first
}

// flush sends what waits of a session. Calls need not wait for each other: an entry goes only after the one before it was answered, and one
// that two calls send is stored once.
func (c *Client) flush(ctx context.Context, session *pb.SessionRef) error {
	if c.queue.count(session) == 0 {
		return nil
	}
	ctx, cancel := c.deadline(ctx, "ContextEngine.AfterTurn")
	defer cancel()
	for entry := c.queue.first(session); entry != nil; entry = c.queue.first(session) {
		if _, err := c.ContextEngine.AfterTurn(ctx, entry); err == nil {
			c.queue.sent(entry)
		} else if !c.queue.failed(entry, err) {
			return err
		}
	}
	return nil
}

// forGood says whether the service will never take what it refused with this error.
func forGood(err *Error) bool {
	switch err.Code {
	case codes.InvalidArgument, codes.AlreadyExists, codes.OutOfRange:
		return true
	}
	return err.Reason == ErrTooLarge.Reason
}
