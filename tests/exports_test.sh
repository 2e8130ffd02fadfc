#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A shared library of the same objects exports what programs need that use public headers alone, and nothing internal.
# The needs are the symbols that the objects of the tests of the public interface leave undefined.
#   tests/exports_test.sh SHARED_LIBRARY STATIC_LIBRARY FOLDER_OF_OBJECTS...
set -eu
shared=$1
static=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# symbols NM_OPTION... FILE...: the names alone, sorted
symbols() { nm "$@" 2>/dev/null | awk 'NF >= 2 && $1 !~ /:$/ { print $NF }' | sort -u; }
symbols --dynamic --defined-only "$shared" >"$work/exported"
symbols --extern-only --defined-only "$static" >"$work/defined"
find "$@" -name '*.o' -exec nm --undefined-only {} + | awk 'NF == 2 && $1 == "U" { print $2 }' | sort -u >"$work/used"

comm -12 "$work/used" "$work/defined" >"$work/needed"
[ -s "$work/needed" ] || { echo "no symbol of the library is used by $*"; exit 1; }
comm -23 "$work/needed" "$work/exported" >"$work/missing"
if [ -s "$work/missing" ]; then
  echo "not exported, but used by programs that include public headers alone:"
  c++filt <"$work/missing"
  exit 1
fi
# Algorithms, backends and tables are internal.
internal='^(vtable for |typeinfo (name )?for )?qrane::(backend|dense|plan|tuning|update|io|rpca)::'
c++filt <"$work/exported" | grep -E "$internal" >"$work/internal" || true
if [ -s "$work/internal" ]; then
  echo "exported, but internal:"
  head -n 20 "$work/internal"
  exit 1
fi
echo "$(wc -l <"$work/needed") symbols are used, $(wc -l <"$work/exported") exported"
