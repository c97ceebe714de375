// Package contract is what every peer of the interop matrix agrees on: bodies, the command line, how a run ends.
// The contract itself is interop/README.md.
package contract

import (
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// Modulus of the pattern: byte i of a body is i % Modulus.
	Modulus = 251
	// Large is the length of the large bodies, in bytes.
	Large = 400_000
	// Huge is the length of the body during which a client says GOAWAY: more than any peer's window.
	Huge = 30_000_000
	// Pushed is the length of the pushed resource.
	Pushed = 1_000
	// EndlessMax is where an endless body ends all the same.
	EndlessMax = 64 << 20
	// Parallel streams of `parallel100`; stream i asks for ParallelBase + i bytes.
	Parallel     = 100
	ParallelBase = 5_000
	// Frame is how many bytes a peer writes at a time.
	Frame = 16_384
	// Step and StepPause: how /goaway is written, so that its GOAWAY finds it in flight.
	Step      = 20_000
	StepPause = 10 * time.Millisecond

	Small  = "hello, spdy\n"
	Pusher = "pusher\n"

	limit = 40 * time.Second
	// Answer is how long one answer may be silent, so that a stall is found before the run's time is up.
	Answer = 8 * time.Second

	// patience is how long a reset may be on its way within this process, pause how often it is looked for.
	patience = 5 * time.Second
	pause    = 10 * time.Millisecond
)

// ErrCannot wraps the reason why a library has no means for a scenario.
var ErrCannot = errors.New("cannot")

// Cannot is such a reason.
func Cannot(reason string) error { return fmt.Errorf("%w %s", ErrCannot, reason) }

// Pattern is the pattern's bytes from, …, from+length-1.
func Pattern(from, length int) []byte {
	bytes := make([]byte, length)
	for i := range bytes {
		bytes[i] = byte((from + i) % Modulus)
	}
	return bytes
}

// Receipt is what an upload is answered: its length and its CRC-32/IEEE.
func Receipt(body []byte) string {
	return fmt.Sprintf("%d %08x", len(body), crc32.ChecksumIEEE(body))
}

// Expect reads from until its end and compares all with want.
func Expect(what string, from io.Reader, want []byte) error {
	var got []byte
	done := make(chan error, 1)
	var lock sync.Mutex
	silent := time.NewTimer(Answer)
	defer silent.Stop()
	go func() {
		buffer := make([]byte, 32<<10)
		for {
			n, err := from.Read(buffer)
			lock.Lock()
			fault := compare(what, len(got), buffer[:n], want)
			got = append(got, buffer[:n]...)
			lock.Unlock()
			silent.Reset(Answer)
			if fault == nil && err == nil {
				continue
			}
			if fault == nil && !errors.Is(err, io.EOF) {
				fault = fmt.Errorf("%s: %w", what, err)
			}
			done <- fault
			return
		}
	}()
	select {
	case err := <-done:
		if err == nil && len(got) != len(want) {
			err = fmt.Errorf("%s: ended after %d of %d bytes", what, len(got), len(want))
		}
		return err
	case <-silent.C:
		lock.Lock()
		defer lock.Unlock()
		return fmt.Errorf("%s: silent for %s after %d of %d bytes", what, Answer, len(got), len(want))
	}
}

func compare(what string, at int, chunk, want []byte) error {
	if at+len(chunk) > len(want) {
		return fmt.Errorf("%s: more than %d bytes", what, len(want))
	}
	for i, b := range chunk {
		if b != want[at+i] {
			return fmt.Errorf("%s: byte %d is %d, not %d", what, at+i, b, want[at+i])
		}
	}
	return nil
}

// Options are a peer's command line.
type Options struct {
	Verb, Version, Cert, Key, Scenario string
	TLS                                bool
	Port                               int
}

// Parse reads the command line of a peer that speaks versions; it exits with 2 if there is none.
func Parse(versions ...string) Options {
	var options Options
	set := flag.NewFlagSet("peer", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&options.Version, "version", "", "")
	set.StringVar(&options.Cert, "cert", "", "")
	set.StringVar(&options.Key, "key", "", "")
	set.BoolVar(&options.TLS, "tls", false, "")
	set.IntVar(&options.Port, "port", 0, "")
	good := false
	if len(os.Args) > 1 && set.Parse(os.Args[2:]) == nil {
		options.Verb = os.Args[1]
		options.Scenario = set.Arg(0)
		known := false
		for _, version := range versions {
			known = known || version == options.Version
		}
		serve := options.Verb == "serve" && (!options.TLS || options.Cert != "" && options.Key != "")
		fetch := options.Verb == "fetch" && options.Port > 0 && set.NArg() == 1
		good = known && (serve || fetch)
	}
	if !good {
		fmt.Fprintf(os.Stderr, "usage: serve --version V [--tls --cert FILE --key FILE]\n"+
			"       fetch --version V [--tls] --port PORT SCENARIO\nV is one of %s\n", strings.Join(versions, ", "))
		os.Exit(2)
	}
	return options
}

// Listen binds a free port on loopback; protocol is for ALPN.
func Listen(options Options, protocol string) (net.Listener, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil || !options.TLS {
		return listener, err
	}
	pair, err := tls.LoadX509KeyPair(options.Cert, options.Key)
	if err != nil {
		return nil, err
	}
	return tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{protocol}}), nil
}

// Dial connects to the server; protocol is for ALPN, and has to be agreed on.
func Dial(options Options, protocol string) (net.Conn, error) {
	address := fmt.Sprintf("127.0.0.1:%d", options.Port)
	if !options.TLS {
		return net.Dial("tcp", address)
	}
	conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}})
	if err != nil {
		return nil, err
	}
	if got := conn.ConnectionState().NegotiatedProtocol; got != protocol {
		return nil, fmt.Errorf("ALPN gave %q, not %s", got, protocol)
	}
	return conn, nil
}

var output sync.Mutex

func say(line string) {
	output.Lock()
	defer output.Unlock()
	fmt.Println(strings.Join(strings.Fields(line), " "))
}

// Announce says where the server listens, and returns when standard input has ended or SIGTERM came.
func Announce(listener net.Listener) {
	say(fmt.Sprintf("listening %d", listener.Addr().(*net.TCPAddr).Port))
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		end <- syscall.SIGTERM
	}()
	<-end
}

// CancelledIf says that the client has reset an endless stream, if it has. The library hands a stream its reset from another
// goroutine than the one that finds the connection closed, and on a busy machine later; hence the patience.
func CancelledIf(finished func() bool) {
	for waited := time.Duration(0); waited < patience; waited += pause {
		if finished() {
			say("cancelled")
			return
		}
		time.Sleep(pause)
	}
}

// Conclude runs a scenario and ends the process as the contract says.
func Conclude(run func() (string, error)) {
	type outcome struct {
		detail string
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		detail, err := run()
		done <- outcome{detail, err}
	}()
	select {
	case o := <-done:
		switch {
		case o.err == nil:
			say("ok " + o.detail)
			os.Exit(0)
		case errors.Is(o.err, ErrCannot):
			say(o.err.Error())
			os.Exit(3)
		default:
			say("fail " + o.err.Error())
			os.Exit(1)
		}
	case <-time.After(limit):
		say(fmt.Sprintf("fail no end after %s", limit))
		os.Exit(1)
	}
}
