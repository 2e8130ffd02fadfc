// SPDX-License-Identifier: Apache-2.0
#include <cli/outputs.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include <io/input_file.hpp>
#include <io/matrices/matrix_file.hpp>
#include <io/partial_file.hpp>

#include "tuning/table.hpp"

namespace qrane::cli {
namespace {

/// Device and inode, links followed.
using FileId = std::pair<dev_t, ino_t>;

/// Of a regular file that exists; /dev/null and the like may be named as often as one wants.
std::optional<FileId> file_id(const std::string& path) {
  struct stat status {};
  if (path.empty() || ::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return FileId(status.st_dev, status.st_ino);
}

bool same_file(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  if (a == "-" || b == "-") return a == b;
  const auto id = file_id(a);
  if (id || file_id(b)) return id == file_id(b);
  std::error_code reason;
  if (fs::exists(a, reason)) return false;
  // absolute first: a relative name of no file yet would stay relative
  return fs::weakly_canonical(fs::absolute(a, reason), reason) == fs::weakly_canonical(fs::absolute(b, reason), reason);
}

std::map<FileId, const Input*> ids_of(const std::vector<Input>& inputs) {
  std::map<FileId, const Input*> ids;
  const Input* from_terminal = nullptr;
  for (const Input& input : inputs) {
    if (const auto id = file_id(input.path)) ids.emplace(*id, &input);
    if (input.path != "-") continue;
    detail::check(from_terminal == nullptr, ErrorCode::invalid_argument, from_terminal ? from_terminal->name : "",
                  " and ", input.name, " are both standard input: it can be read once");
    from_terminal = &input;
  }
  return ids;
}

}  // namespace

void check_outputs(const std::vector<Output>& outputs, const std::vector<Input>& inputs) {
  std::vector<Input> all = inputs;
  all.push_back({"the tuning table", tuning::user_file()});
  const std::map<FileId, const Input*> ids = ids_of(all);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Output& one = outputs[i];
    if (one.path.empty()) continue;
    detail::check(!one.matrix || io::can_write_matrix(one.path), ErrorCode::invalid_argument, one.flag, ": ", one.path,
                  " has no matrix file's ending (.npy, .mtx or .mtx.gz)");
    for (std::size_t j = 0; j < i; ++j) {
      detail::check(outputs[j].path.empty() || !same_file(one.path, outputs[j].path), ErrorCode::invalid_argument,
                    outputs[j].flag, " and ", one.flag, " name the same file: ", one.path);
    }
    const auto id = file_id(one.path);
    const auto input = id && !one.replaces_input ? ids.find(*id) : ids.end();
    if (input != ids.end()) {
      throw Error(ErrorCode::invalid_argument, detail::concat(one.flag, ": ", one.path, " would overwrite an input: ",
                                                              input->second->name, " is ", input->second->path));
    }
    if (one.path == "-") Words::to_standard_error();
    if (io::is_stream(one.path)) continue;  // the reader of a pipe would take opening and closing it for its end
    io::remove_abandoned(one.path);
    const io::PartialFile probe(one.path);  // made beside the path and removed again
  }
}

void check_dense_sizes(const std::vector<Input>& inputs, const Context& context, std::size_t scalar_bytes) {
  for (const Input& input : inputs) {
    if (input.path.empty()) continue;
    const io::MatrixFileInfo info = io::probe_matrix(input.path);
    if (!info.sparse) continue;
    const double bytes = 2.0 * static_cast<double>(info.rows) * static_cast<double>(info.cols) *
                         static_cast<double>(scalar_bytes);  // the matrix and its factors
    const auto free = static_cast<double>(context.device().free_bytes);
    if (bytes <= free) continue;
    advise_sparse(Error(ErrorCode::out_of_memory,
                        detail::concat("a dense matrix of ", shape(info.rows, info.cols), " and its factors need ",
                                       brief(bytes * 0x1p-30), " GiB, ", brief(free * 0x1p-30), " GiB are free")),
                  {input});
  }
}

void advise_sparse(const Error& error, const std::vector<Input>& inputs) {
  for (const Input& input : inputs)
    if (!input.path.empty() && io::probe_matrix(input.path).sparse)
      throw Error(error.code(), detail::concat(input.path, ": ", error.what(),
                                               "; `qrane qr --sparse` and `qrane solve` keep it sparse"));
  throw error;
}

void write_json(const std::string& path, const Json& json) {
  if (!path.empty()) io::write_file(path, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace qrane::cli
