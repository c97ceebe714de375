#!/bin/sh
# Proves that dist/ is what src/ and the lockfile build.
set -eu
cd "$(dirname "$0")"
npm ci --no-audit --no-fund
npm run build
git diff --exit-code -- dist
