package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Field numbers of contextengine.v1: AssembleRequest.known_context_hash, AssembleResponse.context_hash.
const (
	known = 21
	named = 23
)

const (
	// What a peer may send before it is told that it may send more: nobody here waits for that.
	wide = 1<<31 - 1
	// The largest request: what every peer takes of a stream unasked.
	most = 60_000
	// The largest frame that every peer takes.
	frame = 16_384
)

var serial = []byte("%SERIAL%")

// sample is one answered call.
type sample struct {
	ended time.Time
	took  time.Duration
	size  int32
	step  int32
}

// lane does one script after the other.
type lane struct {
	number  int
	script  int64
	step    int
	asked   time.Time
	hash    []byte
	request []byte
	busy    bool
	// When scripts were due that wait for the one at work.
	due []time.Time
	// Of the reply that comes in.
	reply []byte
	size  int
	keep  bool
}

// connection is one HTTP/2 connection and its lanes. What goes out is guarded; what comes in is one goroutine's.
type connection struct {
	run     *run
	number  int
	socket  net.Conn
	reader  *bufio.Reader
	framer  *http2.Framer
	decoder *hpack.Decoder
	status  string
	message string

	guard   sync.Mutex
	writer  *bufio.Writer
	encoder *hpack.Encoder
	block   bytes.Buffer
	lanes   []*lane
	streams map[uint32]*lane
	stream  uint32
	// What the peer takes now, and who waits until it takes more.
	window   int64
	starved  []*lane
	received int64
	sent     int64
	samples  []sample
	stopped  bool
}

// dial connects the index-th connection and gives it its share of the lanes.
func dial(r *run, index int) (*connection, error) {
	socket, err := net.Dial("tcp", r.Address)
	if err != nil {
		return nil, err
	}
	c := &connection{run: r, number: index, socket: socket, stream: 1, window: 65_535, streams: map[uint32]*lane{}}
	c.reader, c.writer = bufio.NewReaderSize(socket, 1<<18), bufio.NewWriterSize(socket, 1<<18)
	c.framer = http2.NewFramer(c.writer, c.reader)
	c.framer.SetReuseFrames()
	c.encoder = hpack.NewEncoder(&c.block)
	c.decoder = hpack.NewDecoder(4096, func(field hpack.HeaderField) {
		switch field.Name {
		case "grpc-status":
			c.status = field.Value
		case "grpc-message":
			c.message = field.Value
		}
	})
	for number := index; number < r.Lanes; number += r.Connections {
		c.lanes = append(c.lanes, &lane{number: number})
	}
	c.writer.WriteString(http2.ClientPreface)
	c.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: wide}, http2.Setting{ID: http2.SettingEnablePush, Val: 0})
	c.framer.WriteWindowUpdate(0, wide-65_535)
	return c, c.writer.Flush()
}

// stop ends the connection; afterwards nobody touches what it counted.
func (c *connection) stop() {
	c.guard.Lock()
	defer c.guard.Unlock()
	c.stopped = true
	c.socket.Close()
}

// waiting is how many calls are not answered yet.
func (c *connection) waiting() int64 {
	c.guard.Lock()
	defer c.guard.Unlock()
	return c.sent - int64(len(c.samples))
}

// serve begins the scripts and follows what is answered, until the connection ends.
func (c *connection) serve(began time.Time) {
	c.guard.Lock()
	if c.run.Rate == 0 {
		for _, one := range c.lanes {
			c.begin(one, time.Now())
		}
	} else {
		go c.pace(began)
	}
	c.writer.Flush()
	c.guard.Unlock()
	for {
		got, err := c.framer.ReadFrame()
		if err == nil {
			c.guard.Lock()
			if c.stopped {
				c.guard.Unlock()
				return
			}
			err = c.take(got)
			if err == nil && c.reader.Buffered() == 0 {
				err = c.writer.Flush()
			}
			c.guard.Unlock()
		}
		if err != nil {
			c.guard.Lock()
			defer c.guard.Unlock()
			if !c.stopped {
				c.run.fail(err)
			}
			return
		}
	}
}

// pace begins scripts by the clock, this connection's share of them.
func (c *connection) pace(began time.Time) {
	between := time.Duration(float64(time.Second) * float64(c.run.Connections) / c.run.Rate)
	due := began.Add(between * time.Duration(c.number) / time.Duration(c.run.Connections))
	for turn := 0; ; turn++ {
		select {
		case <-c.run.over:
			return
		case <-time.After(time.Until(due)):
		}
		c.guard.Lock()
		if c.run.ended() {
			c.guard.Unlock()
			return
		}
		one := c.lanes[turn%len(c.lanes)]
		if one.busy {
			one.due = append(one.due, due)
		} else {
			c.begin(one, due)
		}
		c.writer.Flush()
		c.guard.Unlock()
		due = due.Add(between)
	}
}

// begin begins another script.
func (c *connection) begin(one *lane, due time.Time) {
	one.script, one.step, one.busy = c.run.next(), -1, true
	c.onward(one, due)
}

// onward sends the script's next call, or begins the next script.
func (c *connection) onward(one *lane, now time.Time) {
	for one.step++; one.step < len(c.run.Script); one.step++ {
		if every := c.run.Script[one.step].Every; every == 0 || one.script%every == 0 {
			one.asked = now
			c.compose(one)
			return
		}
	}
	switch {
	case c.run.Rate == 0:
		c.begin(one, now)
	case len(one.due) > 0:
		due := one.due[0]
		one.due = one.due[1:]
		c.begin(one, due)
	default:
		one.busy = false
	}
}

// compose makes the request of a lane's step, and sends it where the peer takes it now.
func (c *connection) compose(one *lane) {
	at := &c.run.Script[one.step]
	which := one.script
	if at.PerLane {
		which = int64(one.number)
	}
	body := append(one.request[:0], 0, 0, 0, 0, 0)
	body = append(body, at.bodies[which%int64(len(at.bodies))]...)
	for rest := body; ; {
		place := bytes.Index(rest, serial)
		if place < 0 {
			break
		}
		copy(rest[place:], fmt.Sprintf("%08d", one.script%100_000_000))
		rest = rest[place+len(serial):]
	}
	if at.Known && one.hash != nil {
		body = binary.AppendUvarint(body, known<<3|2) // the last field of a number wins
		body = binary.AppendUvarint(body, uint64(len(one.hash)))
		body = append(body, one.hash...)
	}
	binary.BigEndian.PutUint32(body[1:], uint32(len(body)-5))
	one.request, one.keep = body, at.Known
	if len(body) > most {
		c.run.fail(fmt.Errorf("a request of %s has %d bytes: more than this program sends", at.Method, len(body)))
		return
	}
	c.send(one)
}

// send writes a lane's request, or has it wait.
func (c *connection) send(one *lane) {
	if int64(len(one.request)) > c.window {
		c.starved = append(c.starved, one)
		return
	}
	c.window -= int64(len(one.request))
	c.block.Reset()
	for _, field := range [...]hpack.HeaderField{
		{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "http"}, {Name: ":path", Value: c.run.Script[one.step].path},
		{Name: ":authority", Value: c.run.Address}, {Name: "te", Value: "trailers"}, {Name: "content-type", Value: "application/grpc"},
	} {
		c.encoder.WriteField(field)
	}
	c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: c.stream, BlockFragment: c.block.Bytes(), EndHeaders: true})
	for body := one.request; ; body = body[frame:] {
		if len(body) <= frame {
			c.framer.WriteData(c.stream, true, body)
			break
		}
		c.framer.WriteData(c.stream, false, body[:frame])
	}
	c.streams[c.stream] = one
	c.stream += 2
	c.sent++
	one.size, one.reply = 0, one.reply[:0]
}

// take follows one frame.
func (c *connection) take(got http2.Frame) error {
	switch got := got.(type) {
	case *http2.DataFrame:
		c.received += int64(got.Length)
		if c.received > 1<<30 {
			c.framer.WriteWindowUpdate(0, uint32(c.received))
			c.received = 0
		}
		if one := c.streams[got.StreamID]; one != nil {
			one.size += len(got.Data())
			if one.keep {
				one.reply = append(one.reply, got.Data()...)
			}
		}
	case *http2.HeadersFrame:
		return c.headers(got)
	case *http2.WindowUpdateFrame:
		if got.StreamID == 0 {
			c.window += int64(got.Increment)
			waiting := c.starved
			c.starved = nil
			for _, one := range waiting {
				c.send(one)
			}
		}
	case *http2.SettingsFrame:
		if !got.IsAck() {
			return c.framer.WriteSettingsAck()
		}
	case *http2.PingFrame:
		if !got.IsAck() {
			return c.framer.WritePing(true, got.Data)
		}
	case *http2.RSTStreamFrame:
		return fmt.Errorf("a call was reset: %v", got.ErrCode)
	case *http2.GoAwayFrame:
		return fmt.Errorf("the server goes: %v %s", got.ErrCode, got.DebugData())
	}
	return nil
}

// headers follows what stands before a reply or behind it.
func (c *connection) headers(got *http2.HeadersFrame) error {
	if !got.HeadersEnded() {
		return errors.New("headers in several frames")
	}
	c.status, c.message = "", ""
	if _, err := c.decoder.Write(got.HeaderBlockFragment()); err != nil {
		return err
	}
	if !got.StreamEnded() {
		return nil
	}
	one := c.streams[got.StreamID]
	if one == nil {
		return nil
	}
	delete(c.streams, got.StreamID)
	if c.status != "0" {
		code, _ := strconv.Atoi(c.status)
		return fmt.Errorf("%s: status %d: %s", c.run.Script[one.step].Method, code, c.message)
	}
	now := time.Now()
	c.samples = append(c.samples, sample{now, now.Sub(one.asked), int32(one.size - 5), int32(one.step)})
	if one.keep && len(one.reply) > 5 {
		hash, err := last(one.reply[5:], named)
		if err != nil {
			return err
		}
		one.hash = append(one.hash[:0], hash...)
	}
	if !c.run.ended() {
		c.onward(one, now)
	}
	return nil
}

// last is the last bytes field of this number in an encoded message.
func last(message []byte, number uint64) ([]byte, error) {
	var found []byte
	for len(message) > 0 {
		tag, n := binary.Uvarint(message)
		if n <= 0 {
			return nil, io.ErrUnexpectedEOF
		}
		message = message[n:]
		size := uint64(0)
		switch tag & 7 {
		case 0:
			if _, n = binary.Uvarint(message); n <= 0 {
				return nil, io.ErrUnexpectedEOF
			}
			size = uint64(n)
		case 1:
			size = 8
		case 5:
			size = 4
		case 2:
			if size, n = binary.Uvarint(message); n <= 0 {
				return nil, io.ErrUnexpectedEOF
			}
			message = message[n:]
		default:
			return nil, fmt.Errorf("a reply has wire type %d", tag&7)
		}
		if size > uint64(len(message)) {
			return nil, io.ErrUnexpectedEOF
		}
		if tag>>3 == number {
			found = message[:size]
		}
		message = message[size:]
	}
	return found, nil
}
