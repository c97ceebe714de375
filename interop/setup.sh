#!/bin/sh
# Builds the peers into target/, those whose sources or toolchain have changed. A toolchain that is absent is named with the
# peers that are skipped for it; with CI set that is a failure. What is fetched comes from where npm, Go and Maven are set
# up to fetch from.
set -eu
cd "$(dirname "$0")"
mkdir -p target
skipped=0

# has PEERS PROGRAM…: whether all programs are there; says what is skipped if not.
has() {
    peers=$1
    shift
    for program in "$@"; do
        if ! command -v "$program" >/dev/null; then
            echo "interop: $peers skipped: there is no $program" >&2
            skipped=1
            return 1
        fi
    done
}

# build NAME TOOLCHAIN FOLDER COMMAND…: runs COMMAND in FOLDER unless it did for the same files and toolchain.
build() {
    name=$1 toolchain=$2 folder=$3
    shift 3
    stamp=target/$name.stamp
    now=$(
        echo "$toolchain $*"
        find "$folder" -type f ! -path '*/node_modules/*' | LC_ALL=C sort | xargs cksum
    )
    if [ -f "$stamp" ] && [ "$now" = "$(cat "$stamp")" ]; then
        return
    fi
    echo "interop: building the peers in $folder/ with $toolchain"
    rm -f "$stamp"
    # What an earlier build left there may be of other versions.
    rm -rf "target/$name"
    (cd "$folder" && "$@")
    echo "$now" >"$stamp"
}

if has "node-spdy" node npm; then
    build node "Node.js $(node --version)" node npm ci --silent --no-audit --no-fund --ignore-scripts
fi
if has "spdystream and kubernetes" go; then
    # The Go that is here, or an error that says which is needed; not one fetched on the way.
    export GOTOOLCHAIN=local
    build go "$(go version)" go go build -o ../target/go/ ./spdystream ./kube ./bench
fi
if has "netty, okhttp and jetty" java javac mvn; then
    build java "$(javac --version)" java mvn --quiet --batch-mode --no-transfer-progress -Dstyle.color=never process-classes
fi
[ -z "${CI:-}" ] || [ "$skipped" = 0 ] || {
    echo "interop: CI runs all peers: install what is missing" >&2
    exit 1
}
