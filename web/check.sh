#!/bin/sh
# Proves that the committed dist/ is what src/ and the lockfile build.
set -eu
cd "$(dirname "$0")"
npm ci --no-audit --no-fund
npm run build
git diff --exit-code --stat -- dist || { echo "web/dist is not what web/ builds: run npm run build, commit dist" >&2; exit 1; }
