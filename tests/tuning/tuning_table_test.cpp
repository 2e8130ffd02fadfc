// SPDX-License-Identifier: Apache-2.0
// Tables of tuned parameters: how they are read and refused, and which of them count.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include <qrane/qrane.hpp>

#include "support/files.hpp"
#include "tuning/table.hpp"

namespace qrane::test {
namespace {

using tuning::Key;
using tuning::Shape;
using tuning::Table;

using UserTables = InDirectory;

std::string file_with(const std::string& entries, const std::string& device = "*", const std::string& backend = "cpu") {
  return R"({"qrane_tuning": 1, "tables": [{"backend": ")" + backend + R"(", "device": ")" + device +
         R"(", "architecture": "sm_90", "entries": [)" + entries + "]}]}";
}

std::string refusal(const std::string& text) {
  try {
    tuning::parse(text, "my.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::file);
    return error.what();
  }
  return "accepted";
}

TEST(Tables, AreReadAndLaidOverTheDefaults) {
  const auto tables = tuning::parse(file_with(R"({"operation": "qr", "parameters": {"arity": 8, "panel_cols": 48}},
      {"operation": "qr", "scalar": "f32", "shape": "tall", "q": "thin", "evidence": [1],
       "parameters": {"arity": 16, "prefers_cholesky": true}})"),
                                    "my.json");
  ASSERT_EQ(tables.size(), 1u);
  const tuning::Tables layers{Backend::cpu, tables};
  std::string source;
  const auto thin = layers.look_up({4, Shape::tall, QForm::thin}, &source);
  EXPECT_EQ(thin.arity, 16);
  EXPECT_EQ(thin.panel_cols, 48);
  EXPECT_TRUE(thin.prefers_cholesky);
  EXPECT_EQ(thin.block_cols, tuning::qr_defaults(Backend::cpu).block_cols);
  EXPECT_NE(source.find("my.json"), std::string::npos) << source;
  for (const Key& other :
       {Key{8, Shape::tall, QForm::thin}, Key{4, Shape::skinny, QForm::thin}, Key{4, Shape::tall, QForm::none}})
    EXPECT_EQ(layers.look_up(other).arity, 8);
  const tuning::Tables none{Backend::cpu, {}};
  EXPECT_EQ(none.look_up({4, Shape::tall, QForm::thin}, &source).arity, tuning::qr_defaults(Backend::cpu).arity);
  EXPECT_NE(source.find("defaults"), std::string::npos) << source;
}

TEST(Tables, OfUpdatesAreApartFromThoseOfQr) {
  const auto tables =
      tuning::parse(file_with(R"({"operation": "update", "parameters": {"block_cols": 48, "step_ns": 7}},
      {"operation": "qr", "parameters": {"block_cols": 96}},
      {"operation": "update", "scalar": "f32", "q": "none", "parameters": {"step_ns": 9}})"),
                    "my.json");
  const tuning::Tables layers{Backend::cpu, tables};
  EXPECT_EQ(layers.look_up({4, Shape::tall, QForm::none}).block_cols, 96);
  EXPECT_EQ(layers.look_up_update({4, Shape::tall, QForm::none}).block_cols, 48);
  EXPECT_EQ(layers.look_up_update({4, Shape::tall, QForm::none}).step_ns, 9);
  EXPECT_EQ(layers.look_up_update({8, Shape::tall, QForm::none}).step_ns, 7);
  EXPECT_EQ(layers.look_up_update({8, Shape::tall, QForm::none}).column_ns,
            tuning::update_defaults(Backend::cpu, 8).column_ns);
}

TEST(Tables, AreRefusedNamingLineOrKey) {
  const auto entry = [](const std::string& rest) { return file_with(R"({"operation": "qr", )" + rest + "}"); };
  EXPECT_NE(refusal("{\"qrane_tuning\": 1,\n \"tables\": [}").find("my.json: parse error at line 2"),
            std::string::npos);
  const std::pair<std::string, std::string> cases[] = {
      {"[]", "my.json: the file must be an object"},
      {R"({"tables": []})", "lacks \"qrane_tuning\""},
      {R"({"qrane_tuning": 2, "tables": []})", "version 2"},
      {file_with("", "*", "vulkan"), "tables[0].backend"},
      {file_with("", "*", "automatic"), "tables[0].backend"},
      {entry(R"("parameters": {"panel_colz": 8})"), "tables[0].entries[0].parameters.panel_colz is no parameter"},
      {entry(R"("parameters": {"panel_cols": 0})"), "parameters.panel_cols must be from 1 to"},
      {entry(R"("parameters": {"panel_cols": 8.5})"), "parameters.panel_cols must be an integer"},
      {entry(R"("parameters": {"prefers_cholesky": 1})"), "parameters.prefers_cholesky must be true or false"},
      {entry(R"("parameters": [])"), "parameters must be an object"},
      {entry(R"("shape": "round", "parameters": {})"), "unknown shape 'round'"},
      {entry(R"("scalar": "f16", "parameters": {})"), "neither f32 nor f64"},
      {entry(R"("q": "fat", "parameters": {})"), "entries[0].q"},
      {entry(R"("shapes": "tall", "parameters": {})"), "entries[0].shapes is no key"},
      {entry(R"("shape": 3, "parameters": {})"), "entries[0].shape must be a string"},
      {file_with(R"({"operation": "lu", "parameters": {}})"), "unknown operation 'lu'"},
      {entry(R"("parameters": {"step_ns": 8})"), "parameters.step_ns is no parameter of qr"},
      {file_with(R"({"operation": "update", "parameters": {"arity": 8}})"),
       "parameters.arity is no parameter of update"},
      {file_with(R"({"operation": "update", "parameters": {"step_ns": 0}})"), "parameters.step_ns must be from 1 to"}};
  for (const auto& [text, words] : cases) {
    const std::string said = refusal(text);
    EXPECT_NE(said.find(words), std::string::npos) << said << "\nlacks: " << words;
  }
}

TEST(Tables, ThatADeviceCannotTakeAreRefused) {
  backend::Limits limits;
  limits.max_panel_cols = 32;
  limits.max_block_rows = 256;
  const auto table = [](const std::string& rest) {
    return tuning::parse(file_with(R"({"operation": "qr", )" + rest + "}"), "my.json").front();
  };
  EXPECT_NO_THROW(tuning::check_limits(table(R"("parameters": {"panel_cols": 32, "min_block_rows": 256})"), limits, 4));
  EXPECT_NO_THROW(tuning::check_limits(table(R"("scalar": "f64", "parameters": {"panel_cols": 64})"), limits, 4));
  for (const char* name : {"panel_cols", "min_block_rows"}) {
    try {
      tuning::check_limits(table(detail::concat(R"("parameters": {")", name, "\": 512}")), limits, 4);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(std::string("entries[0].parameters.") + name), std::string::npos);
    }
  }
}

TEST(Tables, FitTheDeviceByNameThenAnyThenTheNewestOlderOne) {
  std::vector<Table> tables(5);
  const char* names[] = {"Old", "Older", "Newer", "*", "Mine"};
  const char* architectures[] = {"sm_86", "sm_80", "sm_100", "sm_80", "sm_90"};
  for (int i = 0; i < 5; ++i) tables[i] = {Backend::cuda, names[i], architectures[i], "test", {}};
  DeviceInfo device;
  device.backend = Backend::cuda;
  device.name = "Mine";
  device.architecture = "sm_90";
  const auto best = [&] {
    const Table* table = tuning::best_match(tables, device);
    return table ? table->device : "";
  };
  EXPECT_EQ(best(), "Mine");
  tables.pop_back();
  EXPECT_EQ(best(), "*");
  tables.pop_back();
  EXPECT_EQ(best(), "Old");
  device.architecture = "sm_75";
  EXPECT_EQ(best(), "");
  device.backend = Backend::cpu;
  EXPECT_EQ(best(), "");
}

TEST(Tables, ThatAreShippedAreLegal) {
  for (const Backend backend : {Backend::cpu, Backend::opencl, Backend::cuda})
    for (const Table& table : tuning::shipped(backend)) EXPECT_EQ(table.backend, backend);
  EXPECT_FALSE(tuning::shipped(Backend::cpu).empty());
}

/// Sets QRANE_TUNING_FILE while it lives.
struct UserFile {
  explicit UserFile(const std::string& value) { ::setenv("QRANE_TUNING_FILE", value.c_str(), 1); }
  ~UserFile() { ::unsetenv("QRANE_TUNING_FILE"); }
};

TEST_F(UserTables, CountInAContext) {
  const std::string file_path = path("tuning.json");
  std::ofstream(file_path) << file_with(R"({"operation": "qr", "shape": "skinny", "parameters": {"arity": 6}})");
  ContextOptions options;
  options.backend = Backend::cpu;
  {
    const UserFile file(file_path);
    const Plan plan = plan_qr<double>(Context(options), 100000, 100);
    EXPECT_EQ(plan.expert.arity, 6);
    EXPECT_NE(plan.explain().find(file_path), std::string::npos) << plan.explain();
    EXPECT_NE(plan_qr<double>(Context(options), 300, 100).expert.arity, 6);
  }
  {
    const UserFile missing(file_path + ".missing");
    expect_error(ErrorCode::file, file_path + ".missing", "QRANE_TUNING_FILE", [&] { Context{options}; });
  }
  const UserFile none("none");
  EXPECT_NO_THROW(Context{options});
}

}  // namespace
}  // namespace qrane::test
