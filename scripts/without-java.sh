#!/bin/sh
# Proves that a machine with Python and make, and nothing of ours, is enough: a fresh clone of HEAD, an empty home,
# empty caches and a PATH without Java; there `make demo`, `engine debug` and `make test`, or the make targets named as
# arguments. The clone lies below the temporary folder, in a path with blanks and letters beyond ASCII, and its owner is
# an ordinary user: where root runs this, nobody. KEEP=1 leaves the folder for a look.
set -eu
repository=$(cd "$(dirname "$0")/.." && pwd)
python=$("${PYTHON:-python3}" -c 'import os, sys; print(os.path.realpath(sys.executable))')

work=$(mktemp -d "${TMPDIR:-/tmp}/without-java.XXXXXX")
finish() {
    if [ -n "${KEEP:-}" ]; then echo "kept: $work"; else rm -rf "$work"; fi
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
mkdir "$work/bin" "$work/home" "$work/tmp"
clone="$work/tmp/a clone, été 東"

# Links to the tools of an ordinary machine. Java is not among them, and neither is uv: pip has to do.
for tool in \
    awk basename bash cat chmod cmp comm cp cut date df diff dirname du echo env expr false find getconf getent git grep \
    head hostname id kill ln ls make mkdir mktemp mv nice nohup nproc paste printf ps pwd readlink realpath rm rmdir sed \
    seq setsid sh sleep sort stat tail tar tee test timeout touch tr true uname uniq wc which whoami xargs; do
    path=$(command -v "$tool" 2>/dev/null) || continue
    case $path in
        /*) ;;
        *) path=$(PATH=/usr/bin:/bin command -v "/usr/bin/$tool" || command -v "/bin/$tool") || continue ;;
    esac
    ln -s "$path" "$work/bin/$tool"
done
# A script, not a link: Python finds its library from where its file lies.
printf '#!/bin/sh\nexec "%s" "$@"\n' "$python" >"$work/bin/python3"
chmod +x "$work/bin/python3"

# What a machine needs to reach its package index stays; caches, JAVA_HOME and every ENGINE_ variable go.
passed=$work/passed
env | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p' | sort -u | grep -E \
    '^(https?_proxy|HTTPS?_PROXY|no_proxy|NO_PROXY|all_proxy|ALL_PROXY|PIP_.*|SSL_CERT_(FILE|DIR)|.*_CA_BUNDLE|JAVA_TOOL_OPTIONS|CI|LANG|LC_.*|TERM|PYTEST_ARGS)$' \
    | grep -v '^PIP_CACHE_DIR$' >"$passed" || true

isolated() (
    set -- "PATH=$work/bin" "HOME=$work/home" "XDG_CACHE_HOME=$work/home/.cache" "TMPDIR=$work/tmp" "$@"
    while read -r name; do
        set -- "$name=$(printenv "$name")" "$@"
    done <"$passed"
    cd "$clone"
    if [ "$(id -u)" -eq 0 ]; then
        set -- setpriv --reuid=nobody --regid=nogroup --clear-groups env -i "$@"
    else
        set -- env -i "$@"
    fi
    exec "$@" </dev/null
)

echo "==> cloning $(git -C "$repository" log -1 --format='%h %s')"
git clone --quiet --no-local "$repository" "$clone"
if [ "$(id -u)" -eq 0 ]; then chown -R nobody:nogroup "$work"; fi

echo "==> the machine"
isolated sh -c '
    if command -v java || [ -n "${JAVA_HOME:-}" ]; then
        echo "there is a Java; this would prove nothing" >&2
        exit 1
    fi
    echo "command -v java   finds nothing (PATH=$PATH)"
    echo "JAVA_HOME         not set"
    echo "HOME              $HOME holds $(ls -A "$HOME" | wc -l) files"
    command -v uv || echo "command -v uv     finds nothing"
    # A JVM takes its home from the user database, whatever HOME says.
    real=$(python3 -c "import os, pwd; print(pwd.getpwuid(os.getuid()).pw_dir)")
    for cache in "$real/.ivy2" "$real/.ivy2.5.2" "$real/.m2"; do
        if [ -e "$cache" ]; then echo "$cache exists: a JVM could take jars from it"; else echo "$cache does not exist"; fi
    done
    python3 --version
    make --version | sed -n 1p'

[ $# -gt 0 ] || set -- demo test
for target in "$@"; do
    echo
    echo "==> make $target"
    isolated make "$target"
    if [ -z "${debugged:-}" ] && [ -x "$clone/.venv/bin/engine" ]; then
        debugged=1
        echo
        echo "==> engine debug: the Java it used"
        isolated .venv/bin/engine debug
    fi
done

echo
echo "==> passed without Java on the path: make $*"
