#!/usr/bin/env bash
#
# Installs what a build needs, on Debian or Ubuntu: a C compiler, and Rust. Then it runs the command behind it.
#
#   scripts/setup.sh cargo run --example order_pipeline
#
# What is there stays as it is. On other systems it says what is missing.

set -euo pipefail

main() {
    export PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"
    command -v cc >/dev/null || install_packages build-essential
    command -v cargo >/dev/null || install_rust
    # The first command of a rustup without a toolchain installs none.
    cargo --version >/dev/null 2>&1 || rustup default stable
    [[ $# -eq 0 ]] || exec "$@"
}

# From the distribution where it has rustup, and else as https://rustup.rs says. Its own Rust may be too old.
install_rust() {
    if command -v apt-cache >/dev/null && as_root apt-get update -q && apt-cache show rustup >/dev/null 2>&1; then
        install_packages rustup
        rustup default stable
    else
        command -v curl >/dev/null || install_packages curl ca-certificates
        curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --profile default
    fi
}

install_packages() {
    command -v apt-get >/dev/null || {
        echo "scripts/setup.sh: no apt-get here; install this by hand: $*" >&2
        exit 1
    }
    as_root apt-get update -q
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}

as_root() {
    if [[ "$(id -u)" -ne 0 ]]; then sudo "$@"; else "$@"; fi
}

main "$@"
