// Bare github.com/moby/spdystream as a peer: the SPDY/3 framing and streams below Kubernetes, here with HTTP's fields
// on them. It has no flow control, drops the fields of a SYN_REPLY (so no status is checked here), and wants a
// SYN_REPLY to a push. Contract: interop/README.md.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/moby/spdystream"

	"velodrome-interop/internal/contract"
)

func main() {
	options := contract.Parse("3", "3.1")
	if options.Verb == "serve" {
		if err := serve(options); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	contract.Conclude(func() (string, error) { return fetch(options) })
}

func protocol(options contract.Options) string { return "spdy/" + options.Version }

func serve(options contract.Options) error {
	listener, err := contract.Listen(options, protocol(options))
	if err != nil {
		return err
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serveConnection(conn)
		}
	}()
	contract.Announce(listener)
	return nil
}

func serveConnection(conn net.Conn) {
	session, err := spdystream.NewConnection(conn, true)
	if err != nil {
		conn.Close()
		return
	}
	session.Serve(func(stream *spdystream.Stream) { accept(session, stream) })
	conn.Close()
}

var bytesPath = regexp.MustCompile(`^/bytes/(\d{1,8})$`)

// accept is called by one of the five workers that bring all streams their frames. Data that comes before the reply is
// dropped, so it replies at once, but it must not wait for anything.
func accept(session *spdystream.Connection, stream *spdystream.Stream) {
	path := stream.Headers().Get(":path")
	if path == "/goaway" {
		// Close is spdystream's GOAWAY; it waits for the streams that are open.
		_ = session.Close()
	}
	answer, found := answerTo(path)
	status := "200 OK"
	if !found {
		status = "404 Not Found"
	}
	if stream.SendReply(http.Header{":status": {status}, ":version": {"HTTP/1.1"}}, false) == nil {
		go answer(stream)
	}
}

func answerTo(path string) (func(*spdystream.Stream), bool) {
	if matched := bytesPath.FindStringSubmatch(path); matched != nil {
		n, _ := strconv.Atoi(matched[1])
		return func(stream *spdystream.Stream) { finish(stream, contract.Pattern(0, n)) }, true
	}
	switch path {
	case "/small":
		return func(stream *spdystream.Stream) { finish(stream, []byte(contract.Small)) }, true
	case "/upload":
		return upload, true
	case "/push":
		return push, true
	case "/goaway":
		return slowly, true
	case "/endless":
		return endless, true
	}
	return func(stream *spdystream.Stream) { finish(stream, nil) }, false
}

func upload(stream *spdystream.Stream) {
	received, _ := io.ReadAll(stream)
	finish(stream, []byte(contract.Receipt(received)))
}

// finish writes a body, FIN on its last frame. Stream.Close alone would take the stream off the connection before it
// writes FIN, and a connection that waits to be closed could lose it.
func finish(stream *spdystream.Stream, body []byte) {
	for len(body) > contract.Frame {
		if stream.WriteData(body[:contract.Frame], false) != nil {
			return
		}
		body = body[contract.Frame:]
	}
	_ = stream.WriteData(body, true)
	_ = stream.Close()
}

func push(parent *spdystream.Stream) {
	asked := parent.Headers()
	fields := http.Header{":method": {"GET"}, ":scheme": {asked.Get(":scheme")}, ":host": {asked.Get(":host")},
		":path": {"/pushed"}, ":status": {"200 OK"}, ":version": {"HTTP/1.1"}}
	pushed, err := parent.CreateSubStream(fields, false)
	if err == nil {
		finish(pushed, contract.Pattern(0, contract.Pushed))
	}
	finish(parent, []byte(contract.Pusher))
}

func slowly(stream *spdystream.Stream) {
	for at := 0; at < contract.Large-contract.Step; at += contract.Step {
		if stream.WriteData(contract.Pattern(at, contract.Step), false) != nil {
			return
		}
		time.Sleep(contract.StepPause)
	}
	finish(stream, contract.Pattern(contract.Large-contract.Step, contract.Step))
}

func endless(stream *spdystream.Stream) {
	for at := 0; at < contract.EndlessMax; at += contract.Frame {
		lost := stream.WriteData(contract.Pattern(at, contract.Frame), false) != nil
		// A reset is all that finishes this side before it says so.
		if lost || stream.IsFinished() {
			contract.CancelledIf(stream.IsFinished)
			return
		}
	}
	finish(stream, nil)
}

// client is one connection.
type client struct {
	session *spdystream.Connection
	pushes  chan *spdystream.Stream
	gone    chan *spdystream.Stream
}

func fetch(options contract.Options) (string, error) {
	conn, err := contract.Dial(options, protocol(options))
	if err != nil {
		return "", err
	}
	session, err := spdystream.NewConnection(conn, false)
	if err != nil {
		return "", err
	}
	c := &client{session, make(chan *spdystream.Stream, 1), make(chan *spdystream.Stream, 1)}
	session.NotifyClose(c.gone, 0)
	go session.Serve(func(stream *spdystream.Stream) {
		// Without a reply, the library drops what comes on the stream.
		_ = stream.SendReply(http.Header{}, true)
		select {
		case c.pushes <- stream:
		default:
		}
	})
	return c.run(options.Scenario)
}

func (c *client) run(scenario string) (string, error) {
	switch scenario {
	case "small":
		return "12 bytes", c.get("/small", []byte(contract.Small))
	case "get400k":
		return "400000 bytes", c.get("/bytes/400000", contract.Pattern(0, contract.Large))
	case "post400k":
		return "400000 bytes sent", c.post()
	case "parallel100":
		return "100 answers", c.parallel()
	case "push":
		return "1000 bytes pushed", c.pushed()
	case "cancel":
		return "cancelled, then /small", c.cancel()
	case "goaway":
		return "400000 bytes past GOAWAY", c.goaway()
	case "goaway-client":
		return "30000000 bytes, most of them after GOAWAY", c.goawayClient()
	}
	return "", contract.Cannot("nothing like " + scenario)
}

func (c *client) open(method, path string) (*spdystream.Stream, error) {
	fields := http.Header{":method": {method}, ":scheme": {"http"}, ":host": {"127.0.0.1"}, ":path": {path},
		":version": {"HTTP/1.1"}}
	stream, err := c.session.CreateStream(fields, nil, method == "GET")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := stream.WaitTimeout(contract.Answer); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return stream, nil
}

func (c *client) get(path string, want []byte) error {
	stream, err := c.open("GET", path)
	if err != nil {
		return err
	}
	return contract.Expect(path, stream, want)
}

func (c *client) post() error {
	// Node and Jetty reply only once they have the body, so no reply can be waited for before it is sent.
	fields := http.Header{":method": {"POST"}, ":scheme": {"http"}, ":host": {"127.0.0.1"}, ":path": {"/upload"},
		":version": {"HTTP/1.1"}}
	stream, err := c.session.CreateStream(fields, nil, false)
	if err != nil {
		return err
	}
	body := contract.Pattern(0, contract.Large)
	for at := 0; at < len(body); at += contract.Frame {
		end := min(at+contract.Frame, len(body))
		if err := stream.WriteData(body[at:end], end == len(body)); err != nil {
			return err
		}
	}
	if err := stream.WaitTimeout(contract.Answer); err != nil {
		return fmt.Errorf("/upload: %w", err)
	}
	return contract.Expect("/upload", stream, []byte(contract.Receipt(body)))
}

func (c *client) parallel() error {
	faults := make([]error, contract.Parallel)
	var all sync.WaitGroup
	for i := range faults {
		all.Add(1)
		go func() {
			defer all.Done()
			length := contract.ParallelBase + i
			faults[i] = c.get(fmt.Sprintf("/bytes/%d", length), contract.Pattern(0, length))
		}()
	}
	all.Wait()
	for _, fault := range faults {
		if fault != nil {
			return fault
		}
	}
	return nil
}

func (c *client) pushed() error {
	if err := c.get("/push", []byte(contract.Pusher)); err != nil {
		return err
	}
	select {
	case stream := <-c.pushes:
		if path := stream.Headers().Get(":path"); path != "/pushed" {
			return fmt.Errorf("pushed %q", path)
		}
		return contract.Expect("/pushed", stream, contract.Pattern(0, contract.Pushed))
	case <-time.After(contract.Answer):
		return fmt.Errorf("no push within %s of its page", contract.Answer)
	}
}

func (c *client) cancel() error {
	stream, err := c.open("GET", "/endless")
	if err != nil {
		return err
	}
	first := make([]byte, 1)
	if _, err := io.ReadFull(stream, first); err != nil || first[0] != 0 {
		return fmt.Errorf("/endless: no data: %v", err)
	}
	// Reset would send nothing: the library takes a stream that it has half-closed for finished.
	if err := stream.Cancel(); err != nil {
		return err
	}
	go func() { _, _ = io.Copy(io.Discard, stream) }()
	return c.get("/small", []byte(contract.Small))
}

func (c *client) goaway() error {
	stream, err := c.open("GET", "/goaway")
	if err != nil {
		return err
	}
	if err := contract.Expect("/goaway", stream, contract.Pattern(0, contract.Large)); err != nil {
		return err
	}
	select {
	case <-c.gone:
		return nil
	case <-time.After(contract.Answer):
		return fmt.Errorf("no GOAWAY")
	}
}

func (c *client) goawayClient() error {
	path := fmt.Sprintf("/bytes/%d", contract.Huge)
	stream, err := c.open("GET", path)
	if err != nil {
		return err
	}
	if err := c.session.Close(); err != nil {
		return err
	}
	return contract.Expect(path, stream, contract.Pattern(0, contract.Huge))
}
