// SPDX-License-Identifier: Apache-2.0
// Files a command was asked to write: refused before the work starts rather than after it.
#pragma once

#include <string>
#include <vector>

#include <cli/common.hpp>

namespace qrane::cli {

struct Output {
  const char* flag;  ///< "--r", for messages
  std::string path;  ///< empty: not asked for; "-": standard output
  bool matrix = true;
  bool replaces_input = false;  ///< the file is read, changed and written back
};

struct Input {
  std::string name;  ///< "A" or "--b", for messages
  std::string path;  ///< empty: not given; "-": standard input
};

/// Checks that matrices have a matrix file's ending, that each file can be written, and that no output is another
/// output or an input: files are told apart by device and inode, through links of both kinds. The user's tuning table
/// counts as an input. Of what exists nothing is touched but the outputs' partial files that a killed process left.
/// With an output on standard output, words go to standard error from now on. Throws Error{invalid_argument} or
/// Error{file}.
void check_outputs(const std::vector<Output>& outputs, const std::vector<Input>& inputs = {});

/// Throws Error{out_of_memory}, with what keeps it sparse, for a sparse input that does not fit into free memory when
/// it is converted to dense and factored.
void check_dense_sizes(const std::vector<Input>& inputs, const Context& context, std::size_t scalar_bytes);
/// Throws the error again; that memory ended with the same advice where an input is sparse.
[[noreturn]] void advise_sparse(const Error& error, const std::vector<Input>& inputs);

/// How most commands end: in the precision asked for, or f32 where all input is `single`, with every output writable,
/// --json among them, work(T{}, context, precision) on the device asked for.
template <class Work>
int run_on_device(const CommonOptions& common, bool single, std::vector<Output> outputs,
                  const std::vector<Input>& inputs, Work work) {
  const Precision precision = pick_precision(common, single ? Precision::f32 : Precision::f64);
  outputs.push_back({"--json", common.json, false});
  check_outputs(outputs, inputs);
  const Context context = make_context(common, precision);
  return with_scalar(precision, [&](auto scalar) {
    check_dense_sizes(inputs, context, sizeof(scalar));
    try {
      return work(scalar, context, precision);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::out_of_memory) throw;
      advise_sparse(error, inputs);
    }
  });
}

/// Writes the JSON beside `path` and renames; nothing for an empty path.
void write_json(const std::string& path, const Json& json);

}  // namespace qrane::cli
