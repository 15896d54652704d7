package contextengine

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	pb "github.com/contextengine/contextengine/clients/go/contextenginev1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

const (
	maxQueuedMessages = 10_000
	maxQueuedBytes    = 64 << 20
	maxRejected       = 1_000
)

// Rejected is a queued request that the service refused for what it is.
type Rejected struct {
	Request *pb.AfterTurnRequest
	Err     *Error
}

// queue is what could not be sent while the service was away, in order, within bounds. A nil queue holds nothing.
type queue struct {
	mu                    sync.Mutex
	maxMessages, maxBytes int
	messages, bytes       int
	entries               []*pb.AfterTurnRequest
	rejected              []Rejected
	spill                 *spill
}

func newQueue(maxMessages, maxBytes int, spillFile string) (*queue, error) {
	q := &queue{maxMessages: maxMessages, maxBytes: maxBytes}
	if spillFile == "" {
		return q, nil
	}
	var err error
	if q.spill, q.entries, err = openSpill(spillFile); err != nil {
		return nil, err
	}
	for _, entry := range q.entries {
		q.messages += weight(entry)
		q.bytes += proto.Size(entry)
	}
	return q, nil
}

// weight is how many messages an entry counts as.
func weight(entry *pb.AfterTurnRequest) int { return max(1, len(entry.Messages)) }

// add queues an entry. ErrQueueFull changes nothing.
func (q *queue) add(entry *pb.AfterTurnRequest) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	messages, bytes := q.messages+weight(entry), q.bytes+proto.Size(entry)
	if messages > q.maxMessages || bytes > q.maxBytes {
		return &Error{Reason: ErrQueueFull.Reason, Code: codes.ResourceExhausted, Message: fmt.Sprintf(
			"%d messages of %d bytes wait for the service; %d and %d bytes are the limits",
			q.messages, q.bytes, q.maxMessages, q.maxBytes)}
	}
	if q.spill != nil {
		if err := q.spill.append(entry); err != nil {
			// The agent goes on without its disk, too.
			return &Error{Reason: ErrQueueFull.Reason, Code: codes.ResourceExhausted,
				Message: fmt.Sprintf("the spill file cannot be written: %v", err)}
		}
	}
	q.entries = append(q.entries, entry)
	q.messages, q.bytes = messages, bytes
	return nil
}

// first is the oldest entry of a session. Nil: there is none.
func (q *queue) first(session *pb.SessionRef) *pb.AfterTurnRequest {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, entry := range q.entries {
		if proto.Equal(session, entry.Session) {
			return entry
		}
	}
	return nil
}

// sessions are those that have entries, the one with the oldest entry first.
func (q *queue) sessions() []*pb.SessionRef {
	if q == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	var found []*pb.SessionRef
	seen := map[[3]string]bool{}
	for _, entry := range q.entries {
		names := [3]string{entry.Session.GetAgentId(), entry.Session.GetSessionId(), entry.Session.GetSessionKey()}
		if !seen[names] {
			found = append(found, entry.Session)
		}
		seen[names] = true
	}
	return found
}

// sent takes out an entry that the service has answered. False: another call had sent it as well, and was quicker.
func (q *queue) sent(entry *pb.AfterTurnRequest) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.entries, entry)
	if i < 0 {
		return false
	}
	q.entries = slices.Delete(q.entries, i, i+1)
	q.messages -= weight(entry)
	q.bytes -= proto.Size(entry)
	if len(q.entries) == 0 && q.spill != nil {
		q.spill.clear()
	}
	return true
}

// failed takes out an entry that was refused for good. False: sending it again may help.
func (q *queue) failed(entry *pb.AfterTurnRequest, err error) bool {
	var cause *Error
	if !errors.As(err, &cause) || !forGood(cause) {
		return false
	}
	if q.sent(entry) {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.rejected = append(q.rejected, Rejected{entry, cause})
		if len(q.rejected) > maxRejected {
			q.rejected = q.rejected[1:]
		}
	}
	return true
}

func (q *queue) refused() []Rejected {
	if q == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return append([]Rejected(nil), q.rejected...)
}

// count is how many messages wait, of a session or of all.
func (q *queue) count(session *pb.SessionRef) int {
	if q == nil {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	total := 0
	for _, entry := range q.entries {
		if session == nil || proto.Equal(session, entry.Session) {
			total += weight(entry)
		}
	}
	return total
}

func (q *queue) close() {
	if q.spill != nil {
		q.spill.file.Close()
	}
}
