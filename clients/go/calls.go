package contextengine

import (
	"context"
	"encoding/json"
	"net"
	"strings"
	"time"
)

const (
	quick       = 15 * time.Second
	long        = 60 * time.Second
	slow        = 600 * time.Second
	packageName = "contextengine.v1."
)

// methods are the rpcs by "Service.Rpc" with their deadlines; 0 means none.
var methods = map[string]time.Duration{
	"ContextEngine.Bootstrap": long, "ContextEngine.Ingest": long, "ContextEngine.IngestBatch": long,
	"ContextEngine.Assemble": long, "ContextEngine.Compact": slow, "ContextEngine.CommitCompaction": quick,
	"ContextEngine.AfterTurn": long, "ContextEngine.RecordHostChange": quick, "ContextEngine.Maintain": quick,
	"ContextEngine.ReportUsage": quick, "ContextEngine.ShouldCompact": long, "ContextEngine.UpdateModel": quick,
	"ContextEngine.GetStatus": quick, "ContextEngine.ListTools": quick, "ContextEngine.CallTool": long,
	"ContextEngine.PrepareSubagentSpawn": quick, "ContextEngine.RollbackSubagentSpawn": quick,
	"ContextEngine.EndSubagent": quick, "ContextEngine.ResetSession": quick, "ContextEngine.EndSession": long,
	"ContextEngine.DisposeSession": quick,
	"Sessions.List":                quick, "Sessions.Get": quick, "Sessions.Import": slow, "Sessions.Export": slow,
	"Sessions.Delete": long, "Sessions.Watch": 0,
	"Engines.List": quick, "Engines.Get": quick, "Engines.Doctor": long, "Engines.Assign": quick,
	"Engines.ListQuotas": quick, "Engines.SetQuota": quick,
	"Recall.Search": long, "Recall.Inspect": quick, "Recall.Expand": long,
	"Projection.Project": long, "Runtime.Attach": 0,
}

// sentOnce are those that are not sent again on UNAVAILABLE: a tool may do anything, and a conversation cannot be repeated.
var sentOnce = map[string]bool{"ContextEngine.CallTool": true, "Runtime.Attach": true}

// streamed are those that gRPC itself opens again; it allows no more than five attempts.
var streamed = []string{"Sessions.Export", "Sessions.Import", "Sessions.Watch"}

// serviceConfig is gRPC's: a stream that is safe to open twice is opened again on UNAVAILABLE.
func serviceConfig() string {
	type name struct {
		Service string `json:"service"`
		Method  string `json:"method"`
	}
	var names []name
	for _, method := range streamed {
		service, rpc, _ := strings.Cut(method, ".")
		names = append(names, name{packageName + service, rpc})
	}
	config, err := json.Marshal(map[string]any{"methodConfig": []any{map[string]any{
		"name": names,
		"retryPolicy": map[string]any{
			"maxAttempts": maxAttempts, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 3,
			"retryableStatusCodes": []string{"UNAVAILABLE"},
		},
	}}})
	if err != nil {
		panic(err) // plain values
	}
	return string(config)
}

// nameOf is "Service.Rpc" of a path on the wire.
func nameOf(path string) string {
	return strings.Replace(strings.TrimPrefix(path, "/"+packageName), "/", ".", 1)
}

// deadline gives a call its deadline where the context has none.
func (c *Client) deadline(ctx context.Context, name string) (context.Context, context.CancelFunc) {
	timeout, given := c.settings.timeouts[name]
	if !given {
		timeout = methods[name]
	}
	if _, has := ctx.Deadline(); has || timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, timeout)
}

// isLoopback says whether a gRPC target can only be this machine.
func isLoopback(target string) bool {
	if strings.HasPrefix(target, "unix:") || strings.HasPrefix(target, "unix-abstract:") {
		return true
	}
	address := target[strings.LastIndex(target, "/")+1:]
	for _, scheme := range []string{"dns:", "passthrough:"} {
		address = strings.TrimPrefix(address, scheme)
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
