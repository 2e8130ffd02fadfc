// SPDX-License-Identifier: Apache-2.0
// What a device says about itself.
#pragma once

#include <cstring>
#include <string>

#include <qrane/error.hpp>

#include "opencl/opencl.hpp"

namespace qrane::backend::opencl {

template <class T>
T device_value(cl_device_id device, cl_device_info what) {
  T value{};
  clGetDeviceInfo(device, what, sizeof value, &value, nullptr);
  return value;
}

inline std::string device_text(cl_device_id device, cl_device_info what) {
  std::size_t size = 0;
  if (clGetDeviceInfo(device, what, 0, nullptr, &size) != CL_SUCCESS || size == 0) return {};
  std::string text(size, '\0');
  clGetDeviceInfo(device, what, size, text.data(), nullptr);
  text.resize(std::strlen(text.c_str()));
  return text;
}

inline std::string platform_name(cl_device_id device) {
  char name[256] = "";
  clGetPlatformInfo(device_value<cl_platform_id>(device, CL_DEVICE_PLATFORM), CL_PLATFORM_NAME, sizeof name - 1, name,
                    nullptr);
  return name;
}

/// Whether the device has cl_khr_fp64.
inline bool has_fp64(cl_device_id device) {
  return detail::concat(' ', device_text(device, CL_DEVICE_EXTENSIONS), ' ').find(" cl_khr_fp64 ") !=
             std::string::npos ||
         device_value<cl_device_fp_config>(device, CL_DEVICE_DOUBLE_FP_CONFIG) != 0;
}

}  // namespace qrane::backend::opencl
