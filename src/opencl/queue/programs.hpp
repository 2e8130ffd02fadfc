// SPDX-License-Identifier: Apache-2.0
// The kernels of one device that were built so far, from the embedded sources; their binaries are kept on disk. What
// building takes is counted, since on some drivers it is the longest part of a first call.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "opencl/opencl.hpp"
#include "opencl/queue/queue.hpp"

namespace qrane::backend::opencl {

/// Preprocessor names and values that specialize a source file.
using Defines = std::vector<std::pair<std::string, std::string>>;

class Programs {
 public:
  Programs(cl_context context, cl_device_id device, bool has_double);
  ~Programs();
  Programs(const Programs&) = delete;
  Programs& operator=(const Programs&) = delete;

  /// The kernel `name` of `files` (common.cl first) and then the text `more`, under `defines`; built once.
  cl_kernel kernel(const std::vector<std::string>& files, const std::string& name, const Defines& defines,
                   const std::string& more = {});
  /// True once for each kernel: some drivers compile a kernel when it first runs, which the caller does by `count_in`.
  bool runs_first(cl_kernel kernel) { return new_kernels_.erase(kernel) > 0; }
  /// Does `work` and counts its time in, as part of building the kernel.
  void count_in(cl_kernel kernel, const std::function<void()>& work);

  double build_seconds() const { return build_seconds_; }
  void on_build(BuildNotice notice) { notice_ = std::move(notice); }

 private:
  cl_program build(const std::string& source);
  void announce(const std::string& what);

  cl_context context_;
  cl_device_id device_;
  bool has_double_, stores_binaries_;
  std::string options_;    // of the compiler
  std::string build_key_;  // device, driver and platform version
  std::map<std::string, cl_program> programs_;
  std::map<std::string, cl_kernel> kernels_;
  std::set<cl_kernel> new_kernels_;
  double build_seconds_ = 0;
  double next_notice_ = 1;  // build_seconds_ when the next notice is due
  BuildNotice notice_;
};

}  // namespace qrane::backend::opencl
