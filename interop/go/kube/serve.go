package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/apimachinery/pkg/util/httpstream/spdy"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/client-go/tools/portforward"

	"velodrome-interop/internal/contract"
)

func serve(options contract.Options) error {
	listener, err := contract.Listen(options, alpn)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/streams", func(w http.ResponseWriter, r *http.Request) { upgrade(w, r, new(streams)) })
	mux.HandleFunc("/exec", func(w http.ResponseWriter, r *http.Request) {
		if _, err := httpstream.Handshake(r, w, []string{remotecommand.StreamProtocolV4Name}); err == nil {
			upgrade(w, r, &execution{byType: map[string]httpstream.Stream{}})
		}
	})
	mux.HandleFunc("/portforward", func(w http.ResponseWriter, r *http.Request) {
		if _, err := httpstream.Handshake(r, w, []string{portforward.PortForwardProtocolV1Name}); err == nil {
			upgrade(w, r, &forwarding{pairs: map[string]*pair{}})
		}
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(listener) }()
	contract.Announce(listener)
	return nil
}

// service is what answers the streams of one connection. accept may refuse; it must not wait, and the stream's reply is
// sent after it (replySent).
type service interface {
	accept(connection func() httpstream.Connection, stream httpstream.Stream, replySent <-chan struct{}) error
}

func upgrade(w http.ResponseWriter, r *http.Request, service service) {
	// The first stream may come before UpgradeResponse has returned the connection.
	var connection httpstream.Connection
	known := make(chan struct{})
	wait := func() httpstream.Connection { <-known; return connection }
	connection = spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, replySent <-chan struct{}) error {
		return service.accept(wait, s, replySent)
	})
	close(known)
	if connection != nil {
		<-connection.CloseChan()
		_ = connection.Close()
	}
}

// streams are the bare ones: `streamtype` says what each does.
type streams struct{}

func (*streams) accept(connection func() httpstream.Connection, stream httpstream.Stream, replySent <-chan struct{}) error {
	var answer func()
	switch kind := stream.Headers().Get("streamtype"); kind {
	case "echo":
		answer = func() { _, _ = io.Copy(stream, stream); _ = stream.Close() }
	case "bytes":
		n, err := strconv.Atoi(stream.Headers().Get("n"))
		if err != nil || n < 0 || n > contract.EndlessMax {
			return fmt.Errorf("stream of n = %q bytes", stream.Headers().Get("n"))
		}
		answer = func() { write(stream, n, func() bool { return false }); _ = stream.Close() }
	case "sink":
		answer = func() {
			received, _ := io.ReadAll(stream)
			_, _ = io.WriteString(stream, contract.Receipt(received))
			_ = stream.Close()
		}
	case "endless":
		answer = func() { endless(stream) }
	case "goaway":
		answer = func() { _ = connection().Close() }
	default:
		return fmt.Errorf("streamtype %q", kind)
	}
	go func() { <-replySent; answer() }()
	return nil
}

// write sends n bytes of the pattern unless stopped; whether all were sent.
func write(stream io.Writer, n int, stopped func() bool) bool {
	for at := 0; at < n; at += contract.Frame {
		if stopped() {
			return false
		}
		if _, err := stream.Write(contract.Pattern(at, min(contract.Frame, n-at))); err != nil {
			return false
		}
	}
	return true
}

func endless(stream httpstream.Stream) {
	// httpstream.Stream does not say that it was reset; the stream of spdystream behind it is finished by that alone.
	state := stream.(interface{ IsFinished() bool })
	if write(stream, contract.EndlessMax, state.IsFinished) {
		_ = stream.Close()
		return
	}
	contract.CancelledIf(state.IsFinished)
}

// execution is one command, as a kubelet runs it with protocol v4: it answers stdin in upper case.
type execution struct {
	lock   sync.Mutex
	byType map[string]httpstream.Stream
	ready  sync.WaitGroup
}

func (e *execution) accept(_ func() httpstream.Connection, stream httpstream.Stream, replySent <-chan struct{}) error {
	kind := stream.Headers().Get(v1.StreamType)
	switch kind {
	case v1.StreamTypeError, v1.StreamTypeStdin, v1.StreamTypeStdout, v1.StreamTypeStderr:
	default:
		return fmt.Errorf("%s %q", v1.StreamType, kind)
	}
	e.lock.Lock()
	defer e.lock.Unlock()
	if e.byType[kind] != nil {
		return fmt.Errorf("a second %s", kind)
	}
	e.byType[kind] = stream
	e.ready.Add(1)
	go func() { <-replySent; e.ready.Done() }()
	if len(e.byType) == 4 {
		go e.run()
	}
	return nil
}

func (e *execution) run() {
	e.ready.Wait()
	stdin, stdout := e.byType[v1.StreamTypeStdin], e.byType[v1.StreamTypeStdout]
	buffer := make([]byte, 32<<10)
	for {
		n, err := stdin.Read(buffer)
		if n > 0 {
			if _, err := stdout.Write(bytes.ToUpper(buffer[:n])); err != nil {
				return
			}
		}
		if err != nil {
			break
		}
	}
	_, _ = io.WriteString(e.byType[v1.StreamTypeStderr], "done\n")
	_, _ = io.WriteString(e.byType[v1.StreamTypeError], `{"metadata":{},"status":"Success"}`)
	for _, kind := range []string{v1.StreamTypeStdin, v1.StreamTypeStdout, v1.StreamTypeStderr, v1.StreamTypeError} {
		_ = e.byType[kind].Close()
	}
}

// forwarding echoes each forwarded connection: an error stream and a data stream with the same request id, which may come
// in either order (spdystream's workers overtake each other), as the kubelet takes them.
type forwarding struct {
	lock  sync.Mutex
	pairs map[string]*pair
}

type pair struct {
	faults, data httpstream.Stream
	replied      sync.WaitGroup
}

func (f *forwarding) accept(_ func() httpstream.Connection, stream httpstream.Stream, replySent <-chan struct{}) error {
	id := stream.Headers().Get(v1.PortForwardRequestIDHeader)
	port, err := strconv.ParseUint(stream.Headers().Get(v1.PortHeader), 10, 16)
	if id == "" || err != nil || port == 0 {
		return fmt.Errorf("%s %q, %s %q", v1.PortForwardRequestIDHeader, id, v1.PortHeader, stream.Headers().Get(v1.PortHeader))
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	p := f.pairs[id]
	if p == nil {
		p = new(pair)
		f.pairs[id] = p
	}
	var place *httpstream.Stream
	switch kind := stream.Headers().Get(v1.StreamType); kind {
	case v1.StreamTypeError:
		place = &p.faults
	case v1.StreamTypeData:
		place = &p.data
	default:
		return fmt.Errorf("%s %q", v1.StreamType, kind)
	}
	if *place != nil {
		return fmt.Errorf("a second stream of request %s", id)
	}
	*place = stream
	p.replied.Add(1)
	go func() { <-replySent; p.replied.Done() }()
	if p.faults != nil && p.data != nil {
		delete(f.pairs, id)
		go p.echo()
	}
	return nil
}

func (p *pair) echo() {
	p.replied.Wait()
	_, _ = io.Copy(p.data, p.data)
	_ = p.data.Close()
	_ = p.faults.Close()
}
