// Kubernetes' streaming as a peer: k8s.io/apimachinery's SPDY behind `Upgrade: SPDY/3.1`, and as clients of its exec
// and port-forward the very code that kubectl runs, k8s.io/client-go. Contract: interop/README.md.
package main

import (
	"fmt"
	"os"

	"velodrome-interop/internal/contract"
)

// ALPN: the upgrade starts from HTTP/1.1.
const alpn = "http/1.1"

func main() {
	options := contract.Parse("3.1")
	if options.Verb == "serve" {
		if err := serve(options); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	contract.Conclude(func() (string, error) { return fetch(options) })
}
