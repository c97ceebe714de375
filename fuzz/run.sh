#!/bin/sh
# Runs every fuzz target for so many seconds (60 if not said), each from what earlier runs left in work/ and from the
# seeds in corpus/, which a run does not change. `run.sh SECONDS TARGET…` runs those alone.
set -eu
cd "$(dirname "$0")"
seconds=${1:-60}
[ $# -eq 0 ] || shift
targets=${*:-$(cargo +nightly fuzz list)} || {
    echo "fuzz: needs 'rustup toolchain install nightly' and 'cargo install cargo-fuzz'" >&2
    exit 1
}
for target in $targets; do
    echo "fuzz: $target"
    mkdir -p "work/$target"
    seeds=corpus/$target
    [ -d "$seeds" ] || seeds=
    # The first directory takes what is found.
    cargo +nightly fuzz run "$target" "work/$target" $seeds -- \
        -max_total_time="$seconds" -max_len=16384 -timeout=20 -rss_limit_mb=2048 -verbosity=0 -print_final_stats=1
done
