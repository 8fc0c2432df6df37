#!/usr/bin/env bash
# Run the C kernels of the tick sampler under valgrind, with debug and with optimised code.
#
#     tools/valgrind.sh
#
# Any report, leak or use of an uninitialised byte ends the run with a failure.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for flags in "-O1 -g" "-O3 -g" "-O3 -g -mavx2"; do
    # shellcheck disable=SC2086
    ${CC:-gcc} -std=c11 $flags -Wall -Wextra -ffp-contract=off -Isrc/c -DZIL_ISA=base \
        tools/kernel_driver.c src/c/certified.c src/c/chacha.c src/c/isa.c -lm -o "$work/driver"
    digest=$(valgrind --quiet --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=all "$work/driver")
    echo "valgrind: no report, $flags, digest $digest"
done
