// SPDX-License-Identifier: Apache-2.0
// The vocabulary's tests on the CPU backend.
#include <memory>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "cpu/whole.hpp"

namespace qrane::backend::test {

using KernelTypes = testing::Types<std::tuple<Cpu, float>, std::tuple<Cpu, double>>;

std::unique_ptr<cpu::Queue> make_queue(std::string&) { return std::make_unique<cpu::Queue>(2); }

}  // namespace qrane::backend::test

#include "kernels_test.hpp"
