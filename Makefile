# `make race` and `make test` are all that a user and a contributor need; each sets up what it can and names the rest.

SHELL := /bin/sh
CARGO ?= cargo

.PHONY: race test live bench fuzz web help rust tools interop interop-docs bench-peers peers

help:
	@echo "make race    race SPDY/3.1 against HTTP/1.1 on 300 built-in pages; ends with a table and a report"
	@echo "make test    the gate: format, lints, tests, docs, floors, purity, front end"
	@echo "make interop against node-spdy, Netty, OkHttp, Jetty, spdystream and Kubernetes (needs Node.js, Go, a JDK and Maven)"
	@echo "make live    build velodrome with TLS, for fetch and serve (needs cmake, a C++ compiler and libclang)"
	@echo "make bench   benchmarks of every engine and of page loads a second"
	@echo "make bench-peers  SPDY beside Go's and Node's; the figures of docs/interop.md"
	@echo "make fuzz    every fuzz target for a minute (needs a nightly toolchain and cargo-fuzz)"
	@echo "make web     rebuild the report's front end (needs Node.js)"

race: rust
	@rm -rf runs/race
	$(CARGO) run --release --locked --bin velodrome -- race corpus:2012 --network seed --out runs/race

# TLS is BoringSSL's, whose build is two minutes and needs more than Rust; a race in virtual time needs neither.
live: tools
	$(CARGO) build --release --locked --bin velodrome --features tls
	@echo "target/release/velodrome"

test: tools
	$(CARGO) fmt --all --check
	$(CARGO) clippy -p velodrome -p velodrome-live --all-targets --locked -- -D warnings
	$(CARGO) clippy --workspace --all-targets --all-features --locked -- -D warnings
	$(CARGO) test --workspace --all-features --locked --no-fail-fast
	$(MAKE) interop
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --all-features --locked
	$(CARGO) xtask tidy
	$(CARGO) xtask wasm
	./web/check.sh

# The matrix, held to what docs/interop.md says of it. The same features as in `test`, so that nothing is built twice.
interop: peers
	$${CARGO_TARGET_DIR:-target}/debug/velodrome-interop --check docs/interop.md

# The same, written into docs/interop.md.
interop-docs: peers
	$${CARGO_TARGET_DIR:-target}/debug/velodrome-interop --write docs/interop.md

peers: tools
	./interop/setup.sh
	$(CARGO) build --workspace --all-features --locked --bins --examples

# Beside Go's framer and Node's engine and server. For figures of worth the machine should have nothing else to do.
bench-peers: tools
	./interop/setup.sh
	$(CARGO) build --release --locked -p velodrome -p velodrome-interop --bins
	$${CARGO_TARGET_DIR:-target}/release/bench-peers

bench: rust
	$(CARGO) bench --workspace --locked

fuzz: rust
	./fuzz/run.sh 60

web:
	cd web && npm ci && npm run build

rust:
	@command -v $(CARGO) >/dev/null || { echo "velodrome needs Rust 1.95 or later: install it with rustup, see rust-lang.org" >&2; exit 1; }

# What some tests need beyond Rust. A test whose tool is missing says so by name; with CI set it fails instead.
tools: rust
	@./xtask/tools.sh
