#!/bin/sh
# Installs what the gate needs beyond Rust, where it can, and names in one line what it cannot.
set -u
missing() { echo "tools: no $1: $2" >&2; }

if ! rustup target list --installed 2>/dev/null | grep -q '^wasm32-unknown-unknown$'; then
    rustup target add wasm32-unknown-unknown >/dev/null 2>&1 ||
        missing "wasm32-unknown-unknown target" "the purity check is skipped; 'rustup target add wasm32-unknown-unknown' adds it"
fi

if ! command -v chromium >/dev/null && ! command -v google-chrome >/dev/null && ! command -v chrome >/dev/null; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } >/dev/null 2>&1
    fi
    command -v chromium >/dev/null ||
        missing chromium "the report's render test is skipped; install your system's Chromium package"
fi

if ! command -v tshark >/dev/null; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends tshark; } >/dev/null 2>&1
    fi
    command -v tshark >/dev/null ||
        missing tshark "the check that an independent decoder reads our SPDY is skipped; install your system's tshark package"
fi

# BoringSSL is built by cmake, and its bindings are made with libclang.
has_libclang() {
    [ -n "${LIBCLANG_PATH:-}" ] ||
        [ -n "$(find /usr/lib /usr/lib64 /opt/homebrew/opt/llvm/lib -name 'libclang*.so*' -o -name 'libclang*.dylib' 2>/dev/null | head -n 1)" ]
}
if ! has_libclang || ! command -v cmake >/dev/null; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends libclang-dev cmake; } >/dev/null 2>&1
    fi
    if ! has_libclang || ! command -v cmake >/dev/null; then
        missing "libclang or cmake" "TLS cannot be built; install libclang-dev and cmake, or LLVM and CMake"
        exit 1
    fi
fi

command -v npm >/dev/null ||
    missing npm "the check that web/dist is what web/ builds is skipped; install Node.js 20 or later"
exit 0
