# What the suites share: how to say that one cannot run here, and the environments of what they need.
# shellcheck shell=bash

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Environments are kept here, each under a name that holds the hash of its lock file.
cache=${FOREWORD_TEST_CACHE:-${XDG_CACHE_HOME:-${HOME:-$PWD/.cache}/.cache}/foreword-tests}

# Ends the suite as one that cannot run here, and says why.
left_out() {
    echo "left out: $*" >&2
    echo "$*" >"${FOREWORD_TEST_REASON:-/dev/null}"
    exit 77
}

# Sees to it that program $1 is there, from Debian packages $2... where they can be installed.
need_program() {
    local program=$1
    shift
    command -v "$program" >/dev/null || install_debian "$@"
    command -v "$program" >/dev/null || left_out "$program is missing and could not be installed (Debian: $*)"
}

# Installs Debian packages if that is possible; whoever calls looks at what came of it.
install_debian() {
    [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null || return 0
    echo "installing $*" >&2
    apt-get update -q >&2 || true
    DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$@" >&2 || true
}

# Sees to it that every crate of Cargo.lock is on this machine.
need_crates() {
    command -v cargo >/dev/null || left_out "cargo is missing: install Rust with rustup"
    need_program cc gcc libc6-dev
    cargo fetch --locked --quiet || left_out "the crates of Cargo.lock could not be fetched"
}

# Makes the Python environment of lock file $1 unless it is there, and names it in `environment`.
need_python_environment() {
    local lock=$1
    need_program python3 python3
    environment=$cache/python-$(basename "$lock" .txt)-$( (python3 --version && cat "$lock") | digest)
    [[ -e $environment/complete ]] && return
    can_make_environments || install_debian python3-venv
    can_make_environments || left_out "Python's venv is missing and could not be installed (Debian: python3-venv)"
    echo "installing $lock" >&2
    rm -rf "$environment"
    mkdir -p "$cache"
    python3 -m venv "$environment"
    "$environment/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes \
        --requirement "$lock" || left_out "the packages of $lock could not be installed"
    touch "$environment/complete"
}

can_make_environments() {
    python3 -c 'import ensurepip, venv' 2>/dev/null
}

# Makes the Node.js environment of directory $1, that of the peers without one, unless it is there, and names it in `environment`.
need_node_environment() {
    local sources=${1-tests/peers/node}
    environment=$cache/node-$( (uname -sm && cat "$sources/package.json" "$sources/package-lock.json") | digest)
    [[ -e $environment/complete ]] && return
    need_program npm npm
    echo "installing $sources/package-lock.json" >&2
    rm -rf "$environment"
    mkdir -p "$environment"
    cp "$sources/package.json" "$sources/package-lock.json" "$sources/.npmrc" "$environment"
    npm ci --prefix "$environment" --no-audit --no-fund --loglevel=error >&2 ||
        left_out "the packages of $sources/package-lock.json could not be installed"
    touch "$environment/complete"
}

digest() {
    sha256sum | cut -c1-16
}

# Builds the binary with the features that the `unit` suite built it with, so that nothing is built twice, and names it
# in `binary`. One that is there already may be named by FOREWORD_BINARY instead.
need_binary() {
    binary=${FOREWORD_BINARY-}
    [[ -z $binary ]] || return 0
    need_crates
    cargo test --locked --workspace --no-run --quiet
    # shellcheck disable=SC2034 # whoever sources this file reads it
    binary=${CARGO_TARGET_DIR:-target}/debug/foreword
}
