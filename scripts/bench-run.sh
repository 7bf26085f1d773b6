#!/usr/bin/env bash
#
# How long `leasehold run NAME -- true` takes from its start to its exit, beside a call of redis-cli and three round trips.
#
#   scripts/bench-run.sh [ROUNDS]    200 rounds unless another number is given; both in turns, medians
#
# Starts a private redis-server on a unix socket, and builds the program in release mode.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly ROUNDS="${1:-200}"
readonly TRIPS=20000

folder="$(mktemp -d)"
trap 'kill "$server" 2>/dev/null || true; rm -rf "$folder"' EXIT
redis-server --port 0 --unixsocket "$folder/s" --save "" --dir "$folder" >/dev/null &
server=$!
until redis-cli -s "$folder/s" ping >/dev/null 2>&1; do sleep 0.05; done
cargo build --quiet --release --package leasehold-cli
readonly PROGRAM="${CARGO_TARGET_DIR:-target}/release/leasehold"
export REDIS_URL="redis+unix://$folder/s"

# Microseconds that a command takes, into a file.
timed() {
    local file="$1" began ended
    shift
    began="${EPOCHREALTIME/[.,]/}"
    "$@" >/dev/null
    ended="${EPOCHREALTIME/[.,]/}"
    echo "$((ended - began))" >>"$file"
}

median() {
    sort -n "$1" | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'
}

for ((round = 0; round < ROUNDS; round++)); do
    timed "$folder/call" redis-cli -s "$folder/s" ping
    timed "$folder/run" "$PROGRAM" run bench -- true
done
timed "$folder/trips" redis-cli -s "$folder/s" -r "$TRIPS" ping
call="$(median "$folder/call")" run="$(median "$folder/run")" trips="$(median "$folder/trips")"
awk -v call="$call" -v run="$run" -v trip="$(awk "BEGIN { print $trips / $TRIPS }")" 'BEGIN {
    floor = call + 3 * trip
    printf "redis-cli PING %d us, a round trip %.1f us, leasehold run -- true %d us: %.2f of a call and three round trips\n", call, trip, run, run / floor
}'
