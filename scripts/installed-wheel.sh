#!/bin/sh
# Proves that the wheel, its extra `java` and a package index are enough: an empty environment, an empty home and a PATH
# without Java; there `engine init`, `engine build`, and the tables that it made. Called by `make test-package`.
set -eu
wheel=$(realpath "$1")
python=${PYTHON:-python3}

work=$(mktemp -d "${TMPDIR:-/tmp}/installed-wheel.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
mkdir "$work/home" "$work/shops"

echo "==> installing $(basename "$wheel") with its extra java"
"$python" -m venv "$work/venv"
# Links to the tools of an ordinary machine that Hadoop runs.
for tool in bash chmod df du id ls sh stat uname whoami; do
    ln -s "$(command -v "$tool")" "$work/venv/bin/$tool"
done
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$wheel[java]"

isolated() (
    cd "$1"
    shift
    unset PYTHONPATH JAVA_HOME VIRTUAL_ENV
    PATH="$work/venv/bin" HOME="$work/home" XDG_CACHE_HOME="$work/home/.cache" exec "$@" </dev/null
)

for template in files cdc; do
    echo "==> engine init $template --template $template; engine build"
    isolated "$work/shops" engine init "$template" --template "$template"
    isolated "$work/shops/$template" engine build
done
isolated "$work/shops/files" engine debug
isolated "$work/shops/files" engine show sales_hourly --table
echo "==> passed: the installed wheel builds new projects without Java on the path"
