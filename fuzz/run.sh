#!/bin/sh
# Runs every fuzz target for so many seconds (60 if not said), each from the corpus that earlier runs left.
set -eu
cd "$(dirname "$0")"
targets=$(cargo +nightly fuzz list) || {
    echo "fuzz: needs 'rustup toolchain install nightly' and 'cargo install cargo-fuzz'" >&2
    exit 1
}
for target in $targets; do
    echo "fuzz: $target"
    cargo +nightly fuzz run "$target" -- -max_total_time="${1:-60}" -max_len=16384 -verbosity=0 -print_final_stats=1
done
