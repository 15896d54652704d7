// Command driver is the load of the benchmarks: gRPC calls as HTTP/2 frames, with requests that are made up as they go out. It reads
// of a reply its status and, where the next request names it, the hash of the list; nothing else is parsed and nothing is waited for,
// so that it costs a small part of what the barest server does.
//
//	driver < load.json
//
// Prints one line of JSON.
package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// load is what is sent, and to whom.
type load struct {
	Address string `json:"address"`
	// The process whose processor time is told.
	Pid         int `json:"pid"`
	Connections int `json:"connections"`
	// How many scripts are at work at once, spread over the connections. A lane does one after the other.
	Lanes int `json:"lanes"`
	// Scripts a second that are offered in all, by the clock: one that finds its lane busy waits, and its wait counts. 0: each lane
	// begins the next one when the last is done.
	Rate float64 `json:"rate"`
	// Seconds before anything counts, and seconds that count.
	Warm    float64 `json:"warm"`
	Seconds float64 `json:"seconds"`
	// The number of the first script: scripts of two runs have none in common.
	First int64 `json:"first"`
	// What a script does, in order.
	Script []step `json:"script"`
}

// step is one call of a script.
type step struct {
	// package.Service/Rpc.
	Method string `json:"method"`
	// A file of encoded requests, each behind its length in four bytes. In each, %SERIAL% stands for the script's number.
	Bodies string `json:"bodies"`
	// A lane sends the body of its own number; else the bodies go round with the scripts.
	PerLane bool `json:"per_lane"`
	// Names the list that the reply of the lane's last such call made.
	Known bool `json:"known"`
	// Only every so many scripts have this step. 0: all.
	Every int64 `json:"every"`

	bodies [][]byte
	path   string
}

// told is what the load did within the time that counts. Times in seconds.
type told struct {
	Rate float64 `json:"rate"`
	// Of the server and of this program, a call.
	CPU   float64 `json:"cpu"`
	Own   float64 `json:"own"`
	Calls int64   `json:"calls"`
	// Answered and sent in all, before and after the time that counts as well.
	Answered int64                `json:"answered"`
	Sent     int64                `json:"sent"`
	Scripts  int64                `json:"scripts"`
	Methods  map[string]latencies `json:"methods"`
	Failure  string               `json:"failure,omitempty"`
}

// latencies are those of one method, or of all.
type latencies struct {
	Calls int     `json:"calls"`
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p999"`
	Max   float64 `json:"max"`
	Bytes float64 `json:"bytes"`
	// The latest of them, at most 100: when each was answered, since 1970, and how long it took.
	Latest [][2]float64 `json:"latest"`
}

// run is a load at work.
type run struct {
	load
	guard   sync.Mutex
	serial  int64
	failure error
	over    chan struct{}
}

func main() {
	var r run
	if err := json.NewDecoder(os.Stdin).Decode(&r.load); err != nil {
		log.Fatal(err)
	}
	for i := range r.Script {
		if err := r.Script[i].read(); err != nil {
			log.Fatal(err)
		}
	}
	r.serial, r.over = r.First, make(chan struct{})
	result := r.drive()
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		log.Fatal(err)
	}
}

// read fills the step with its requests.
func (s *step) read() error {
	content, err := os.ReadFile(s.Bodies)
	if err != nil {
		return err
	}
	for len(content) >= 4 {
		size := binary.BigEndian.Uint32(content)
		s.bodies = append(s.bodies, content[4:4+size])
		content = content[4+size:]
	}
	if len(s.bodies) == 0 {
		return fmt.Errorf("%s holds no request", s.Bodies)
	}
	s.path = "/" + s.Method
	return nil
}

// drive runs the load and counts what was answered within its time.
func (r *run) drive() told {
	var connections []*connection
	for i := range r.Connections {
		c, err := dial(r, i)
		if err != nil {
			return told{Failure: err.Error()}
		}
		connections = append(connections, c)
	}
	began := time.Now()
	for _, c := range connections {
		go c.serve(began)
	}
	r.sleep(r.Warm)
	from, server, own := time.Now(), processor(r.Pid), processor(os.Getpid())
	r.sleep(r.Seconds)
	to, server, own := time.Now(), processor(r.Pid)-server, processor(os.Getpid())-own
	if r.failure == nil {
		close(r.over)
	}
	r.finish(connections)
	result := told{Methods: map[string]latencies{}}
	var all []sample
	kinds := map[string][]sample{}
	for _, c := range connections {
		c.stop()
		result.Sent += c.sent
		result.Answered += int64(len(c.samples))
		for _, one := range c.samples {
			if one.ended.After(from) && !one.ended.After(to) {
				all = append(all, one)
				method := r.Script[one.step].Method
				kinds[method] = append(kinds[method], one)
			}
		}
	}
	for method, samples := range kinds {
		result.Methods[method] = summed(samples)
	}
	result.Methods[""] = summed(all)
	result.Calls, result.Scripts = int64(len(all)), r.serial-r.First
	if len(all) > 0 {
		result.Rate = float64(len(all)) / to.Sub(from).Seconds()
		result.CPU, result.Own = server/float64(len(all)), own/float64(len(all))
	}
	if r.failure != nil {
		result.Failure = r.failure.Error()
	} else if len(all) == 0 {
		result.Failure = "no call was answered"
	}
	return result
}

// finish gives what was sent some time to be answered, so that what the server did and what was counted are the same.
func (r *run) finish(connections []*connection) {
	for range 500 {
		waiting := int64(0)
		for _, c := range connections {
			waiting += c.waiting()
		}
		if waiting == 0 || r.failure != nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// sleep waits, unless something fails.
func (r *run) sleep(seconds float64) {
	select {
	case <-r.over:
	case <-time.After(time.Duration(seconds * float64(time.Second))):
	}
}

// fail ends the run: the first failure is told.
func (r *run) fail(err error) {
	r.guard.Lock()
	defer r.guard.Unlock()
	if r.failure == nil {
		select {
		case <-r.over:
		default:
			r.failure = err
			close(r.over)
		}
	}
}

// ended tells whether nothing is to be sent any more. Whoever sends asks under the guard of his connection, so that what was sent is
// known once all guards were held.
func (r *run) ended() bool {
	select {
	case <-r.over:
		return true
	default:
		return false
	}
}

// next is the number of another script.
func (r *run) next() int64 {
	r.guard.Lock()
	defer r.guard.Unlock()
	r.serial++
	return r.serial - 1
}

// summed tells of calls what is asked of them.
func summed(samples []sample) latencies {
	slices.SortFunc(samples, func(a, b sample) int { return int(a.took - b.took) })
	count := len(samples)
	if count == 0 {
		return latencies{}
	}
	at := func(share float64) float64 { return samples[min(count-1, int(share*float64(count)))].took.Seconds() }
	result := latencies{Calls: count, P50: at(0.5), P99: at(0.99), P999: at(0.999), Max: at(1)}
	for _, one := range samples {
		result.Bytes += float64(one.size) / float64(count)
	}
	for _, one := range samples[max(0, count-100):] {
		result.Latest = append(result.Latest, [2]float64{float64(one.ended.UnixMicro()) / 1e6, one.took.Seconds()})
	}
	return result
}

// processor is the time in seconds that a process has had of the processors, all its threads together.
func processor(pid int) float64 {
	if pid == 0 {
		return 0
	}
	var had syscall.Timespec
	clock := uintptr(^pid<<3 | 2) // CPUCLOCK_SCHED of a process, as clock_getcpuclockid(3) makes it
	if _, _, failed := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&had)), 0); failed != 0 {
		return 0
	}
	return float64(had.Nano()) / 1e9
}
