#!/usr/bin/env bash
#
# The record run: any number of simulated seeds, optimised, and 10,000 hand-overs between processes
# on a server that kills their subscriptions, with a summary to keep.
#
#   scripts/prove.sh [SEEDS]    100000 seeds by default; FROM=n begins with another than 0
#
# A failing seed is printed with the command that replays it.

set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

main() {
    local seeds="${1:-100000}" from="${FROM:-0}"
    case "$seeds" in
        -h | --help) sed -n '3,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
        *[!0-9]* | "") die "'$seeds' is no number of seeds; see scripts/prove.sh --help" ;;
    esac
    case "$from" in
        *[!0-9]* | "") die "FROM='$from' is no seed to begin with" ;;
    esac

    cargo test --release --test simulation --test real_p7_handover --no-run
    local began=$SECONDS status=0 log
    log="$(mktemp)"
    trap 'rm -f "$log"' EXIT
    LEASEHOLD_SEEDS="$from..$((from + seeds))" RUST_BACKTRACE=0 \
        cargo test --release --test simulation -- seeds --exact --nocapture 2>&1 \
        | tee "$log" || status=$?

    local took=$((SECONDS - began))
    LEASEHOLD_HANDOVERS=10000 \
        cargo test --release --test real_p7_handover -- --nocapture || status=$?
    printf '\nsimulation of %s\n' "$(date -u '+%Y-%m-%d %H:%M UTC')"
    printf '  %-10s %s\n' \
        "commit" "$(git describe --always --dirty)" \
        "machine" "$(uname -sm), $(nproc) cores" \
        "seeds" "$from to $((from + seeds - 1))" \
        "time" "$took s" \
        "result" "$([[ $status -eq 0 ]] && echo passed || echo FAILED)"
    sed -n 's/^\([0-9][0-9]* runs,\)/  in all     \1/p' "$log"
    exit "$status"
}

die() {
    printf '%s\n' "$@" >&2
    exit 1
}

main "$@"
