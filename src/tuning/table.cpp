// SPDX-License-Identifier: Apache-2.0
// Keys and look-up, and the tables that come with the library. How files are read: table_file.cpp.
#include "tuning/table.hpp"

#include <array>
#include <charconv>
#include <type_traits>

#include "tuning/shipped.hpp"

namespace qrane::tuning {

namespace {

/// "sm_90" -> {"sm_", 90}; a name without a number at its end is a family of its own.
std::pair<std::string, int> family_and_age(const std::string& architecture) {
  const std::size_t digits = architecture.find_last_not_of("0123456789") + 1;
  int number = 0;
  std::from_chars(architecture.data() + digits, architecture.data() + architecture.size(), number);
  return {architecture.substr(0, digits), number};
}

template <class Tuning>
void lay_over(Tuning& tuning, const Table& table, const Key& key, std::string& source) {
  constexpr Operation operation = std::is_same_v<Tuning, QRTuning> ? Operation::qr : Operation::update;
  bool used = false;
  for (const Entry& entry : table.entries) {
    if (entry.operation != operation || !entry.matches(key)) continue;
    for (const auto& [name, value] : entry.parameters) set_parameter(tuning, name, value);
    used = used || !entry.parameters.empty();
  }
  if (used) source += (source.empty() ? "" : ", then ") + table.title();
}

std::vector<Table> parse_shipped(Backend backend) {
  std::vector<Table> tables;
  const std::string prefix = std::string(qrane::to_string(backend)) + "_";
  for (std::size_t i = 0; i < embedded_text_count; ++i) {
    const detail::EmbeddedText& file = embedded_texts[i];
    if (!std::string_view(file.name).starts_with(prefix)) continue;
    for (Table& table : parse(detail::whole(file), file.name)) {
      table.origin = "shipped";
      tables.push_back(std::move(table));
    }
  }
  return tables;
}

}  // namespace

bool Entry::matches(const Key& key) const {
  return (!scalar_bytes || *scalar_bytes == key.scalar_bytes) && (!shape || *shape == key.shape) && (!q || *q == key.q);
}

std::string Table::title() const { return (device == "*" ? "any device" : device) + " (" + origin + ")"; }

namespace {

template <class Tuning>
bool set_in(Tuning& tuning, const std::string& name, std::int64_t value) {
  bool found = false;
  for_each_parameter(tuning, [&](const char* known, auto& field, std::int64_t, std::int64_t) {
    if (name != known) return;
    field = static_cast<std::remove_reference_t<decltype(field)>>(value);
    found = true;
  });
  return found;
}

}  // namespace

bool set_parameter(QRTuning& tuning, const std::string& name, std::int64_t value) {
  return set_in(tuning, name, value);
}
bool set_parameter(UpdateTuning& tuning, const std::string& name, std::int64_t value) {
  return set_in(tuning, name, value);
}

QRTuning Tables::look_up(const Key& key, std::string* source) const {
  QRTuning tuning = qr_defaults(backend);
  std::string from;
  for (const Table& layer : layers) lay_over(tuning, layer, key, from);
  if (source) {
    *source = from.empty() ? detail::concat("the defaults of backend ", qrane::to_string(backend)) : from;
    *source += detail::concat(" for ", to_string(key.shape), " shapes");
  }
  return tuning;
}

UpdateTuning Tables::look_up_update(const Key& key) const {
  UpdateTuning tuning = update_defaults(backend, key.scalar_bytes);
  std::string from;
  for (const Table& layer : layers) lay_over(tuning, layer, key, from);
  return tuning;
}

const Table* best_match(const std::vector<Table>& tables, const DeviceInfo& device) {
  const auto [family, age] = family_and_age(device.architecture);
  const Table* best = nullptr;
  std::pair<int, int> best_rank{0, 0};  // 3: by name, 2: for any device, 1: an older one, the newest of them
  for (const Table& table : tables) {
    if (table.backend != device.backend) continue;
    const auto [its_family, its_age] = family_and_age(table.architecture);
    std::pair<int, int> rank{0, 0};
    if (table.device == device.name)
      rank = {3, 0};
    else if (table.device == "*")
      rank = {2, 0};
    else if (!family.empty() && its_family == family && its_age <= age)
      rank = {1, its_age + 1};
    if (rank > best_rank) {
      best_rank = rank;
      best = &table;
    }
  }
  return best;
}

const std::vector<Table>& shipped(Backend backend) {
  static const std::array<std::vector<Table>, 3> all{parse_shipped(Backend::cpu), parse_shipped(Backend::opencl),
                                                     parse_shipped(Backend::cuda)};
  return all[backend == Backend::cpu ? 0 : backend == Backend::opencl ? 1 : 2];
}

}  // namespace qrane::tuning
