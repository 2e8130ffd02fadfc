# SPDX-License-Identifier: Apache-2.0
# Warnings (target qrane_warnings), hidden symbols, hardening and sanitizers for everything that is built here.
include(CheckCXXCompilerFlag)
include(CheckPIESupported)

add_library(qrane_warnings INTERFACE)
target_compile_options(qrane_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wall -Wextra $<$<BOOL:${QRANE_WERROR}>:-Werror>>)

# Only what QRANE_API marks leaves a shared library. Position-independent code also serves hardened programs.
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
check_pie_supported(LANGUAGES C CXX)

# qrane_precompile(TARGET HEADER...): for a single build, without a compiler cache, which would not take part in it.
function(qrane_precompile target)
  if(QRANE_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()

if(QRANE_SANITIZE)
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${QRANE_SANITIZE}>
    $<$<COMPILE_LANGUAGE:C,CXX>:-fno-sanitize-recover=all> $<$<COMPILE_LANGUAGE:C,CXX>:-fno-omit-frame-pointer>
    $<$<COMPILE_LANGUAGE:CXX>:-D_GLIBCXX_ASSERTIONS>)
  add_link_options(-fsanitize=${QRANE_SANITIZE})
  return()
endif()

# Hardening: checked stack frames and C library calls, control-flow protection, read-only relocations, no executable
# stack. A flag that the compiler or the processor lacks is left out.
foreach(flag -fstack-protector-strong -fstack-clash-protection -fcf-protection)
  string(MAKE_C_IDENTIFIER "QRANE_HAS${flag}" known)
  check_cxx_compiler_flag(${flag} ${known})
  if(${known})
    add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:${flag}>)
  endif()
endforeach()
# Needs an optimized build. Some distributions define it already.
set(optimized $<AND:$<COMPILE_LANGUAGE:C,CXX>,$<CONFIG:Release,RelWithDebInfo,MinSizeRel>>)
add_compile_options("$<${optimized}:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  add_link_options(LINKER:-z,relro LINKER:-z,now LINKER:-z,noexecstack)
endif()
