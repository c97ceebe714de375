// What Go's SPDY framer costs (github.com/moby/spdystream/spdy, under Kubernetes): the three loads of ../../bench, in memory,
// each for a second. A framer keeps no streams and no windows: this is less than what a session does.
//
//	bench HEADS.json
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/moby/spdystream/spdy"
)

const (
	smallFrames = 10_000
	smallLen    = 100
	exchanges   = 100
	dataFrames  = 512
	dataLen     = 16 << 10
)

// end is one direction of a connection: what is written to it can be read from it.
type end struct {
	buffer bytes.Buffer
	framer *spdy.Framer
}

func newEnd() *end {
	e := new(end)
	framer, err := spdy.NewFramer(&e.buffer, &e.buffer)
	check(err)
	e.framer = framer
	return e
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (e *end) data(count, length int) {
	body := make([]byte, length)
	for i := range count {
		flags := spdy.DataFlags(0)
		if i == count-1 {
			flags = spdy.DataFlagFin
		}
		check(e.framer.WriteFrame(&spdy.DataFrame{StreamId: 1, Flags: flags, Data: body}))
	}
	for range count {
		frame, err := e.framer.ReadFrame()
		check(err)
		if data, is := frame.(*spdy.DataFrame); !is || len(data.Data) != length {
			check(fmt.Errorf("not the frame that was written: %T", frame))
		}
	}
}

type heads struct {
	Request, Response map[string]string
}

func (h heads) header(fields map[string]string, i int) http.Header {
	header := make(http.Header, len(fields))
	for name, value := range fields {
		header[name] = []string{strings.Replace(value, "{}", strconv.Itoa(i), 1)}
	}
	return header
}

// exchange is a request and its response, each written and read.
func exchange(up, down *end, h heads, i int) {
	id := spdy.StreamId(2*i + 1)
	check(up.framer.WriteFrame(&spdy.SynStreamFrame{StreamId: id, CFHeader: spdy.ControlFrameHeader{Flags: spdy.ControlFlagFin}, Headers: h.header(h.Request, i)}))
	asked, err := up.framer.ReadFrame()
	check(err)
	check(down.framer.WriteFrame(&spdy.SynReplyFrame{StreamId: id, CFHeader: spdy.ControlFrameHeader{Flags: spdy.ControlFlagFin}, Headers: h.header(h.Response, i)}))
	answered, err := down.framer.ReadFrame()
	check(err)
	if len(asked.(*spdy.SynStreamFrame).Headers) != len(h.Request) || len(answered.(*spdy.SynReplyFrame).Headers) != len(h.Response) {
		check(fmt.Errorf("fields were lost"))
	}
}

// rate runs work until a second has passed, after a fifth of one for nothing; each run is units.
func rate(units float64, work func()) float64 {
	for start := time.Now(); time.Since(start) < 200*time.Millisecond; {
		work()
	}
	start, runs := time.Now(), 0.0
	for time.Since(start) < time.Second {
		work()
		runs++
	}
	return runs * units / time.Since(start).Seconds()
}

func main() {
	text, err := os.ReadFile(os.Args[1])
	check(err)
	var h heads
	check(json.Unmarshal(text, &h))
	small, large := newEnd(), newEnd()
	up, down, next := newEnd(), newEnd(), 0
	result := map[string]float64{
		"frames": rate(smallFrames, func() { small.data(smallFrames, smallLen) }),
		"blocks": rate(2*exchanges, func() {
			for range exchanges {
				exchange(up, down, h, next)
				next++
			}
		}),
		"bytes": rate(dataFrames*dataLen, func() { large.data(dataFrames, dataLen) }),
	}
	check(json.NewEncoder(os.Stdout).Encode(result))
}
