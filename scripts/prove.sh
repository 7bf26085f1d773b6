#!/usr/bin/env bash
#
# The record run: the tests that scripts/test.sh runs for minutes, for longer. Summaries to keep are printed last.
#
#   scripts/prove.sh [PART ...]    all parts unless some are named:
#
#   simulation   simulated seeds, optimised; SEEDS=100000 FROM=0
#   handovers    10,000 hand-overs between processes whose subscriptions are killed
#   matrix       every row of the fault matrix, REPEATS=3 times; writes docs/fault-matrix.md
#   chaos        processes under random faults, with one server, a Cluster and Sentinels, histories checked;
#                SEEDS_OF_CHAOS=10 of CHAOS_SECONDS=30, and the control without a gate
#   failovers    FAILOVERS=50 with Sentinel and as many with a Cluster: masters are killed, hang, are replaced
#   quorum       ROUNDS=1000 on three and five independent servers that hang, restart empty, are cut off; processes stop
#   postgres     200 rounds of two processes at a PostgreSQL gate, one stopped past its lease in each
#   fuzz         strange answers, headers and metadata before the parsers for FUZZ_MINUTES=60, optimised
#   load         4 processes with 20,000 tasks under random faults for LOAD_SECONDS=600
#   install      each install line of the pages, as it stands there, in an empty folder; the first command of the README in a clone
#
# A failing seed is printed with the command that replays it.

set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly PARTS=(simulation handovers matrix chaos failovers quorum postgres fuzz load install)

main() {
    local part parts=("$@")
    case "${1:-}" in
        -h | --help) sed -n '3,20s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
        "") parts=("${PARTS[@]}") ;;
    esac
    for part in "${parts[@]}"; do
        [[ " ${PARTS[*]} " == *" $part "* ]] || die "'$part' is no part; see scripts/prove.sh --help"
    done

    log="$(mktemp)"
    rows="$(mktemp -d)"
    trap 'rm -rf "$log" "$rows"' EXIT
    for part in "${parts[@]}"; do
        printf '\n==> %s\n' "$part"
        local began=$SECONDS result=passed
        "run_$part" || result=FAILED
        results+=("$part|$result|$((SECONDS - began))")
    done
    summary
}

# Parts ------------------------------------------------------------------------------------------

run_simulation() {
    local seeds="${SEEDS:-100000}" from="${FROM:-0}"
    LEASEHOLD_SEEDS="$from..$((from + seeds))" RUST_BACKTRACE=0 \
        recorded simulation -- seeds --exact
}

run_handovers() {
    LEASEHOLD_HANDOVERS=10000 recorded servers -- p7_handover::
}

run_matrix() {
    local status=0
    LEASEHOLD_FAULT_MATRIX="$rows" LEASEHOLD_FAULT_REPEATS="${REPEATS:-3}" \
        cargo test --all-features --test servers -- faults:: --nocapture || status=$?
    LEASEHOLD_FAULT_MATRIX="$rows" LEASEHOLD_FAULT_REPEATS="${REPEATS:-3}" \
        cargo test --package leasehold-cli --test cli -- faults:: --nocapture || status=$?
    # A table with missing rows would look like a whole one.
    [[ $status -eq 0 ]] && matrix >docs/fault-matrix.md
    return "$status"
}

run_chaos() {
    local seed status=0
    for seed in $(seq 1 "${SEEDS_OF_CHAOS:-10}"); do
        LEASEHOLD_CHAOS="seed=$seed seconds=${CHAOS_SECONDS:-30}" \
            recorded servers -- chaos::nothing_is_lost_under_random_faults --exact || status=$?
        LEASEHOLD_CHAOS="seed=$seed seconds=${CHAOS_SECONDS:-30}" \
            recorded servers -- chaos::nothing_is_lost_on_a_cluster_under_random_faults --exact || status=$?
        LEASEHOLD_CHAOS="seed=$seed seconds=${CHAOS_SECONDS:-30}" \
            recorded servers -- chaos::nothing_is_lost_with_sentinels_under_random_faults --exact || status=$?
    done
    recorded servers -- chaos::control_without_a_gate_writes_are_lost --exact || status=$?
    return "$status"
}

run_failovers() {
    local site status=0
    for site in sentinel cluster; do
        LEASEHOLD_FAILOVERS="${FAILOVERS:-50}" recorded servers -- "failovers::with_$site::" || status=$?
    done
    return "$status"
}

run_quorum() {
    LEASEHOLD_QUORUM_ROUNDS="${ROUNDS:-1000}" LEASEHOLD_QUORUM_SEED="${FROM:-1}" recorded servers -- quorum_rounds::
}

run_postgres() {
    LEASEHOLD_ROUNDS=200 features=postgres recorded servers -- postgres_gate::
}

run_fuzz() {
    # Each round draws other answers. CASES is for a try of this part itself.
    local until=$((SECONDS + ${FUZZ_MINUTES:-60} * 60)) cases="${CASES:-200000}" tried=0
    while ((SECONDS < until)); do
        PROPTEST_CASES="$cases" cargo test --release --all-features -p leasehold-redis -p leasehold-quorum -p leasehold-doctor -p leasehold-fencing --lib -- is_read || return 1
        tried=$((tried + cases))
    done
    kept+=("  $tried strange answers, headers and texts before each parser")
}

run_load() {
    LEASEHOLD_CHAOS="processes=4 tasks=5000 names=1000 seconds=${LOAD_SECONDS:-600} ttl-ms=5000 told=0" \
        recorded servers -- chaos::nothing_is_lost_under_random_faults --exact
}

run_install() {
    local folder page line tried=0
    folder="$(mktemp -d)"
    # As a checkout beside a service.
    ln -s "$PWD" "$folder/leasehold"
    for page in README.md $(grep -rl '^leasehold = ' docs --include='*.md'); do
        tried=$((tried + 1))
        try_manifest "$page" "$folder/service-$tried" || return 1
    done
    while IFS= read -r line; do
        tried=$((tried + 1))
        printf '\n%s\n' "$line"
        CARGO_TARGET_DIR="$PWD/target/install" bash -c "$line --root '$folder/program'" </dev/null || return 1
        "$folder/program/bin/leasehold" --version || return 1
    done < <(grep -rhoE '^cargo install [^#]*leasehold[^#]*|^cargo install [^#]*--path [^#]*' README.md docs | sed 's/ *$//' | sort -u)
    git clone --quiet . "$folder/clone" || return 1
    line="$(grep -m 1 -oE '^scripts/setup.sh [^#]*' README.md)"
    printf '\n%s\n' "$line"
    (cd "$folder/clone" && bash -c "$line" </dev/null) || return 1
    kept+=("  $((tried + 1)) install lines, each in an empty folder")
    rm -rf "$folder"
}

# A service with the dependencies of a page, and the program of the README where that is the page.
try_manifest() {
    local page="$1" crate="$2" manifest
    printf '\n%s\n' "$page"
    mkdir -p "$crate/src" "$crate/tests"
    manifest="$(block toml "leasehold = " "$page")"
    [[ "$manifest" == *dependencies\]* ]] || manifest="[dependencies]"$'\n'"$manifest"
    printf '[package]\nname = "tried"\nversion = "0.0.0"\nedition = "2024"\n\n%s\n' "$manifest" >"$crate/Cargo.toml"
    echo "fn main() {}" >"$crate/src/main.rs"
    [[ "$page" != README.md ]] || block rust,no_run "use leasehold" "$page" >"$crate/src/main.rs"
    echo "use leasehold as _;" >"$crate/tests/linked.rs"
    cat "$crate/Cargo.toml"
    CARGO_TARGET_DIR="$PWD/target/install" cargo check --quiet --all-targets --manifest-path "$crate/Cargo.toml"
}

# The first code block of a kind in a page that has a line that begins with some words.
block() {
    awk -v fence="\`\`\`$1" -v words="$2" '$0 == fence { inside = 1; text = ""; found = 0; next }
        /^```/ && inside { inside = 0; if (found) { printf "%s", text; exit } }
        inside { text = text $0 "\n"; if (index($0, words) == 1) found = 1 }' "$3"
}

# Runs an optimised test, and keeps what it says of its run.
recorded() {
    local test="$1" status=0
    shift 2
    cargo test --release ${features:+--features "$features"} --test "$test" -- --nocapture "$@" 2>&1 | tee "$log" || status=$?
    kept+=("$(sed -n -e '/^[0-9][0-9]* runs,/p' -e '/^[0-9][0-9]* rounds: /p' -e '/ hand-overs, /p' -e '/^  [a-z]/p' "$log")")
    return "$status"
}

# The fault matrix ---------------------------------------------------------------------------------

matrix() {
    cat <<HEAD
# Fault matrix

For those who want to see which faults Leasehold was tested with.

Each row is a test on real servers and processes: the fault, the right behaviour, what was seen, and the damage that the same
fault did to a control without the protection. In six rows the protection is a clear error, and there is no control. \`scripts/prove.sh matrix\` writes this table. \`scripts/test.sh\` runs every row, and
checks that none is missing here.

Seen on $(date -u '+%Y-%m-%d'), $(uname -sm), $(nproc) cores, $(redis-server --version | sed -n 's/.*v=\([0-9.]*\).*/redis-server \1/p'), with and without the protection ${REPEATS:-3} times each; the table has the last run.
\`scripts/test.sh\` and \`scripts/test.sh --servers\` run every row on each of these servers that they find:
Redis 6.2, Redis 7.0, Redis 7.4, Redis 8.0-m01 and Valkey 8.0.
HEAD
    local file room="" id fault right seen control damage
    for file in "$rows"/*.row; do
        { read -r this; read -r id; read -r fault; read -r right; read -r seen; read -r control; read -r damage; } <"$file"
        if [[ "$this" != "$room" ]]; then
            room="$this"
            printf '\n## %s\n\n| row | fault | right | seen | control | damage seen |\n|---|---|---|---|---|---|\n' "${room^}"
        fi
        printf '| %s | %s | %s | %s | %s | %s |\n' "$id" "$fault" "$right" "$seen" "$control" "$damage"
    done
}

# Reporting ----------------------------------------------------------------------------------------

results=()
kept=()

summary() {
    local row part result seconds status=0
    printf '\nrecord run of %s, commit %s, %s, %s cores\n' "$(date -u '+%Y-%m-%d %H:%M UTC')" \
        "$(git describe --always --dirty)" "$(uname -sm)" "$(nproc)"
    for row in "${kept[@]}"; do
        printf '\n%s\n' "$row"
    done
    printf '\n%-8s %9s  %s\n' "result" "seconds" "part"
    for row in "${results[@]}"; do
        IFS='|' read -r part result seconds <<<"$row"
        printf '%-8s %9s  %s\n' "$result" "$seconds" "$part"
        [[ "$result" == passed ]] || status=1
    done
    exit "$status"
}

die() {
    printf '%s\n' "$@" >&2
    exit 1
}

main "$@"
