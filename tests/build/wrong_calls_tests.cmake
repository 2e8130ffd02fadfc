# SPDX-License-Identifier: Apache-2.0
# Calls that must not compile, and the words that the compiler must say about them.
function(qrane_add_wrong_call case standard words)
  add_test(NAME wrong_calls.${case} COMMAND ${CMAKE_CXX_COMPILER} -std=${standard} -fsyntax-only -DCASE=${case}
    -I ${PROJECT_SOURCE_DIR}/include ${CMAKE_CURRENT_SOURCE_DIR}/build/wrong_calls.cpp)
  set_tests_properties(wrong_calls.${case} PROPERTIES PASS_REGULAR_EXPRESSION "${words}" TIMEOUT 120)
endfunction()
qrane_add_wrong_call(1 c++20 "qrane factors matrices of float and double")
qrane_add_wrong_call(2 c++20 "qrane factors matrices of float and double")
qrane_add_wrong_call(3 c++20 "qrane factors matrices of float and double")
qrane_add_wrong_call(4 c++20 "cannot convert|no known conversion|could not convert|no viable conversion")
qrane_add_wrong_call(5 c++17 "need C\\+\\+20")
