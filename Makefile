# `make race` and `make test` are all that a user and a contributor need; each sets up what it can and names the rest.

SHELL := /bin/sh
CARGO ?= cargo

.PHONY: race test live bench fuzz web help rust tools

help:
	@echo "make race    race SPDY/3.1 against HTTP/1.1 on 300 built-in pages; ends with a table and a report"
	@echo "make test    the gate: format, lints, tests, docs, floors, purity, front end"
	@echo "make live    build velodrome with TLS, for fetch and serve (needs cmake, a C++ compiler and libclang)"
	@echo "make bench   benchmarks of every engine and of page loads a second"
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
	$(CARGO) test --workspace --all-features --locked
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --all-features --locked
	$(CARGO) xtask tidy
	$(CARGO) xtask wasm
	./web/check.sh

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
