# shellcheck shell=bash
#
# A part of scripts/test.sh: the tests on each server that Leasehold is tested with. Sourced, with the steps of test.sh.

readonly MOST_PROGRAM_SECONDS=1500
# The servers that are tested, and how their programs begin to tell their version.
readonly SERVERS=(
    "Redis 6.2|Redis server v=6.2."
    "Redis 7.0|Redis server v=7.0."
    "Redis 7.4|Redis server v=7.4."
    "Redis 8.0-m01|Redis server v=7.9."
    "Valkey 8.0|Valkey server v=8.0."
)
readonly SERVERS_FOLDER="../shared/servers"
# What scripts/test.sh runs on each of them: a test program, and what the names of its tests contain. All else that starts
# a server is run by --servers only.
readonly ON_EACH_SERVER=("stores redis::" "stores cluster::" "gates redis::" "servers connect::"
    "servers documented_rights::" "servers faults::" "protocol the_examples")
# Tests read from it which redis-server to start. A test program without these words starts none.
readonly SERVER_VARIABLE="LEASEHOLD_REDIS_SERVER"

# What is run -----------------------------------------------------------------------------------

# Every test that starts a server, on the server of each folder, or those of its folders.
every_server() {
    trap summary EXIT
    # Tests of gates and alerts start them.
    step "postgresql" need_postgres false
    step "prometheus" need_prometheus false
    local folder
    if [[ $# -eq 0 ]]; then
        if command -v redis-server >/dev/null; then
            add_server "$(dirname "$(command -v redis-server)")"
        fi
        add_servers_below "$SERVERS_FOLDER"
    fi
    for folder in "$@"; do
        [[ "$folder" == /* ]] || folder="$CALLED_FROM/$folder"
        if [[ -x "$folder/redis-server" ]]; then
            add_server "$folder"
        else
            add_servers_below "$folder"
        fi
    done
    tell_missing
    [[ ${#servers[@]} -gt 0 ]] || die "no server is there; name a folder that has a redis-server"
    step "build of the tests" find_programs
    on_servers "${programs[@]}"
}

# What scripts/test.sh runs on the servers that are there, save the system's: that one has run all tests.
other_servers() {
    add_servers_below "$SERVERS_FOLDER"
    tell_missing "$(redis-server --version)"
    [[ ${#servers[@]} -gt 0 ]] || return 0
    step "programs of the tests" find_programs
    local part=() name filter line
    for line in "${ON_EACH_SERVER[@]}"; do
        read -r name filter <<<"$line"
        line="$(printf '%s\n' "${programs[@]}" | grep "^$name|")" || die "there is no test '$name' that starts a server"
        part+=("$line$filter")
    done
    on_servers "${part[@]}"
}

# Servers to test, as `name|program`, and programs of tests, as `name|folder|program|filter`.
servers=()
programs=()

add_server() {
    local told
    told="$("$1/redis-server" --version)" || die "the redis-server in $1 does not run here"
    servers+=("$(name_of "$told")|$(cd "$1" && pwd)/redis-server")
}

add_servers_below() {
    local folder
    for folder in "$1"/*/; do
        if [[ -x "$folder/redis-server" ]]; then
            add_server "$folder"
        fi
    done
}

# The name in the list of servers, or else what the program tells.
name_of() {
    local entry
    for entry in "${SERVERS[@]}"; do
        if [[ "$1" == "${entry#*|}"* ]]; then
            echo "${entry%%|*}"
            return
        fi
    done
    echo "${1%% sha=*}"
}

# Says which servers of the list are not there; one that was tested before may be named.
tell_missing() {
    local entry name there
    there="$(printf '%s\n' ${servers[@]+"${servers[@]%%|*}"} "$(name_of "${1:-}")")"
    for entry in "${SERVERS[@]}"; do
        name="${entry%%|*}"
        grep -qxF "$name" <<<"$there" || skip "$name" "no redis-server of this version was found"
    done
}

# The test programs that can start a server; cargo builds those that are not built.
find_programs() {
    local built name manifest program
    built="$(cargo test --workspace --all-features --no-run --message-format=json-render-diagnostics)"
    while IFS='|' read -r name manifest program; do
        if grep -qaF "$SERVER_VARIABLE" "$program"; then
            programs+=("$name|$(dirname "$manifest")|$program|")
        fi
    done < <(sed -n \
        's/.*"manifest_path":"\([^"]*\)".*"name":"\([^"]*\)".*"profile":{[^}]*"test":true}.*"executable":"\([^"]*\)".*/\2|\1|\3/p' \
        <<<"$built")
    [[ ${#programs[@]} -gt 0 ]] || die "no test program starts a server"
    say "${#programs[@]} programs start servers"
}

# Runs programs of tests on every server, two servers at a time.
on_servers() {
    local results lane lanes=() status=0 server name
    results="$(mktemp -d)"
    for lane in 0 1; do
        run_lane "$lane" "$results" "$@" </dev/null &
        lanes+=("$!")
    done
    # A lane that is told to end ends its test program.
    trap 'kill "${lanes[@]}" 2>/dev/null; exit 130' INT TERM
    for lane in "${lanes[@]}"; do
        wait "$lane" || status=1
    done
    trap - INT TERM
    for server in "${servers[@]}"; do
        name="${server%%|*}"
        rows+=("$(cat "$results/$name.row" 2>/dev/null || echo "FAILED|0|$name (its tests were ended)")")
    done
    rm -rf "$results"
    [[ "$status" -eq 0 ]] || die "" "tests failed; their output is above"
}

# Every second server, one after another.
run_lane() {
    local number="$1" results="$2" at status=0
    shift 2
    trap 'kill "$child" 2>/dev/null; exit 1' TERM
    for ((at = number; at < ${#servers[@]}; at += 2)); do
        run_server "${servers[at]%%|*}" "${servers[at]#*|}" "$results" "$@" || status=1
    done
    return "$status"
}

child=""

# Runs programs of tests on a server, and writes the row of the summary.
run_server() {
    local server="$1" redis="$2" results="$3" since="$SECONDS" passed=0 failed=() of test folder program filter log began count status
    shift 3
    log="$results/$server.log"
    for of in "$@"; do
        IFS='|' read -r test folder program filter <<<"$of"
        began=$SECONDS
        (cd "$folder" && export "$SERVER_VARIABLE=$redis" && within "$MOST_PROGRAM_SECONDS" "$program" ${filter:+"$filter"}) >"$log" 2>&1 &
        child=$!
        test+="${filter:+ $filter}"
        status=0
        wait "$child" || status=$?
        count="$(sed -n 's/^test result: .* \([0-9]*\) passed; .*/\1/p' "$log" | head -n 1)"
        # A filter that fits no test any more would pass.
        [[ $status -eq 0 && "${count:-0}" -gt 0 ]] || failed+=("$test")
        passed=$((passed + ${count:-0}))
        if [[ " ${failed[*]-} " == *" $test "* ]]; then
            # In one piece: two servers are tested at a time.
            printf '%s\n' "--- $server: $test FAILED" "$(cat "$log")" "--- end of $test on $server"
        else
            printf '%s\n' "$server: $test, ${count:-0} passed ($((SECONDS - began)) s)"
        fi
    done
    local state=ok words="$server: $passed tests of $# programs"
    if [[ ${#failed[@]} -gt 0 ]]; then
        state=FAILED
        words+="; failed: ${failed[*]}"
    fi
    echo "$state|$((SECONDS - since))|$words" >"$results/$server.row"
    [[ "$state" == ok ]]
}
