// Command stepper drives the one-round-trip step as a harness does: one call in flight for each session, and each request names the
// list that the reply before it made, so that the answer is the delta. It reads replies no further than it must. With -whole it asks
// for the whole list instead, each time with another epoch, so that no two requests are the same.
//
//	stepper -address HOST:PORT -method pkg.Service/Rpc -seconds 2 [-whole] REQUEST...
//
// Each REQUEST is a file with an encoded AssembleRequest, a session each. Prints one line of JSON.
package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"flag"
	"log"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// Field numbers of contextengine.v1: AssembleRequest.known_context_hash and known_epoch,
// AssembleResponse.context_hash.
const (
	known = 21
	epoch = 22
	named = 23
)

// raw hands bytes through.
type raw struct{}

func (raw) Name() string                       { return "proto" }
func (raw) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (raw) Unmarshal(data []byte, v any) error { *v.(*[]byte) = data; return nil }

// field answers the last bytes field of this number, or nil where there is none or the message is none of ours.
func field(message []byte, number uint64) []byte {
	var found []byte
	for len(message) > 0 {
		tag, n := binary.Uvarint(message)
		if n <= 0 || tag == 0 {
			return found
		}
		message = message[n:]
		size := uint64(0)
		switch tag & 7 {
		case 0:
			if _, n = binary.Uvarint(message); n <= 0 {
				return found
			}
			size = uint64(n)
		case 1:
			size = 8
		case 5:
			size = 4
		case 2:
			if size, n = binary.Uvarint(message); n <= 0 {
				return found
			}
			message = message[n:]
		default:
			return found
		}
		if size > uint64(len(message)) {
			return found
		}
		if tag>>3 == number {
			found = message[:size]
		}
		message = message[size:]
	}
	return found
}

// text appends a field of bytes.
func text(message []byte, number uint64, content string) []byte {
	message = binary.AppendUvarint(message, number<<3|2)
	message = binary.AppendUvarint(message, uint64(len(content)))
	return append(message, content...)
}

// report is what the load did: `begin` and `end` in microseconds since 1970, times in microseconds.
type report struct {
	Calls   []call `json:"calls"`
	Failure string `json:"failure,omitempty"`
}

// call is one answered call: when it ended, how long it took, the reply's bytes.
type call [3]int64

func main() {
	address := flag.String("address", "", "HOST:PORT")
	method := flag.String("method", "", "pkg.Service/Rpc")
	seconds := flag.Float64("seconds", 2, "how long to go on")
	whole := flag.Bool("whole", false, "ask for the whole list")
	flag.Parse()
	var all report
	var guard sync.Mutex
	var group sync.WaitGroup
	deadline := time.Now().Add(time.Duration(*seconds * float64(time.Second)))
	for _, path := range flag.Args() {
		request, err := os.ReadFile(path)
		if err != nil {
			log.Fatal(err)
		}
		connection, err := grpc.NewClient(*address, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{}), grpc.MaxCallRecvMsgSize(1<<30)))
		if err != nil {
			log.Fatal(err)
		}
		group.Add(1)
		go func() {
			defer group.Done()
			calls, err := drive(connection, "/"+*method, request, deadline, *whole)
			guard.Lock()
			defer guard.Unlock()
			all.Calls = append(all.Calls, calls...)
			if err != nil {
				all.Failure = err.Error()
			}
		}()
	}
	group.Wait()
	slices.SortFunc(all.Calls, func(a, b call) int { return int(a[0] - b[0]) })
	if err := json.NewEncoder(os.Stdout).Encode(all); err != nil {
		log.Fatal(err)
	}
}

// drive sends one step after the other until the deadline.
func drive(connection *grpc.ClientConn, method string, request []byte, deadline time.Time, whole bool) ([]call, error) {
	var calls []call
	var held []byte
	for time.Now().Before(deadline) {
		body := slices.Clip(request)
		// The last field of a number wins.
		switch {
		case whole:
			body = text(body, epoch, strconv.Itoa(len(calls)))
		case held != nil:
			body = text(body, known, string(held))
		}
		var reply []byte
		began := time.Now()
		if err := connection.Invoke(context.Background(), method, &body, &reply); err != nil {
			return calls, err
		}
		ended := time.Now()
		calls = append(calls, call{ended.UnixMicro(), ended.Sub(began).Microseconds(), int64(len(reply))})
		held = field(reply, named)
	}
	return calls, nil
}
