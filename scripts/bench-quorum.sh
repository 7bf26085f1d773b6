#!/usr/bin/env bash
#
# The bench of quorums, with the peer in JavaScript, in one run on the same private servers.
#
#   scripts/bench-quorum.sh [words of benches/quorum/main.rs]
#   scripts/bench-quorum.sh 3-up one-4x8    some rows
#
# Needs Node.js and npm, and downloads what the peer depends on.

set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

for tool in redis-server node npm; do
    command -v "$tool" >/dev/null || { echo "$tool is missing; install it so that it is in the PATH" >&2; exit 1; }
done
npm ci --prefix benches/quorum/node --silent --no-audit --no-fund >&2
exec cargo bench -p leasehold-benches --bench quorum -- "$@"
