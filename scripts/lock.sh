#!/bin/sh
# Writes requirements/*.txt from pyproject.toml: exact versions and hashes for every platform. Called by `make lock`.
set -eu
cd "$(dirname "$0")/.."

# The locked uv and no other: another version resolves and writes otherwise, and would not be checked by a hash. Its own
# lock is written by it, too; UV=/path/to/uv is for the first one.
if [ -z "${UV:-}" ]; then
    temporary=$(mktemp -d)
    trap 'rm -rf "$temporary"' EXIT
    "${PYTHON:-python3}" -m venv "$temporary"
    "$temporary/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: --require-hashes \
        --requirement requirements/lock.txt
    UV=$temporary/bin/uv
fi

export UV_CUSTOM_COMPILE_COMMAND="make lock"

compile() {
    output=requirements/$1.txt
    shift
    "$UV" pip compile --quiet --universal --python-version 3.11 --generate-hashes --annotation-style line \
        ${UPGRADE:+--upgrade} --output-file "$output" "$@"
    echo "$output"
}

mkdir -p requirements
compile base pyproject.toml --constraints requirements/constraints.in
compile dev pyproject.toml --extra java --group test --group check --group site --constraints requirements/base.txt
compile build --group build --constraints requirements/dev.txt
compile demo --group demo --no-deps
compile audit --group audit --constraints requirements/dev.txt
compile lock --group lock
