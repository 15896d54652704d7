package contextengine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// unary gives every unary rpc its ids, its deadline, its metadata, its retries and typed errors.
func (c *Client) unary(
	ctx context.Context, method string, request, reply any, conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	if method == health.Health_Check_FullMethodName {
		return invoke(c.outgoing(ctx, ""), method, request, reply, conn, options...)
	}
	ctx, cancel := c.deadline(ctx, nameOf(method))
	defer cancel()
	ready := withIDs(request)
	send := func() error {
		return c.attempt(ctx, method, func() error {
			return c.refine(invoke(c.outgoing(ctx, sessionOf(ready)), method, ready, reply, conn, options...), ready)
		})
	}
	if !c.settings.breaker {
		return send()
	}
	trial, err := c.breaker.admit(ctx, c.serves)
	if err != nil {
		return err
	}
	if err = send(); err != nil {
		c.breaker.failed(err, trial)
		return err
	}
	c.breaker.answered()
	return nil
}

// attempt sends a unary request as often as it may help.
func (c *Client) attempt(ctx context.Context, method string, send func() error) error {
	made := attempts{sent: time.Now(), absence: &c.absence}
	if !sentOnce[nameOf(method)] {
		made.retryFor = c.settings.retryFor
	}
	for {
		err := send()
		if err == nil {
			c.absence.end()
			return nil
		}
		pause, again := made.pause(ctx, err)
		if !again {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done(): // gRPC says why, and sends nothing
		case <-c.closed:
		}
	}
}

// stream gives every stream its deadline, its metadata and typed errors.
func (c *Client) stream(
	ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string,
	open grpc.Streamer, options ...grpc.CallOption,
) (grpc.ClientStream, error) {
	ctx, cancel := c.deadline(ctx, nameOf(method))
	s := &stream{client: c, cancel: cancel, ctx: ctx}
	s.open = func(first any) error {
		s.once.Do(func() {
			s.inner, s.failed = open(c.outgoing(ctx, sessionOf(first)), desc, conn, method, options...)
			if s.failed != nil {
				cancel()
				s.failed = typed(s.failed)
			}
		})
		return s.failed
	}
	if desc.ClientStreams && desc.ServerStreams { // replies may come before anything is sent
		if err := s.open(nil); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// stream is one that begins with its first request, which may name its session.
type stream struct {
	client *Client
	ctx    context.Context
	cancel context.CancelFunc
	once   sync.Once
	open   func(first any) error
	inner  grpc.ClientStream
	failed error
}

func (s *stream) SendMsg(message any) error {
	if err := s.open(message); err != nil {
		return err
	}
	return s.client.refine(s.inner.SendMsg(message), message)
}

func (s *stream) RecvMsg(message any) error {
	if err := s.open(nil); err != nil {
		return err
	}
	err := s.inner.RecvMsg(message)
	if err != nil {
		s.cancel()
	}
	if errors.Is(err, io.EOF) {
		return err
	}
	return typed(err)
}

func (s *stream) CloseSend() error {
	if err := s.open(nil); err != nil {
		return err
	}
	return s.inner.CloseSend()
}

func (s *stream) Header() (metadata.MD, error) {
	if err := s.open(nil); err != nil {
		return nil, err
	}
	return s.inner.Header()
}

func (s *stream) Trailer() metadata.MD {
	if s.open(nil) != nil {
		return nil
	}
	return s.inner.Trailer()
}

func (s *stream) Context() context.Context { return s.ctx }

// outgoing adds the token, the caller's metadata, the current span and what names a session, where there is one.
func (c *Client) outgoing(ctx context.Context, session string) context.Context {
	pairs := map[string]string{}
	if session != "" {
		pairs[SessionHeader] = session
	}
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		pairs["traceparent"] = fmt.Sprintf("00-%s-%s-%s", span.TraceID(), span.SpanID(), span.TraceFlags())
		if state := span.TraceState().String(); state != "" {
			pairs["tracestate"] = state
		}
	}
	if c.settings.metadata != nil {
		given := c.settings.metadata()
		if _, own := given["traceparent"]; own {
			delete(pairs, "tracestate")
		}
		for name, value := range given {
			pairs[name] = value
		}
	}
	if c.settings.token != "" {
		pairs["authorization"] = "Bearer " + c.settings.token
	}
	for name, value := range pairs {
		ctx = metadata.AppendToOutgoingContext(ctx, name, value)
	}
	return ctx
}

// refine types an error, and says of a request that cannot be encoded which text is not UTF-8.
func (c *Client) refine(err error, request any) error {
	err = typed(err)
	var found *Error
	if errors.As(err, &found) && found.Code == codes.Internal && strings.Contains(found.Message, "error while marshaling") {
		message, ok := request.(proto.Message)
		if !ok {
			return err
		}
		field := notUTF8(message.ProtoReflect(), "")
		found = &Error{Reason: ErrInvalidField.Reason, Code: codes.InvalidArgument, Message: field + " is not UTF-8"}
		found.Violations = []Violation{{field, "is not UTF-8: give valid text, or bytes in `native`"}}
		return found
	}
	return err
}

// notUTF8 is the path of the first text that is not UTF-8.
func notUTF8(message protoreflect.Message, path string) string {
	found := ""
	check := func(value protoreflect.Value, kind protoreflect.Kind, at string) {
		switch {
		case found != "":
		case kind == protoreflect.StringKind && !utf8.ValidString(value.String()):
			found = at
		case kind == protoreflect.MessageKind:
			found = notUTF8(value.Message(), at+".")
		}
	}
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		at := path + string(field.Name())
		switch {
		case field.IsList():
			for i := range value.List().Len() {
				check(value.List().Get(i), field.Kind(), fmt.Sprintf("%s[%d]", at, i))
			}
		case field.IsMap():
			value.Map().Range(func(key protoreflect.MapKey, entry protoreflect.Value) bool {
				check(key.Value(), field.MapKey().Kind(), at)
				check(entry, field.MapValue().Kind(), at)
				return found == ""
			})
		default:
			check(value, field.Kind(), at)
		}
		return found == ""
	})
	return found
}
