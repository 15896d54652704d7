package contextengine

import (
	"crypto/tls"
	"fmt"
	"sync"
	"time"

	pb "github.com/contextengine/contextengine/clients/go/contextenginev1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

const (
	// DefaultTarget is where a server listens that was started without settings.
	DefaultTarget = "127.0.0.1:50051"
	// DefaultMaxMessageBytes is the server's default limit.
	DefaultMaxMessageBytes = 64 << 20
	// DefaultKeepalive is longer than the five minutes within which a gRPC server without settings takes one ping.
	DefaultKeepalive = 310 * time.Second
	// DefaultRetryFor is longer than a rolling restart takes.
	DefaultRetryFor = 10 * time.Second
)

type settings struct {
	token             string
	insecure          bool
	credentials       credentials.TransportCredentials
	timeouts          map[string]time.Duration
	metadata          func() map[string]string
	maxMessageBytes   int
	keepalive         time.Duration
	retryFor          time.Duration
	noFallback        bool
	breaker           bool
	maxQueuedMessages int
	maxQueuedBytes    int
	spillFile         string
	dial              []grpc.DialOption
}

// Option changes what a client is set to.
type Option func(*settings)

// WithToken sends a bearer token. It goes unencrypted only to this machine, unless WithInsecure is given.
func WithToken(token string) Option { return func(s *settings) { s.token = token } }

// WithInsecure lets the token travel unencrypted to another machine.
func WithInsecure() Option { return func(s *settings) { s.insecure = true } }

// WithTLS encrypts with the system's root certificates.
func WithTLS() Option {
	return WithCredentials(credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12}))
}

// WithCredentials sets gRPC's own credentials, for mTLS or roots of one's own.
func WithCredentials(given credentials.TransportCredentials) Option {
	return func(s *settings) { s.credentials = given }
}

// WithTimeouts sets deadlines by "Service.Rpc". 0: none. A context with a deadline of its own wins.
func WithTimeouts(timeouts map[string]time.Duration) Option {
	return func(s *settings) { s.timeouts = timeouts }
}

// WithMetadata is called before every rpc and answers metadata to send along.
func WithMetadata(metadata func() map[string]string) Option {
	return func(s *settings) { s.metadata = metadata }
}

// WithMaxMessageBytes sets the largest request and reply.
func WithMaxMessageBytes(limit int) Option { return func(s *settings) { s.maxMessageBytes = limit } }

// WithKeepalive sets the time between pings on an idle connection.
func WithKeepalive(every time.Duration) Option { return func(s *settings) { s.keepalive = every } }

// WithRetryFor sets how long unary calls are sent again while the service is away (UNAVAILABLE), counted for all of them from
// when it went, never beyond a deadline. 0: they are not.
func WithRetryFor(patience time.Duration) Option { return func(s *settings) { s.retryFor = patience } }

// WithBreaker waits for a service that is dead or hung once: each further call waits 50 ms at most for it and fails as that one
// did, until the service answers a question that goes on beside them (grpc.health.v1). Where calls hang all the same, it is
// asked the later each time, after a minute at most.
func WithBreaker() Option { return func(s *settings) { s.breaker = true } }

// WithoutFallback makes session handles fail while the service is away.
func WithoutFallback() Option { return func(s *settings) { s.noFallback = true } }

// WithQueueLimits sets the most messages and bytes that wait for the service to come back.
func WithQueueLimits(messages, bytes int) Option {
	return func(s *settings) { s.maxQueuedMessages, s.maxQueuedBytes = messages, bytes }
}

// WithSpillFile names a file that outlives this process with what waits. One client at a time.
func WithSpillFile(path string) Option { return func(s *settings) { s.spillFile = path } }

// WithDialOptions adds gRPC's own options; they win over those set here.
func WithDialOptions(options ...grpc.DialOption) Option {
	return func(s *settings) { s.dial = append(s.dial, options...) }
}

// Client is a client of one server. Safe for concurrent use.
//
// The embedded services are gRPC's own; their calls get ids, deadlines, retries and typed errors.
type Client struct {
	// ContextEngine is the life of sessions, and the context of each model call.
	ContextEngine pb.ContextEngineClient
	// Sessions lists, moves, erases and watches sessions.
	Sessions pb.SessionsClient
	// Engines are those that the server hosts.
	Engines pb.EnginesClient
	// Recall finds and brings back what an assembly does not show.
	Recall pb.RecallClient
	// Projection renders contexts for harnesses and providers.
	Projection pb.ProjectionClient
	// Runtime lends a model to the server.
	Runtime pb.RuntimeClient

	settings settings
	conn     *grpc.ClientConn
	queue    *queue
	absence  absence
	breaker  breaker
	// closed ends pauses between attempts.
	closed chan struct{}
	once   sync.Once
}

// New makes a client. It connects at the first call.
func New(target string, options ...Option) (*Client, error) {
	s := settings{
		maxMessageBytes:   DefaultMaxMessageBytes,
		keepalive:         DefaultKeepalive,
		retryFor:          DefaultRetryFor,
		maxQueuedMessages: maxQueuedMessages,
		maxQueuedBytes:    maxQueuedBytes,
	}
	for _, option := range options {
		option(&s)
	}
	for name := range s.timeouts {
		if _, known := methods[name]; !known {
			return nil, fmt.Errorf("contextengine: timeouts: unknown rpc %s", name)
		}
	}
	if s.retryFor < 0 {
		return nil, fmt.Errorf("contextengine: retryFor is %s: it must be 0 or above", s.retryFor)
	}
	if s.token != "" && s.credentials == nil && !s.insecure && !isLoopback(target) {
		return nil, fmt.Errorf("contextengine: the token would travel unencrypted to %s: "+
			"give WithTLS or WithCredentials, or WithInsecure where the network is trusted", target)
	}
	client := &Client{settings: s, closed: make(chan struct{})}
	if !s.noFallback {
		var err error
		if client.queue, err = newQueue(s.maxQueuedMessages, s.maxQueuedBytes, s.spillFile); err != nil {
			return nil, err
		}
	}
	conn, err := grpc.NewClient(target, append(client.dialOptions(), s.dial...)...)
	if err != nil {
		return nil, err
	}
	client.conn = conn
	client.ContextEngine = pb.NewContextEngineClient(conn)
	client.Sessions = pb.NewSessionsClient(conn)
	client.Engines = pb.NewEnginesClient(conn)
	client.Recall = pb.NewRecallClient(conn)
	client.Projection = pb.NewProjectionClient(conn)
	client.Runtime = pb.NewRuntimeClient(conn)
	return client, nil
}

func (c *Client) dialOptions() []grpc.DialOption {
	transport := c.settings.credentials
	if transport == nil {
		transport = insecure.NewCredentials()
	}
	// A restarted server is found again within about a second.
	again := backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second}
	return []grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		grpc.WithDefaultServiceConfig(serviceConfig()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: again, MinConnectTimeout: 5 * time.Second}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: c.settings.keepalive}),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(c.settings.maxMessageBytes),
			grpc.MaxCallSendMsgSize(c.settings.maxMessageBytes),
			// What is too large to be held is not sent again.
			grpc.MaxRetryRPCBufferSize(c.settings.maxMessageBytes),
		),
		grpc.WithChainUnaryInterceptor(c.unary),
		grpc.WithChainStreamInterceptor(c.stream),
	}
}

// Conn is the connection, for rpcs by name.
func (c *Client) Conn() grpc.ClientConnInterface { return c.conn }

// Close ends calls that run. What waits to be sent stays in the spill file, if there is one.
func (c *Client) Close() error {
	err := c.conn.Close()
	c.once.Do(func() { close(c.closed) })
	if c.queue != nil {
		c.queue.close()
	}
	return err
}

// Session is a handle on one session, which need not exist yet. Nothing is sent.
func (c *Client) Session(ref *pb.SessionRef) *Session { return &Session{client: c, ref: ref} }

// Pending tells how many messages wait for the service to come back.
func (c *Client) Pending() int { return c.queue.count(nil) }

// Rejected is what had waited and was then refused for what it is, the newest last; the last thousand.
func (c *Client) Rejected() []Rejected { return c.queue.refused() }
