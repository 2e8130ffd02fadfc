// SPDX-License-Identifier: Apache-2.0
// Tables as JSON text: read strictly (an unknown name is more likely a slip than a wish), refused naming line or key.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <type_traits>
#include <utility>

#include <nlohmann/json.hpp>

#include "tuning/table.hpp"

namespace qrane::tuning {

namespace {

using Json = nlohmann::json;

constexpr std::array operation_names{"qr", "update"};

constexpr std::array<std::pair<Shape, const char*>, 7> shape_names{{{Shape::narrow, "narrow"},
                                                                    {Shape::skinny, "skinny"},
                                                                    {Shape::tall, "tall"},
                                                                    {Shape::square, "square"},
                                                                    {Shape::wide, "wide"},
                                                                    {Shape::large, "large"},
                                                                    {Shape::batch, "batch"}}};

template <class... Args>
[[noreturn]] void refuse(const Args&... message) {
  throw Error(ErrorCode::file, detail::concat(message...));
}

/// Its destructor would take memory for what is nested, and may not fail.
void take_apart(Json& json) noexcept {
  if (!json.is_structured()) return;
  for (Json& inner : json) take_apart(inner);
  json.clear();
}

/// A parsed file.
struct Document {
  Json json;
  Document() = default;
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;
  ~Document() { take_apart(json); }
};

/// A value of the file and the way to it: "tuning.json: tables[0].entries[3].shape".
struct Node {
  const Json& json;
  std::string place;

  Node at(const char* key) const {
    if (!json.is_object()) refuse(place, " must be an object");
    const auto found = json.find(key);
    if (found == json.end()) refuse(place, " lacks \"", key, "\"");
    return {*found, place + "." + key};
  }
  bool has(const char* key) const { return json.is_object() && json.contains(key); }
  std::string text() const {
    if (!json.is_string()) refuse(place, " must be a string, not ", json.dump());
    return json.get<std::string>();
  }
  template <class Visitor>
  void each(Visitor&& visit) const {
    if (!json.is_array()) refuse(place, " must be an array");
    for (std::size_t i = 0; i < json.size(); ++i) visit(Node{json[i], detail::concat(place, "[", i, "]")});
  }
};

Shape shape_of(const Node& node) {
  std::string known;
  for (const auto& [shape, name] : shape_names) {
    if (node.text() == name) return shape;
    known += std::string(known.empty() ? "" : ", ") + name;
  }
  refuse(node.place, ": unknown shape '", node.text(), "'; known are ", known);
}

int scalar_bytes_of(const Node& node) {
  if (node.text() == "f32") return 4;
  if (node.text() == "f64") return 8;
  refuse(node.place, ": '", node.text(), "' is neither f32 nor f64");
}

/// The value, if the parameter is known and the value within what any device could take.
template <class Tuning>
std::int64_t checked_value(const Node& node, const std::string& name, Operation operation) {
  bool known = false;
  std::int64_t value = 0;
  Tuning any{};
  for_each_parameter(any, [&](const char* parameter, auto& field, std::int64_t low, std::int64_t high) {
    if (name != parameter) return;
    known = true;
    if constexpr (std::is_same_v<std::remove_reference_t<decltype(field)>, bool>) {
      if (!node.json.is_boolean()) refuse(node.place, " must be true or false, not ", node.json.dump());
      value = node.json.get<bool>() ? 1 : 0;
    } else {
      if (!node.json.is_number_integer()) refuse(node.place, " must be an integer, not ", node.json.dump());
      value = node.json.get<std::int64_t>();
      if (value < low || value > high) refuse(node.place, " must be from ", low, " to ", high, ", not ", value);
    }
  });
  if (!known) refuse(node.place, " is no parameter of ", to_string(operation));
  return value;
}

Entry entry_of(const Node& node) {
  if (!node.json.is_object()) refuse(node.place, " must be an object");
  static constexpr std::array known{"operation", "scalar", "shape", "q", "parameters", "evidence"};
  for (const auto& [key, value] : node.json.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      refuse(node.place, ".", key, " is no key of an entry");
  Entry entry;
  entry.place = node.place;
  const Node operation = node.at("operation");
  const auto named = std::find(operation_names.begin(), operation_names.end(), operation.text());
  if (named == operation_names.end())
    refuse(operation.place, ": unknown operation '", operation.text(), "'; known are qr, update");
  entry.operation = static_cast<Operation>(named - operation_names.begin());
  if (node.has("scalar")) entry.scalar_bytes = scalar_bytes_of(node.at("scalar"));
  if (node.has("shape")) entry.shape = shape_of(node.at("shape"));
  if (node.has("q")) {
    const Node q = node.at("q");
    try {
      entry.q = q_form_from_string(q.text());
    } catch (const Error& error) {
      refuse(q.place, ": ", error.what());
    }
  }
  const Node parameters = node.at("parameters");
  if (!parameters.json.is_object()) refuse(parameters.place, " must be an object");
  for (const auto& [name, value] : parameters.json.items()) {
    const Node at{value, parameters.place + "." + name};
    entry.parameters.emplace_back(name, entry.operation == Operation::qr
                                            ? checked_value<QRTuning>(at, name, entry.operation)
                                            : checked_value<UpdateTuning>(at, name, entry.operation));
  }
  return entry;
}

Table table_of(const Node& node, const std::string& origin) {
  Table table;
  table.origin = origin;
  const Node backend = node.at("backend");
  try {
    table.backend = backend_from_string(backend.text());
  } catch (const Error& error) {
    refuse(backend.place, ": ", error.what());
  }
  if (table.backend == Backend::automatic) refuse(backend.place, " must be cpu, opencl or cuda");
  table.device = node.at("device").text();
  if (node.has("architecture")) table.architecture = node.at("architecture").text();
  node.at("entries").each([&](const Node& entry) { table.entries.push_back(entry_of(entry)); });
  return table;
}

}  // namespace

const char* to_string(Operation operation) { return operation_names.at(static_cast<std::size_t>(operation)); }

const char* to_string(Shape shape) {
  for (const auto& [value, name] : shape_names)
    if (value == shape) return name;
  return "unknown";
}

std::vector<Table> parse(std::string_view text, const std::string& origin) {
  constexpr int deepest = 16;  // a table has six levels
  const auto check_depth = [&](int depth, Json::parse_event_t, Json&) {
    if (depth > deepest) refuse(origin, ": nested more than ", deepest, " levels deep");
    return true;
  };
  Document document;
  Json& json = document.json;
  try {
    json = Json::parse(text, check_depth);
  } catch (const Json::exception& error) {
    std::string what = error.what();  // "[json.exception...] parse error at line 3, column 5: ..."
    if (const std::size_t end = what.find("] "); end != std::string::npos) what.erase(0, end + 2);
    refuse(origin, ": ", what);
  }
  const Node root{json, origin + ": the file"};
  const Node version = root.at("qrane_tuning");
  if (version.json != 1)
    refuse(version.place, ": version ", version.json.dump(), " is not 1, the one this qrane reads");
  std::vector<Table> tables;
  Node{root.at("tables").json, origin + ": tables"}.each(
      [&](const Node& node) { tables.push_back(table_of(node, origin)); });
  return tables;
}

void check_limits(const Table& table, const backend::Limits& limits, int scalar_bytes) {
  for (const Entry& entry : table.entries) {
    if (entry.operation != Operation::qr || (entry.scalar_bytes && *entry.scalar_bytes != scalar_bytes)) continue;
    for (const auto& [name, value] : entry.parameters) {
      const std::int64_t most = name == "panel_cols"       ? limits.max_panel_cols
                                : name == "min_block_rows" ? limits.max_block_rows
                                                           : value;
      if (value > most)
        refuse(entry.place, ".parameters.", name, " is at most ", most, " on this device in ",
               scalar_bytes == 4 ? "f32" : "f64", ", not ", value);
    }
  }
}

std::string user_file() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (const std::string named = variable("QRANE_TUNING_FILE"); !named.empty()) return named == "none" ? "" : named;
  if (const std::string home = variable("XDG_CONFIG_HOME"); !home.empty()) return home + "/qrane/tuning.json";
  if (const std::string home = variable("HOME"); !home.empty()) return home + "/.config/qrane/tuning.json";
  return "";
}

std::shared_ptr<const Tables> load(const DeviceInfo& device, const backend::Limits& f32, const backend::Limits& f64) {
  auto tables = std::make_shared<Tables>();
  tables->backend = device.backend;
  if (const Table* table = best_match(shipped(device.backend), device)) tables->layers.push_back(*table);
  const std::string path = user_file();
  std::error_code reason;
  const bool named = std::getenv("QRANE_TUNING_FILE") != nullptr && !path.empty();
  if (path.empty() || (!named && !std::filesystem::exists(path, reason))) return tables;
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse(path, ": cannot read the table of tuned parameters", named ? " that QRANE_TUNING_FILE names" : "");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::vector<Table> users = parse(text, path);
  const Table* table = best_match(users, device);
  if (table && (table->device == device.name || table->device == "*")) {
    check_limits(*table, f32, 4);
    if (device.has_double) check_limits(*table, f64, 8);
    tables->layers.push_back(*table);
  }
  return tables;
}

}  // namespace qrane::tuning
