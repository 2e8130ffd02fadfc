# SPDX-License-Identifier: Apache-2.0
# The steps of examples/opencl at small sizes, also where the last tile or block is not full; each checks itself.
find_path(QRANE_OPENCL_CPP_INCLUDE CL/opencl.hpp)
if(QRANE_WITH_OPENCL AND QRANE_OPENCL_CPP_INCLUDE)
  add_subdirectory(${PROJECT_SOURCE_DIR}/examples/opencl ${PROJECT_BINARY_DIR}/examples/opencl)
  foreach(run "01_transpose 36" "02_product 36" "03_reflection 37" "04_one_group 17" "05_reflectors 17"
          "06_more_columns 37 21" "07_more_groups 70 37" "08_tiles 70 37" "09_tree 1001 21" "10_thin_q 1001 21")
    separate_arguments(run)
    list(POP_FRONT run step)
    list(JOIN run "x" size)
    add_test(NAME opencl_examples.${step}.${size} COMMAND opencl_${step} ${run})
    set_tests_properties(opencl_examples.${step}.${size} PROPERTIES LABELS opencl TIMEOUT 300)
  endforeach()
endif()
