#!/bin/sh
# Proves that the committed dist/ is what src/ and the lockfile build.
set -eu
cd "$(dirname "$0")"
if ! command -v npm >/dev/null; then
    echo "web/check.sh: skipped, as there is no npm: install Node.js 20 or later" >&2
    test -z "${CI:-}"
    exit
fi
npm ci --no-audit --no-fund
npm run build
git diff --exit-code --stat -- dist || { echo "web/dist is not what web/ builds: run npm run build, commit dist" >&2; exit 1; }
