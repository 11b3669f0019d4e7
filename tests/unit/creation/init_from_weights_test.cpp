// SPDX-License-Identifier: Apache-2.0
#include <stepwell/creation/init_from_weights.hpp>
#include <stepwell/creation/save_safetensors.hpp>

#include "support/catch.hpp"
#include "support/creation_rig.hpp"
#include "support/log_capture.hpp"
#include "support/memory_files.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/checkpoint/detail/checkpoint_writer.hpp>
#include <stepwell/format/weights/detail/safetensors.hpp>
#include <stepwell/protocol/state_names.hpp>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace sw = stepwell;
using sw::init_from_safetensors;
using sw::test::message_of;
using names = std::vector<std::string>;

namespace {

/// A file of safetensors in memory, with "module.conv1.weight" [2], "module.conv1.bias" [1], "module.head" [1] and "step".
struct saved_weights {
  sw::test::log_capture log;
  std::shared_ptr<sw::test::memory_files> files = std::make_shared<sw::test::memory_files>();
  std::vector<float> weight = {0, 0};
  std::vector<float> bias = {0};
  float top = 0;

  saved_weights() {
    const sw::tensor_shape two{2};
    const sw::tensor_shape one{1};
    const std::vector<sw::format::safetensors_array> arrays{{"module.conv1.weight", sw::dtype::float32, two},
                                                            {"module.conv1.bias", sw::dtype::float32, one},
                                                            {"module.head", sw::dtype::float32, one},
                                                            {"step", sw::dtype::float32, {}}};
    auto text = *sw::format::encode_safetensors_header(arrays, {});
    const float values[] = {1, 2, 3, 4, 5};
    text.append(reinterpret_cast<const char*>(values), sizeof values);
    files->content["/run/a.safetensors"] = text;
  }

  [[nodiscard]] sw::init_from_weights from(sw::weight_names rules, bool allow_missing = false) const {
    return init_from_safetensors("/run/a.safetensors", std::move(rules), {.allow_missing = allow_missing, .file_system = files});
  }
  [[nodiscard]] sw::variable_list backbone() {
    return sw::variables({{"backbone/conv1/weight", weight}, {"backbone/conv1/bias", bias}, {"top", top}});
  }
};

}  // namespace

TEST_CASE("prefixes are exchanged and dots become slashes; other variables keep their values", "[creation][warm_start]") {
  saved_weights rig;
  const auto report = rig.from({.prefix_in_file = "module.", .prefix = "backbone/"}).apply(rig.backbone());
  CHECK(rig.weight == std::vector<float>{1, 2});
  CHECK(rig.bias == std::vector<float>{3});
  CHECK(rig.top == 0);
  CHECK(report.restored == names{"backbone/conv1/weight", "backbone/conv1/bias"});
  CHECK(report.unused == names{"module.head", "step"});
  CHECK(rig.log.contains(sw::log_level::warning, "module.head"));
}

TEST_CASE("a pair of names goes before the rules", "[creation][warm_start]") {
  saved_weights rig;
  rig.from({.prefix_in_file = "module.", .prefix = "backbone/", .pairs = {{"module.head", "backbone/conv1/bias"}, {"step", "top"}}})
      .apply(rig.backbone());
  CHECK(rig.weight == std::vector<float>{1, 2});
  CHECK(rig.bias == std::vector<float>{4});
  CHECK(rig.top == 5);
}

TEST_CASE("without the rule for dots, names are compared as they are", "[creation][warm_start]") {
  saved_weights rig;
  rig.from({.dots_to_slashes = false}).apply(sw::variables({{"module.conv1.weight", rig.weight}}));
  CHECK(rig.weight == std::vector<float>{1, 2});
}

TEST_CASE("what is missing, left over, or of another shape or type is listed, and nothing is written", "[creation][warm_start]") {
  saved_weights rig;
  std::vector<float> other(3);
  double wide = 0;
  const auto rules = rig.from({.prefix_in_file = "module."});
  const auto differences = message_of<sw::invalid_argument_error>(
      [&] { rules.apply(sw::variables({{"conv1/weight", rig.weight}, {"conv1/bias", other}, {"head", wide}, {"tail", rig.top}})); });
  for (const auto* part :
       {"conv1/bias: checkpoint has float32 [1], model has float32 [3]", "head: checkpoint has float32 [1], model has float64 []",
        "tail (\"module.tail\" in the checkpoint)", "step", "weight_names"}) {
    INFO(part);
    CHECK(differences.find(part) != std::string::npos);
  }
  CHECK(rig.weight == std::vector<float>{0, 0});
  CHECK_THROWS_AS(rules.apply(sw::variables({{"tail", rig.top}})), sw::not_found_error);
  const auto report = rig.from({.prefix_in_file = "module."}, true).apply(sw::variables({{"conv1/weight", rig.weight}, {"tail", rig.top}}));
  CHECK(report.missing == names{"tail"});
  CHECK(rig.weight == std::vector<float>{1, 2});
  CHECK(rig.log.contains(sw::log_level::warning, "tail"));
}

TEST_CASE("names that cannot be meant are refused", "[creation][warm_start]") {
  saved_weights rig;
  const auto with_pair = [&](const std::string& theirs, const std::string& ours) {
    return rig.from({.prefix = "backbone/", .pairs = {{theirs, ours}}});
  };
  CHECK_THROWS_AS(with_pair("step", ""), sw::invalid_argument_error);
  CHECK_THROWS_AS(with_pair("step", "global_step"), sw::invalid_argument_error);
  CHECK_THROWS_AS(with_pair("step", std::string(sw::reserved_prefix) + "x"), sw::invalid_argument_error);
  CHECK_THROWS_AS(with_pair("stop", "top").apply(rig.backbone()), sw::not_found_error);
  CHECK_THROWS_AS(with_pair("step", "bottom").apply(rig.backbone()), sw::invalid_argument_error);
  CHECK_THROWS_AS(rig.from({.pairs = {{"step", "top"}, {"module.head", "top"}}}), sw::invalid_argument_error);
  CHECK_NOTHROW(rig.from({.pairs = {{"step", "top"}, {"step", "top"}}}));
}

TEST_CASE("the session's own variables are never set from weights", "[creation][warm_start]") {
  saved_weights rig;
  float step = 9;
  rig.from({.prefix_in_file = "module."}).apply(sw::variables({{"conv1/weight", rig.weight}, {"global_step", step}}));
  CHECK(step == 9);
}

TEST_CASE("a file of another format than expected is refused, and names both formats", "[creation][warm_start]") {
  saved_weights rig;
  const auto wrong = sw::init_from_npz("/run/a.safetensors", {}, {.file_system = rig.files});
  CHECK(message_of<sw::invalid_argument_error>([&] { wrong.apply(rig.backbone()); }).find("safetensors") != std::string::npos);
  CHECK_THROWS_AS(init_from_safetensors("/run/b.safetensors", {}, {.file_system = rig.files}).apply(rig.backbone()), sw::not_found_error);
  sw::init_from_weights("/run/a.safetensors", {.prefix_in_file = "module.", .prefix = "backbone/"}, {.file_system = rig.files})
      .apply(rig.backbone());
  CHECK(rig.bias == std::vector<float>{3});
}

TEST_CASE("the error about missing arrays names the prefix that all of them have in the file", "[creation][warm_start]") {
  saved_weights rig;
  const auto ours = sw::variables({{"conv1/weight", rig.weight}, {"conv1/bias", rig.bias}});
  const auto advice = ContainsSubstring("begin with \"module.\": set weight_names::prefix_in_file to \"module.\"");
  CHECK_THAT(message_of<sw::not_found_error>([&] { rig.from({}).apply(ours); }), advice);
  CHECK(rig.from({}, true).apply(ours).restored.empty());
  CHECK_THAT(rig.log.messages().at(rig.log.messages().size() - 2).text, advice);  // before the arrays of no variable
  std::vector<float> other = {0};
  const auto others = sw::variables({{"conv1/weight", rig.weight}, {"scale", other}});  // no prefix explains both
  CHECK_THAT(message_of<sw::not_found_error>([&] { rig.from({}).apply(others); }), !ContainsSubstring("prefix_in_file"));
}

TEST_CASE("variables that are written to a file of safetensors are read from it, under the names of Python", "[creation][warm_start]") {
  saved_weights rig;
  const sw::test::temporary_directory directory;
  rig.weight = {5, 6};
  rig.bias = {7};
  double wide = 8;
  auto all = rig.backbone();
  all.emplace_back("backbone/wide", wide);
  sw::save_safetensors(all, directory / "b.safetensors",
                       {.prefix_in_file = "module.", .prefix = "backbone/", .pairs = {{"head.top", "top"}}});
  const sw::checkpoint_reader reader(directory / "b.safetensors");
  names found;
  for (const auto& entry : reader.entries()) { found.emplace_back(entry.name); }
  std::ranges::sort(found);
  CHECK(found == names{"head.top", "module.conv1.bias", "module.conv1.weight", "module.wide"});
  rig.weight = {0, 0};
  wide = 0;
  init_from_safetensors(directory / "b.safetensors", {.prefix_in_file = "module.", .prefix = "backbone/"})
      .apply(sw::variables({{"backbone/conv1/weight", rig.weight}, {"backbone/wide", wide}}));
  CHECK(rig.weight == std::vector<float>{5, 6});
  CHECK(wide == 8);
  std::string text = "words";
  CHECK_THAT(message_of<sw::invalid_argument_error>(
                 [&] { sw::save_safetensors(sw::variables({{"text", text}}), directory / "c.safetensors", {}); }),
             ContainsSubstring("text"));
  CHECK_THAT(
      message_of<sw::invalid_argument_error>([&] { sw::save_safetensors(all, directory / "c.safetensors", {.pairs = {{"a", "absent"}}}); }),
      ContainsSubstring("absent"));
  CHECK_FALSE(std::filesystem::exists(directory / "c.safetensors"));
}
