# SPDX-License-Identifier: Apache-2.0
# The C interface, called from C99, once per backend; an absent backend is a skip that says so.
add_executable(c_interface_test c_interface_test.c)
set_target_properties(c_interface_test PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
target_compile_options(c_interface_test PRIVATE -Wall -Wextra -Wpedantic -Werror)
target_link_libraries(c_interface_test PRIVATE qrane m)
foreach(backend cpu opencl cuda)
  add_test(NAME c_interface.${backend} COMMAND c_interface_test ${backend})
  set_tests_properties(c_interface.${backend} PROPERTIES SKIP_RETURN_CODE 77)
endforeach()
