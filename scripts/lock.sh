#!/bin/sh
# Writes requirements/*.txt from pyproject.toml: exact versions and hashes for every platform. Called by `make lock`.
set -eu
cd "$(dirname "$0")/.."

if [ -z "${UV:-}" ]; then
    temporary=$(mktemp -d)
    trap 'rm -rf "$temporary"' EXIT
    "${PYTHON:-python3}" -m venv "$temporary"
    "$temporary/bin/python" -m pip install --quiet --disable-pip-version-check uv
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
compile base pyproject.toml
compile dev pyproject.toml --extra java --group test --group check --constraints requirements/base.txt
compile build --group build --constraints requirements/dev.txt
compile demo --group demo --no-deps
