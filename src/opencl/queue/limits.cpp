// SPDX-License-Identifier: Apache-2.0
// QRANE_OPENCL_LIMITS makes every device of this process smaller than it is, so that small devices can be tested on
// large ones. Words separated by commas: work_group=64, local_bytes=16384, no_double; gpu takes a GPU's block shapes.
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "opencl/queue/device.hpp"

namespace qrane::backend::opencl {

namespace {

constexpr const char* variable = "QRANE_OPENCL_LIMITS";

/// The number after `name` when the word is name=number.
bool read_number(std::string_view word, std::string_view name, std::int64_t& value) {
  if (!word.starts_with(name)) return false;
  const char* const end = word.data() + word.size();
  const auto [stop, code] = std::from_chars(word.data() + name.size(), end, value);
  return code == std::errc() && stop == end && value > 0;
}

std::int64_t smaller(std::int64_t limit, std::int64_t value) { return limit > 0 ? std::min(limit, value) : value; }

}  // namespace

QueueOptions lowered(QueueOptions options) {
  const char* const text = std::getenv(variable);
  std::string_view rest = text ? text : "";
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    std::int64_t value = 0;
    if (read_number(word, "work_group=", value))
      options.max_work_group = smaller(options.max_work_group, value);
    else if (read_number(word, "local_bytes=", value))
      options.max_local_bytes = smaller(options.max_local_bytes, value);
    else if (word == "no_double")
      options.use_double = false;
    else if (word == "gpu")
      options.as_gpu = true;
    else
      throw Error(ErrorCode::invalid_argument,
                  detail::concat(variable, ": '", std::string(word),
                                 "' is none of work_group=NUMBER, local_bytes=NUMBER, no_double, gpu"));
  }
  return options;
}

}  // namespace qrane::backend::opencl
