package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/apimachinery/pkg/util/httpstream/spdy"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	clientspdy "k8s.io/client-go/transport/spdy"

	"velodrome-interop/internal/contract"
)

func fetch(options contract.Options) (string, error) {
	switch options.Scenario {
	case "exec":
		return execute(options)
	case "portforward":
		return forward(options)
	case "small", "get400k", "post400k", "parallel100", "cancel", "goaway":
		connection, err := connect(options)
		if err != nil {
			return "", err
		}
		defer connection.Close()
		return run(connection, options.Scenario)
	}
	return "", contract.Cannot("streams of Kubernetes have nothing like " + options.Scenario)
}

func address(options contract.Options, path string) *url.URL {
	scheme := "http"
	if options.TLS {
		scheme = "https"
	}
	return &url.URL{Scheme: scheme, Host: fmt.Sprintf("127.0.0.1:%d", options.Port), Path: path}
}

func connect(options contract.Options) (httpstream.Connection, error) {
	transport, err := spdy.NewRoundTripper(&tls.Config{InsecureSkipVerify: true, NextProtos: []string{alpn}})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequest(http.MethodPost, address(options, "/streams").String(), nil)
	if err != nil {
		return nil, err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	return transport.NewConnection(response)
}

func run(connection httpstream.Connection, scenario string) (string, error) {
	switch scenario {
	case "get400k":
		return "400000 bytes", get(connection, contract.Large)
	case "post400k":
		body := contract.Pattern(0, contract.Large)
		return "400000 bytes sent", exchange(connection, "sink", body, []byte(contract.Receipt(body)))
	case "parallel100":
		return "100 answers", parallel(connection)
	case "cancel":
		return "cancelled, then echo", cancel(connection)
	case "goaway":
		return "the connection closed after GOAWAY", goaway(connection)
	}
	return "12 bytes", small(connection)
}

func open(connection httpstream.Connection, kind string, n int) (httpstream.Stream, error) {
	fields := http.Header{}
	fields.Set("streamtype", kind)
	if n > 0 {
		fields.Set("n", strconv.Itoa(n))
	}
	stream, err := connection.CreateStream(fields)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	return stream, nil
}

// exchange writes body and half-closes while it reads what has to be want.
func exchange(connection httpstream.Connection, kind string, body, want []byte) error {
	stream, err := open(connection, kind, 0)
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(stream, bytes.NewReader(body))
		_ = stream.Close()
	}()
	return contract.Expect(kind, stream, want)
}

func small(connection httpstream.Connection) error {
	return exchange(connection, "echo", []byte(contract.Small), []byte(contract.Small))
}

func get(connection httpstream.Connection, n int) error {
	stream, err := open(connection, "bytes", n)
	if err != nil {
		return err
	}
	defer stream.Close()
	return contract.Expect(fmt.Sprintf("%d bytes", n), stream, contract.Pattern(0, n))
}

func parallel(connection httpstream.Connection) error {
	faults := make([]error, contract.Parallel)
	var all sync.WaitGroup
	for i := range faults {
		all.Add(1)
		go func() {
			defer all.Done()
			faults[i] = get(connection, contract.ParallelBase+i)
		}()
	}
	all.Wait()
	return errors.Join(faults...)
}

func cancel(connection httpstream.Connection) error {
	stream, err := open(connection, "endless", 0)
	if err != nil {
		return err
	}
	first := make([]byte, 1)
	if _, err := io.ReadFull(stream, first); err != nil || first[0] != 0 {
		return fmt.Errorf("endless: no data: %v", err)
	}
	if err := stream.Reset(); err != nil {
		return err
	}
	return small(connection)
}

func goaway(connection httpstream.Connection) error {
	if err := small(connection); err != nil {
		return err
	}
	if _, err := open(connection, "goaway", 0); err != nil {
		return err
	}
	select {
	case <-connection.CloseChan():
		return nil
	case <-time.After(contract.Answer):
		return errors.New("goaway: the connection did not close")
	}
}

// config is what kubectl would read from its kubeconfig.
func config(options contract.Options) *rest.Config {
	return &rest.Config{
		Host:            address(options, "").String(),
		TLSClientConfig: rest.TLSClientConfig{Insecure: options.TLS, NextProtos: []string{alpn}},
	}
}

func execute(options contract.Options) (string, error) {
	// What kubectl makes of PodExecOptions; the command is the server's own, whatever is asked for.
	where := address(options, "/exec")
	where.RawQuery = url.Values{"command": {"upper"}, "stdin": {"true"}, "stdout": {"true"}, "stderr": {"true"}}.Encode()
	executor, err := remotecommand.NewSPDYExecutor(config(options), http.MethodPost, where)
	if err != nil {
		return "", err
	}
	stdin := bytes.Repeat([]byte("the quick brown fox jumps over the lazy dog\n"), 5_000)
	var stdout, stderr bytes.Buffer
	err = executor.StreamWithContext(context.Background(),
		remotecommand.StreamOptions{Stdin: bytes.NewReader(stdin), Stdout: &stdout, Stderr: &stderr})
	if err != nil {
		return "", fmt.Errorf("exec: %w", err)
	}
	if !bytes.Equal(stdout.Bytes(), bytes.ToUpper(stdin)) {
		return "", fmt.Errorf("exec: stdout has %d bytes that are not stdin's %d in upper case", stdout.Len(), len(stdin))
	}
	if stderr.String() != "done\n" {
		return "", fmt.Errorf("exec: stderr is %q", stderr.String())
	}
	return fmt.Sprintf("%d bytes through stdin and stdout", len(stdin)), nil
}

func forward(options contract.Options) (string, error) {
	transport, upgrader, err := clientspdy.RoundTripperFor(config(options))
	if err != nil {
		return "", err
	}
	dialer := clientspdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, address(options, "/portforward"))
	stop, ready := make(chan struct{}), make(chan struct{})
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{"0:80"}, stop, ready, io.Discard, io.Discard)
	if err != nil {
		return "", err
	}
	ended := make(chan error, 1)
	go func() { ended <- forwarder.ForwardPorts() }()
	select {
	case err := <-ended:
		return "", fmt.Errorf("portforward: %w", err)
	case <-ready:
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		return "", err
	}
	// Twice, as a browser would: each connection is a pair of streams.
	for range 2 {
		if err := echoed(int(ports[0].Local)); err != nil {
			return "", err
		}
	}
	close(stop)
	if err := <-ended; err != nil {
		return "", fmt.Errorf("portforward: %w", err)
	}
	return "2 × 400000 bytes forwarded and back", nil
}

func echoed(port int) error {
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	defer conn.Close()
	body := contract.Pattern(0, contract.Large)
	go func() {
		_, _ = conn.Write(body)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	return contract.Expect("portforward", conn, body)
}
