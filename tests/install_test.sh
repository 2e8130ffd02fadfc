#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a user of the library does: installs it, builds the examples and the README's program against the installed
# package (C++ through CMake, C through pkg-config), runs them, and reads their results. The installed tree is moved
# first, since it may be. Exit status 77 (skip) when all went well but for want of pkg-config.
#   tests/install_test.sh BUILD_FOLDER SOURCE_FOLDER
set -eu
build=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# expect FILE TEXT: the output holds the line
expect() {
  grep -qE "$2" "$1" || { echo "no line matches '$2' in the output of $(basename "$1")"; cat "$1"; exit 1; }
}
# What the build was told about other packages' places, its users must be told too.
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt" | grep -v NOTFOUND || true; }
build_project() {
  set -- "$1" "$2" -DCMAKE_BUILD_TYPE=Release "-DCMAKE_PREFIX_PATH=$work/installed;$(cached CMAKE_PREFIX_PATH)"
  for name in OpenCL_INCLUDE_DIR OpenCL_LIBRARY CUDAToolkit_ROOT; do
    [ -z "$(cached $name)" ] || set -- "$@" "-D$name=$(cached $name)"
  done
  from=$1 to=$2
  shift 2
  cmake -S "$from" -B "$to" "$@"
  cmake --build "$to"
}

cmake --install "$build" --prefix "$work/first" >"$work/install.log" || { cat "$work/install.log"; exit 1; }
mv "$work/first" "$work/installed"
pkgconfig=$(dirname "$(find "$work/installed" -name qrane.pc)")
libraries=$(dirname "$pkgconfig")
cp -R "$source/examples" "$work/examples"

build_project "$work/examples" "$work/build"
for example in regression krylov low_rank sliding_window surface; do
  "$work/build/$example/$example" >"$work/$example" || { cat "$work/$example"; echo "$example failed"; exit 1; }
  cat "$work/$example"
done
expect "$work/regression" '^600 values, 5 unknowns, rank 5, '
expect "$work/regression" 'rank 5 of 6, least-norm coefficients 1\.2[0-9]* and 1\.2'
expect "$work/krylov" '^basis of 229441 x 8, '
expect "$work/krylov" 'Ritz value 0\.990392640[0-9]*   eigenvalue 0\.990392640'
expect "$work/low_rank" '^largest singular values 1\.0000 0\.8000 0\.6400 '
expect "$work/low_rank" 'ratio 1\.0'
expect "$work/sliding_window" '^3000 rows in and out, 0 refused$'
expect "$work/surface" '^round 6: worst error of the surface 0\.0[0-4]'
expect "$work/surface" '^rank 3600 of 3600$'

# the program and the project file that the README shows
mkdir "$work/readme"
awk '/^```/ { inside = $0 == "```cpp"; next } inside' "$source/README.md" >"$work/readme/main.cpp"
awk '/^```/ { inside = $0 == "```cmake"; next } inside' "$source/README.md" >"$work/readme/CMakeLists.txt"
build_project "$work/readme" "$work/readme/build"
"$work/readme/build/parabola" >"$work/parabola"
expect "$work/parabola" '^2\.000 -1\.000 3\.000, rank 3 of 3$'

command -v pkg-config >/dev/null || { echo "no pkg-config here: the C example was not built"; exit 77; }
export PKG_CONFIG_PATH="$pkgconfig"
pkg-config --modversion qrane
make -C "$work/examples/c_solve"
LD_LIBRARY_PATH="$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$work/examples/c_solve/c_solve" >"$work/c_solve"
cat "$work/c_solve"
expect "$work/c_solve" '^z = 2\.0000 \+ -0\.5000 x \+ 0\.2500 y, rank 3 of 3'
