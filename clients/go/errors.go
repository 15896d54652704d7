package contextengine

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const domain = "contextengine"

// Kind is a kind of error: errors.Is(err, contextengine.ErrSessionNotFound).
type Kind struct {
	// Name of the kind, the same in every language.
	Name string
	// Reason is a value of contextengine.v1.ErrorReason without its prefix. Empty: the service gave none.
	Reason string
}

// Error makes a kind a target of errors.Is.
func (k Kind) Error() string { return "contextengine: " + k.Name }

// The kinds. ErrUnavailable is also what ErrDraining and ErrStoreUnavailable are; ErrGeneral is what is none of the others.
var (
	ErrGeneral               = Kind{"ContextEngineError", ""}
	ErrUnavailable           = Kind{"Unavailable", ""}
	ErrInvalidField          = Kind{"InvalidField", "INVALID_FIELD"}
	ErrContradictoryFields   = Kind{"ContradictoryFields", "CONTRADICTORY_FIELDS"}
	ErrMalformedRequest      = Kind{"MalformedRequest", "MALFORMED_REQUEST"}
	ErrBudgetImpossible      = Kind{"BudgetImpossible", "BUDGET_IMPOSSIBLE"}
	ErrSessionNotFound       = Kind{"SessionNotFound", "SESSION_NOT_FOUND"}
	ErrRowNotFound           = Kind{"RowNotFound", "ROW_NOT_FOUND"}
	ErrMessageConflict       = Kind{"MessageConflict", "MESSAGE_CONFLICT"}
	ErrRequestIDReused       = Kind{"RequestIdReused", "REQUEST_ID_REUSED"}
	ErrSessionExists         = Kind{"SessionExists", "SESSION_EXISTS"}
	ErrUnknownEngine         = Kind{"UnknownEngine", "UNKNOWN_ENGINE"}
	ErrRevisionMismatch      = Kind{"RevisionMismatch", "REVISION_MISMATCH"}
	ErrHasDependents         = Kind{"HasDependents", "HAS_DEPENDENTS"}
	ErrLostRace              = Kind{"LostRace", "LOST_RACE"}
	ErrTooLarge              = Kind{"TooLarge", "TOO_LARGE"}
	ErrOverloaded            = Kind{"Overloaded", "OVERLOADED"}
	ErrBudgetSpent           = Kind{"BudgetSpent", "BUDGET_SPENT"}
	ErrDraining              = Kind{"Draining", "DRAINING"}
	ErrStoreUnavailable      = Kind{"StoreUnavailable", "STORE_UNAVAILABLE"}
	ErrUnauthenticated       = Kind{"Unauthenticated", "UNAUTHENTICATED"}
	ErrPermissionDenied      = Kind{"PermissionDenied", "PERMISSION_DENIED"}
	ErrEngineFailed          = Kind{"EngineFailed", "ENGINE_FAILED"}
	ErrNotYetServed          = Kind{"NotYetServed", "NOT_YET_SERVED"}
	ErrDefect                = Kind{"Defect", "DEFECT"}
	ErrDeadlinePassed        = Kind{"DeadlinePassed", "DEADLINE"}
	ErrSessionReplaced       = Kind{"SessionReplaced", "SESSION_REPLACED"}
	ErrCorruptRow            = Kind{"CorruptRow", "CORRUPT_ROW"}
	ErrPositionLost          = Kind{"PositionLost", "POSITION_LOST"}
	ErrProjectionImpossible  = Kind{"ProjectionImpossible", "PROJECTION_IMPOSSIBLE"}
	ErrSpawnEnded            = Kind{"SpawnEnded", "SPAWN_ENDED"}
	ErrSpawnLimit            = Kind{"SpawnLimit", "SPAWN_LIMIT"}
	ErrHostCapabilityMissing = Kind{"HostCapabilityMissing", "HOST_CAPABILITY_MISSING"}
	// ErrQueueFull: the service is away and the client's queue holds all that it may. Raised by the client itself.
	ErrQueueFull = Kind{"QueueFull", "QUEUE_FULL"}
)

var byReason = func() map[string]Kind {
	found := map[string]Kind{}
	for _, kind := range []Kind{
		ErrInvalidField, ErrContradictoryFields, ErrMalformedRequest, ErrBudgetImpossible, ErrSessionNotFound,
		ErrRowNotFound, ErrMessageConflict, ErrRequestIDReused, ErrSessionExists, ErrUnknownEngine, ErrRevisionMismatch,
		ErrHasDependents, ErrLostRace, ErrTooLarge, ErrOverloaded, ErrBudgetSpent, ErrDraining, ErrStoreUnavailable,
		ErrUnauthenticated, ErrPermissionDenied, ErrEngineFailed, ErrNotYetServed, ErrDefect, ErrDeadlinePassed,
		ErrSessionReplaced, ErrCorruptRow, ErrPositionLost, ErrProjectionImpossible, ErrSpawnEnded,
		ErrSpawnLimit, ErrHostCapabilityMissing, ErrQueueFull,
	} {
		found[kind.Reason] = kind
	}
	return found
}()

// Failures that never reached the service, and so carry no reason.
var byCode = map[codes.Code]Kind{
	codes.Unavailable:      ErrUnavailable,
	codes.DeadlineExceeded: ErrDeadlinePassed,
	codes.Unauthenticated:  ErrUnauthenticated,
	codes.PermissionDenied: ErrPermissionDenied,
}

// Violation is a field of the request that is wrong, and what would be right.
type Violation struct{ Field, Description string }

// Error is a call that failed.
type Error struct {
	// Reason is a value of contextengine.v1.ErrorReason without its prefix. Empty: the transport failed, not the service.
	Reason string
	// Code is the gRPC status.
	Code codes.Code
	// Message says what went wrong, for people.
	Message string
	// Violations are the fields that are wrong.
	Violations []Violation
	// Metadata are facts of the failure by name, as ErrorReason documents them.
	Metadata map[string]string
	// RetryAfter says when to try again. Nil: the server did not say.
	RetryAfter *time.Duration
}

func (e *Error) Error() string {
	reason := e.Reason
	if reason == "" {
		reason = e.Code.String()
	}
	return fmt.Sprintf("contextengine: %s: %s", reason, e.Message)
}

// Kind is the error's kind.
func (e *Error) Kind() Kind {
	found, known := byReason[e.Reason], e.Reason != ""
	if !known {
		found = byCode[e.Code]
	}
	if found == (Kind{}) {
		return ErrGeneral
	}
	return found
}

// Is serves errors.Is: an error is of its kind, and drains and broken stores are unavailable too.
func (e *Error) Is(target error) bool {
	kind, ok := target.(Kind)
	if !ok {
		return false
	}
	mine := e.Kind()
	return mine == kind || kind == ErrUnavailable && (mine == ErrDraining || mine == ErrStoreUnavailable)
}

// GRPCStatus lets status.Code and status.FromError see the gRPC status.
func (e *Error) GRPCStatus() *status.Status { return status.New(e.Code, e.Message) }

// typed is the typed error of what gRPC answered. Errors that are typed, or nil, stay as they are.
func typed(err error) error {
	var already *Error
	if err == nil || errors.As(err, &already) {
		return err
	}
	from, ok := status.FromError(err)
	if !ok {
		return err
	}
	found := &Error{Code: from.Code(), Message: from.Message()}
	for _, detail := range from.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			if detail.Domain == domain {
				found.Reason = strings.TrimPrefix(detail.Reason, "ERROR_REASON_")
				found.Metadata = detail.Metadata
			}
		case *errdetails.RetryInfo:
			after := detail.RetryDelay.AsDuration()
			found.RetryAfter = &after
		case *errdetails.BadRequest:
			for _, violation := range detail.FieldViolations {
				found.Violations = append(found.Violations, Violation{violation.Field, violation.Description})
			}
		}
	}
	return found
}

// borne is the error where it says that the service is away, rather than that something must be mended. Nil: it does not.
func borne(err error) *Error {
	var found *Error
	if !errors.As(err, &found) {
		return nil
	}
	switch found.Code {
	case codes.Unavailable, codes.DeadlineExceeded:
		return found
	case codes.Unknown, codes.Internal:
		if found.Reason == "" {
			return found
		}
	}
	if found.Reason == ErrOverloaded.Reason || found.Reason == ErrLostRace.Reason {
		return found
	}
	return nil
}

// CodeName is the name of a gRPC code as the specification writes it: DEADLINE_EXCEEDED.
func CodeName(code codes.Code) string {
	names := []string{
		"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
		"PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
		"INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
	}
	if int(code) < len(names) {
		return names[code]
	}
	return code.String()
}
