// SPDX-License-Identifier: Apache-2.0
#include "opencl/queue/device.hpp"
#include "paper/opencl.hpp"
#include "paper/updates/updated.hpp"

namespace qrane::paper {

namespace {

/// A queue of its own in the context's OpenCL context, so that both can use one buffer.
backend::opencl::Queue queue_beside(const Context& context) {
  using backend::opencl::check_status;
  const Matrix<float> probe = context.allocate<float>(1, 1);
  cl_context shared = nullptr;
  check_status(
      clGetMemObjectInfo(static_cast<cl_mem>(probe.view().buffer), CL_MEM_CONTEXT, sizeof shared, &shared, nullptr),
      "clGetMemObjectInfo");
  cl_device_id device = nullptr;
  check_status(clGetContextInfo(shared, CL_CONTEXT_DEVICES, sizeof device, &device, nullptr), "clGetContextInfo");
  cl_int status = CL_SUCCESS;
  const cl_command_queue own = clCreateCommandQueue(shared, device, 0, &status);
  check_status(status, "clCreateCommandQueue");
  backend::opencl::Queue queue(0, own);  // holds it
  clReleaseCommandQueue(own);
  return queue;
}

}  // namespace

template <class T>
Updates<T> make_opencl_updates(const Context& context, MatrixView<const T> a, QForm form) {
  return make_updates<backend::OpenCL, T>(queue_beside(context), context, a, form);
}
template Updates<float> make_opencl_updates(const Context&, MatrixView<const float>, QForm);
template Updates<double> make_opencl_updates(const Context&, MatrixView<const double>, QForm);

}  // namespace qrane::paper
