#!/usr/bin/env bash
# Build the kernels with AddressSanitizer and UndefinedBehaviorSanitizer and run their tests.
#
#     tools/sanitize.sh [pytest arguments]      default: tests/core
#
# Any report ends the run with a failure.  It uses the environment that `tools/do.py test` made
# (PYTHON=... uses another one) and builds beside it, so nothing installed is touched.  Not every
# file runs: a forked child under ASan is slow, so tests of processes are left to the plain suite.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
python=${PYTHON:-$root/.venv/bin/python}
if [[ ! -x $python ]]; then
    echo "sanitize.sh: no $python; run 'python3 tools/do.py test' first, or set PYTHON" >&2
    exit 1
fi
PATH=$(dirname "$python"):$PATH
work=${SANITIZE_DIR:-$(dirname "$(dirname "$python")")/sanitize}

# The optimised code is what ships, so it is what is tested; asserts are on.
options=(-Dbuildtype=release -Db_ndebug=false -Db_sanitize=address,undefined -Db_lundef=false
    "-Dc_args=-g -fno-sanitize-recover=all -fno-omit-frame-pointer" --prefix "$work/prefix"
    "-Dpython.purelibdir=$work/site" "-Dpython.platlibdir=$work/site")
if [[ -d $work/build ]]; then
    meson setup --reconfigure "$work/build" "${options[@]}" >"$work/setup.log"
else
    mkdir -p "$work"
    meson setup "$work/build" "${options[@]}" >"$work/setup.log"
fi
meson compile -C "$work/build" >"$work/compile.log" || { tail -50 "$work/compile.log" >&2; exit 1; }
rm -rf "$work/site"
meson install -C "$work/build" --quiet

compiler=${CC:-gcc}
preload=$($compiler -print-file-name=libasan.so):$($compiler -print-file-name=libubsan.so)
# Python itself leaks by design; everything else is an error.
sanitized() {
    env PYTHONPATH="$work/site" PYTHONSAFEPATH=1 LD_PRELOAD="$preload" \
        ASAN_OPTIONS=detect_leaks=0:abort_on_error=1:allocator_may_return_null=1 \
        UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 "$python" "$@"
}
sanitized -c 'import sys, zil; assert zil.__file__.startswith(sys.argv[1]), zil.__file__' "$work/site"
sanitized -m pytest -q -p no:cacheprovider -p no:benchmark "${@:-tests/core}"
echo "sanitize: no report"
