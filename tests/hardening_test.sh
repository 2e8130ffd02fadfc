#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs and shared libraries are hardened as SECURITY.md says.
#   tests/hardening_test.sh PROGRAM SHARED_LIBRARY
set -eu
command -v readelf >/dev/null || { echo "no readelf here"; exit 77; }
status=0
fail() { echo "$1: $2"; status=1; }
for file in "$@"; do
  headers=$(readelf -lW "$file")
  dynamic=$(readelf -dW "$file")
  readelf -hW "$file" | grep -q 'Type: *DYN' || fail "$file" "not position-independent"
  echo "$headers" | grep -q GNU_RELRO || fail "$file" "relocations stay writable"
  echo "$dynamic" | grep -qE 'FLAGS.*NOW' || fail "$file" "no immediate binding"
  echo "$headers" | grep -qE 'GNU_STACK.* RW ' || fail "$file" "the stack is executable"
  if echo "$headers" | grep -qE '^ *LOAD.* RWE '; then fail "$file" "a segment is writable and executable"; fi
  readelf -sW "$file" | grep -q __stack_chk_fail || fail "$file" "no stack protector"
done
exit $status
