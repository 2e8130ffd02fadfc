# SPDX-License-Identifier: Apache-2.0
# cmake --install: headers, library, CMake package (find_package(qrane) gives qrane::qrane), pkg-config file, licence;
# cli/ adds the command. The installed tree may be moved: only paths of other packages' libraries are absolute in it.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(QRANE_INSTALL_CMAKEDIR ${CMAKE_INSTALL_LIBDIR}/cmake/qrane)
set(QRANE_INSTALL_PKGCONFIGDIR ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(TARGETS qrane EXPORT qraneTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/qrane DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# Users of a shared qrane need nothing else; users of a static one link what it is made of. A C compiler does not link
# the C++ library by itself.
get_target_property(qrane_type qrane TYPE)
set(QRANE_IS_STATIC OFF)
if(qrane_type STREQUAL "STATIC_LIBRARY")
  set(QRANE_IS_STATIC ON)
endif()
set(QRANE_CXX_RUNTIME ${CMAKE_CXX_IMPLICIT_LINK_LIBRARIES})
list(REMOVE_ITEM QRANE_CXX_RUNTIME ${CMAKE_C_IMPLICIT_LINK_LIBRARIES})

install(EXPORT qraneTargets NAMESPACE qrane:: DESTINATION ${QRANE_INSTALL_CMAKEDIR})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/qraneConfig.cmake.in
  ${PROJECT_BINARY_DIR}/qraneConfig.cmake INSTALL_DESTINATION ${QRANE_INSTALL_CMAKEDIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/qraneConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/qraneConfig.cmake ${PROJECT_BINARY_DIR}/qraneConfigVersion.cmake
  DESTINATION ${QRANE_INSTALL_CMAKEDIR})

set(QRANE_PC_LIBRARIES "")
if(QRANE_IS_STATIC)
  set(pc_items ${QRANE_ORDERING_LIBRARIES} ${QRANE_LAPACKE_LIBRARY} ${LAPACK_LIBRARIES} ${BLAS_LIBRARIES})
  if(QRANE_WITH_CUDA)
    list(APPEND pc_items ${CUDA_cublas_LIBRARY} ${CUDA_cudart_static_LIBRARY} -lrt -ldl)
  endif()
  if(QRANE_WITH_OPENCL)
    list(APPEND pc_items ${OpenCL_LIBRARIES})
  endif()
  list(REMOVE_DUPLICATES pc_items)
  list(FILTER pc_items EXCLUDE REGEX "libpthread")
  list(TRANSFORM QRANE_CXX_RUNTIME PREPEND -l OUTPUT_VARIABLE pc_runtime)
  list(APPEND pc_items -pthread ${pc_runtime})
  list(JOIN pc_items " " QRANE_PC_LIBRARIES)
endif()
file(RELATIVE_PATH QRANE_PC_PREFIX ${CMAKE_INSTALL_PREFIX}/${QRANE_INSTALL_PKGCONFIGDIR} ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" QRANE_PC_PREFIX "${QRANE_PC_PREFIX}")
configure_file(${PROJECT_SOURCE_DIR}/cmake/qrane.pc.in ${PROJECT_BINARY_DIR}/qrane.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/qrane.pc DESTINATION ${QRANE_INSTALL_PKGCONFIGDIR})
