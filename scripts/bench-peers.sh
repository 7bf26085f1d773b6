#!/usr/bin/env bash
#
# Contention benchmarks beside other lock libraries, on one private Redis server and in one run.
#
#   scripts/bench-peers.sh [--peers-only] [options of benches/peers/orchestrate.py]
#   scripts/bench-peers.sh --modes 4x8-hold0-pause0 --peers leasehold,redsync --rounds 3
#   scripts/bench-peers.sh --check    whether each peer excludes at all; no figures
#
# Builds the peers that have their toolchain here (JDK 17 and Maven; Go; Node.js and npm), which downloads what they
# depend on; the report names the others. --peers-only leaves out what is written in Rust, Leasehold and the floors too.

set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

missing=()

# Run ------------------------------------------------------------------------------------------

main() {
    local rust=true options=() worker argument
    for argument in "$@"; do
        case "$argument" in
            -h | --help) usage; exit 0 ;;
            --peers-only) rust=false ;;
            --check) rust=false; options+=("$argument") ;;
            *) options+=("$argument") ;;
        esac
    done

    need redis-server
    need python3
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || die "python3 is older than 3.10"
    family redisson "java mvn" build_redisson
    family go "go" build_go
    family node "node npm" build_node
    if [[ "$rust" == true ]]; then
        worker="$(build_rust)"
        options+=(--rust-worker "$worker")
    fi
    exec python3 benches/peers/orchestrate.py \
        ${missing[@]+"${missing[@]}"} ${options[@]+"${options[@]}"}
}

usage() {
    sed -n '3,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
    echo
    python3 benches/peers/orchestrate.py --help
}

# Builds ---------------------------------------------------------------------------------------

# Builds a family of peers, or notes why it is missing.
family() {
    local name="$1" tools="$2" build="$3" tool
    for tool in $tools; do
        if ! command -v "$tool" >/dev/null; then
            missing+=(--missing "$name=$tool is not installed")
            return
        fi
    done
    say "building $name"
    # In a condition `set -e` is off within the build, so each is one chain of commands.
    if ! "$build" >&2; then
        say "building $name FAILED"
        missing+=(--missing "$name=its build failed, see above")
    fi
}

build_redisson() {
    mvn --batch-mode --quiet --file benches/peers/redisson/pom.xml package
}

build_go() {
    (cd benches/peers/go && go build -o target/peers .)
}

build_node() {
    npm ci --prefix benches/peers/node --silent --no-audit --no-fund
}

# Builds the contention bench and tells its executable.
build_rust() {
    say "building Leasehold and the floors"
    local messages
    messages="$(cargo bench -p leasehold-benches --bench contention --no-run --message-format=json)" ||
        die "cargo bench -p leasehold-benches --bench contention does not build; --peers-only leaves it out"
    python3 -c '
import json, sys
found = [json.loads(line) for line in sys.stdin if line.startswith("{")]
paths = [m["executable"] for m in found if m.get("executable") and m["target"]["name"] == "contention"]
print(paths[-1] if paths else sys.exit("cargo told no executable of the bench contention"))
' <<<"$messages"
}

need() {
    command -v "$1" >/dev/null || die "$1 is missing; install it so that it is in the PATH"
}

# Reporting ------------------------------------------------------------------------------------

say() {
    printf '%s\n' "$*" >&2
}

die() {
    printf '%s\n' "$@" >&2
    exit 1
}

main "$@"
