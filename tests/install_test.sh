#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a user of the library does: installs it, builds the examples and the README's program against the installed
# package (C++ and C, through CMake and through pkg-config), runs them, and reads their results. The installed tree is
# moved first, since it may be. Then a project includes qrane by add_subdirectory and by FetchContent: with
# QRANE_TEST_FULL=1 the project is built and run, else only configured. Exit status 77 (skip) when everything passed
# except what needs pkg-config, which is missing.
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
# configure_project FROM TO OPTION...
configure_project() {
  set -- "$@" -DCMAKE_BUILD_TYPE=Release "-DCMAKE_PREFIX_PATH=$work/installed;$(cached CMAKE_PREFIX_PATH)"
  for name in OpenCL_INCLUDE_DIR OpenCL_LIBRARY CUDAToolkit_ROOT; do
    [ -z "$(cached $name)" ] || set -- "$@" "-D$name=$(cached $name)"
  done
  from=$1 to=$2
  shift 2
  cmake -S "$from" -B "$to" "$@"
}
build_project() {
  configure_project "$1" "$2"
  cmake --build "$2"
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

# a project in C alone
mkdir "$work/c_only"
cp "$source/examples/c_solve/main.c" "$work/c_only"
cat >"$work/c_only/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.22)
project(c_only LANGUAGES C)
find_package(qrane REQUIRED)
add_executable(c_only main.c)
target_link_libraries(c_only PRIVATE qrane::qrane m)
END
build_project "$work/c_only" "$work/c_only/build"
"$work/c_only/build/c_only" >"$work/c_only/output"
expect "$work/c_only/output" '^z = 2\.0000 \+ -0\.5000 x \+ 0\.2500 y, rank 3 of 3'

# projects that include the sources: they get the library alone
include_project() {
  mkdir "$work/$1"
  cp "$work/readme/main.cpp" "$work/$1"
  cat >"$work/$1/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.22)
project($1 LANGUAGES C CXX)
$2
add_executable(parabola main.cpp)
target_link_libraries(parabola PRIVATE qrane::qrane)
foreach(target qrane_command qrane_bench qrane_test_support)
  if(TARGET \${target})
    message(FATAL_ERROR "\${target} was not asked for")
  endif()
endforeach()
END
  configure_project "$work/$1" "$work/$1/build" -DQRANE_CUDA=OFF
  case ${QRANE_TEST_FULL:-0} in
    0) ;;
    *)
      cmake --build "$work/$1/build" --parallel
      "$work/$1/build/parabola" >"$work/$1/output"
      expect "$work/$1/output" '^2\.000 -1\.000 3\.000, rank 3 of 3$'
      ;;
  esac
}
include_project subdirectory "add_subdirectory(\"$source\" qrane)"
include_project fetched "include(FetchContent)
FetchContent_Declare(qrane SOURCE_DIR \"$source\")
FetchContent_MakeAvailable(qrane)"

command -v pkg-config >/dev/null || { echo "no pkg-config here: its programs were not built"; exit 77; }
export PKG_CONFIG_PATH="$pkgconfig"
export LD_LIBRARY_PATH="$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
pkg-config --modversion qrane
make -C "$work/examples/c_solve"
"$work/examples/c_solve/c_solve" >"$work/c_solve"
cat "$work/c_solve"
expect "$work/c_solve" '^z = 2\.0000 \+ -0\.5000 x \+ 0\.2500 y, rank 3 of 3'
# shellcheck disable=SC2046,SC2086  # flags are words
c++ -std=c++20 $(pkg-config --cflags qrane) "$work/readme/main.cpp" -o "$work/by_pkgconfig" $(pkg-config --libs qrane)
# shellcheck disable=SC2046
if c++ -std=c++17 -Wfatal-errors $(pkg-config --cflags qrane) -c "$work/readme/main.cpp" -o "$work/o" 2>"$work/old"
then
  echo "C++17 was accepted"
  exit 1
fi
expect "$work/old" 'compile with -std=c\+\+20'
"$work/by_pkgconfig" >"$work/by_pkgconfig.output"
expect "$work/by_pkgconfig.output" '^2\.000 -1\.000 3\.000, rank 3 of 3$'
