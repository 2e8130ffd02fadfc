// SPDX-License-Identifier: Apache-2.0
// Tables of tuned parameters: their look-up, and the files they come from.
//
// A file holds tables, a table the entries of one device, an entry the parameters of one operation for the keys it
// matches (what it does not name, it takes all of). Operations are qr and update:
//
//   {"qrane_tuning": 1,
//    "tables": [{"backend": "cuda", "device": "NVIDIA H200", "architecture": "sm_90", ...
//                "entries": [{"operation": "qr", "scalar": "f32", "shape": "tall", "q": "none",
//                             "parameters": {"panel_cols": 32, "widest_caqr": 1024}, "evidence": ...}]}]}
//
// The values for a key are laid over each other: the backend's defaults (defaults.hpp), the shipped table of this
// device or of the nearest older one of its kind, the user's table; in each the entries in their order. "evidence" and
// whatever else describes a table is for people and not read.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <qrane/context.hpp>

#include "tuning/defaults.hpp"
#include "tuning/key.hpp"
#include "vocabulary/vocabulary.hpp"

namespace qrane::tuning {

enum class Operation { qr, update };

struct Entry {
  std::optional<int> scalar_bytes;
  std::optional<Shape> shape;
  std::optional<QForm> q;
  std::vector<std::pair<std::string, std::int64_t>> parameters;
  std::string place;  ///< where it stands in its file, for messages
  Operation operation = Operation::qr;

  bool matches(const Key& key) const;
};

struct Table {
  Backend backend = Backend::cpu;
  std::string device;        ///< as its driver calls it; "*" for any of the backend
  std::string architecture;  ///< as DeviceInfo::architecture
  std::string origin;        ///< "shipped" or the file's name
  std::vector<Entry> entries;

  /// "NVIDIA H200 (shipped)".
  std::string title() const;
};

/// The tables that count on one device, the weaker first.
struct Tables {
  Backend backend = Backend::cpu;
  std::vector<Table> layers;

  /// The parameters for a key; `source`, unless null, says in words where they came from.
  QRTuning look_up(const Key& key, std::string* source = nullptr) const;
  UpdateTuning look_up_update(const Key& key) const;
};

const char* to_string(Shape shape);
const char* to_string(Operation operation);

/// Calls visit(name, field, smallest, largest) for every parameter.
template <class Visitor>
void for_each_parameter(UpdateTuning& t, Visitor&& visit) {
  constexpr std::int64_t any = std::int64_t{1} << 30;
  visit("gemm_gflops", t.gemm_gflops, 1, any);
  visit("copy_gbytes", t.copy_gbytes, 1, any);
  visit("step_ns", t.step_ns, 1, any);
  visit("column_ns", t.column_ns, 1, any);
  visit("sweep_percent", t.sweep_percent, 1, 1000);
  visit("block_cols", t.block_cols, 1, 4096);
  visit("refactor_percent", t.refactor_percent, 1, 10000);
  visit("margin_percent", t.margin_percent, 0, 90);
  visit("wide_margin_percent", t.wide_margin_percent, 0, 90);
}
template <class Visitor, class Tuning>
void for_each_parameter(Tuning& t, Visitor&& visit) {
  constexpr std::int64_t any = std::int64_t{1} << 31;
  visit("panel_cols", t.panel_cols, 1, 4096);
  visit("inner", t.inner, 1, 256);
  visit("block_bytes", t.block_bytes, 0, any);
  visit("min_block_rows", t.min_block_rows, 16, any);  // a deep tree of tiny leaves adds up its roundings
  visit("min_rows_per_col", t.min_rows_per_col, 1, 1024);
  visit("arity", t.arity, 2, 1024);
  visit("blocked_panel_cols", t.blocked_panel_cols, 1, 4096);
  visit("cholesky_panel_cols", t.cholesky_panel_cols, 1, 4096);
  visit("block_cols", t.block_cols, 1, 16384);
  visit("batch_block_cols", t.batch_block_cols, 1, 16384);
  visit("widest_caqr", t.widest_caqr, 0, any);
  visit("widest_single_panel", t.widest_single_panel, 0, any);
  visit("cholesky_panels", t.cholesky_panels, 0, 1);
  visit("prefers_cholesky", t.prefers_cholesky, 0, 1);
  visit("narrowest_cholesky", t.narrowest_cholesky, 1, any);
  visit("cholesky_rows_per_col", t.cholesky_rows_per_col, 1, any);
  visit("tsqr_rows_per_col", t.tsqr_rows_per_col, 1, any);
  visit("caqr_rows_per_col", t.caqr_rows_per_col, 1, any);
  visit("widest_square_caqr", t.widest_square_caqr, 0, any);
}

/// Sets one parameter; false when there is none of this name.
bool set_parameter(QRTuning& tuning, const std::string& name, std::int64_t value);
bool set_parameter(UpdateTuning& tuning, const std::string& name, std::int64_t value);

/// The tables in `text`. Throws Error{file} naming `origin` and the line or key.
std::vector<Table> parse(std::string_view text, const std::string& origin);

/// Throws Error{file} naming the table's origin and key for a value that this device cannot take.
void check_limits(const Table& table, const backend::Limits& limits, int scalar_bytes);

/// The table of `device` by name, else for any device, else of the nearest older one of its backend; or none.
const Table* best_match(const std::vector<Table>& tables, const DeviceInfo& device);

/// Tables that come with the library for this backend; parsed once.
const std::vector<Table>& shipped(Backend backend);

/// $QRANE_TUNING_FILE ("none": no user's table), else $XDG_CONFIG_HOME/qrane/tuning.json, else
/// ~/.config/qrane/tuning.json; empty when there is no such place.
std::string user_file();

/// What counts on `device`: shipped, then the user's. Throws Error{file} for a broken user's file, and for one that
/// QRANE_TUNING_FILE names and that is not there.
std::shared_ptr<const Tables> load(const DeviceInfo& device, const backend::Limits& f32, const backend::Limits& f64);

}  // namespace qrane::tuning
