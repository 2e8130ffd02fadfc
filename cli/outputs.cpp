// SPDX-License-Identifier: Apache-2.0
#include <cli/outputs.hpp>

#include <filesystem>

#include <io/file_error.hpp>
#include <io/partial_file.hpp>

namespace qrane::cli {
namespace {

bool same_file(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  std::error_code reason;
  if (fs::exists(a, reason) && !fs::is_regular_file(a, reason)) return false;  // /dev/null may be named twice
  // absolute first: a relative name of no file yet would stay relative
  return fs::weakly_canonical(fs::absolute(a, reason), reason) == fs::weakly_canonical(fs::absolute(b, reason), reason);
}

bool is_matrix_path(const std::string& path) {
  return io::has_ending(path, ".npy") || io::has_ending(path, ".mtx") || io::has_ending(path, ".mtx.gz");
}

}  // namespace

void check_outputs(const std::vector<Output>& outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Output& one = outputs[i];
    if (one.path.empty()) continue;
    detail::check(!one.matrix || is_matrix_path(one.path), ErrorCode::invalid_argument, one.flag, ": ", one.path,
                  " has no matrix file's ending (.npy, .mtx or .mtx.gz)");
    for (std::size_t j = 0; j < i; ++j) {
      detail::check(outputs[j].path.empty() || !same_file(one.path, outputs[j].path), ErrorCode::invalid_argument,
                    outputs[j].flag, " and ", one.flag, " name the same file: ", one.path);
    }
    const io::PartialFile probe(one.path);  // made beside the path and removed again
  }
}

void write_json(const std::string& path, const Json& json) {
  if (!path.empty()) io::write_file(path, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace qrane::cli
