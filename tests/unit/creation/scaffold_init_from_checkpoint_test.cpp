// SPDX-License-Identifier: Apache-2.0
#include <stepwell/creation/scaffold.hpp>

#include "support/catch.hpp"
#include "support/creation_rig.hpp"
#include "support/file_text.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/checkpoint/detail/checkpoint_writer.hpp>
#include <stepwell/model/model_session.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sw = stepwell;
using sw::init_from_checkpoint;
using sw::test::message_of;
using names = std::vector<std::string>;

namespace {

/// Writes a checkpoint with "old/kernel" [2], "old/bias", "head" and the step of an earlier model.
std::string write_pretrained(const std::string& prefix, float bias = 3, std::int64_t step = 900) {
  const std::vector<float> kernel = {1, 2};
  const float head = 4;
  sw::detail::checkpoint_writer writer(prefix);
  writer.add("global_step", sw::view_of(step));
  writer.add("head", sw::view_of(head));
  writer.add("old/bias", sw::view_of(bias));
  writer.add("old/kernel", sw::view_of(kernel));
  writer.commit();
  return prefix;
}

struct new_model {
  std::vector<float> kernel = {0, 0};
  float bias = 0;
  float top = 0;

  int step() { return 0; }
  sw::variable_list variables() { return sw::variables({{"new/kernel", kernel}, {"new/bias", bias}, {"top", top}}); }
};

struct pretrained {
  sw::test::log_capture log;
  sw::test::temporary_directory directory;
  std::string prefix = write_pretrained(directory / "model.ckpt-900");
  new_model model;
};

}  // namespace

TEST_CASE("the variables below one prefix are restored below another, and the rest keeps its values", "[session][warm_start]") {
  pretrained rig;
  const auto report = init_from_checkpoint(rig.prefix, {{"old/", "new/"}}).apply(rig.model.variables());
  CHECK(rig.model.kernel == std::vector<float>{1, 2});
  CHECK(rig.model.bias == 3);
  CHECK(rig.model.top == 0);
  CHECK(report.restored == names{"new/kernel", "new/bias"});
}

TEST_CASE("single variables go under other names, and the first entry that fits counts", "[session][warm_start]") {
  pretrained rig;
  init_from_checkpoint(rig.prefix, {{"head", "new/bias"}, {"old/", "new/"}, {"old/bias", "top"}}).apply(rig.model.variables());
  CHECK(rig.model.kernel == std::vector<float>{1, 2});
  CHECK(rig.model.bias == 4);
  CHECK(rig.model.top == 3);
}

TEST_CASE("a lone stroke is everything, on either side", "[session][warm_start]") {
  pretrained rig;
  SECTION("theirs below a prefix to ours at the top") {
    std::vector<float> kernel(2);
    init_from_checkpoint(rig.prefix, {{"old/", "/"}}).apply(sw::variables({{"kernel", kernel}}));
    CHECK(kernel == std::vector<float>{1, 2});
  }
  SECTION("all to all, but never the global step") {
    float head = 0;
    std::int64_t global_step = 7;
    init_from_checkpoint(rig.prefix, {{"/", "/"}}).apply(sw::variables({{"head", head}, {"global_step", global_step}}));
    CHECK(head == 4);
    CHECK(global_step == 7);
  }
}

TEST_CASE("a directory stands for its newest whole checkpoint", "[session][warm_start]") {
  pretrained rig;
  write_pretrained(rig.directory / "model.ckpt-1000", 33, 1000);
  init_from_checkpoint(rig.directory.path(), {{"old/", "new/"}}).apply(rig.model.variables());
  CHECK(rig.model.bias == 33);
  sw::test::write_file_text(rig.directory / "model.ckpt-1000.index", "damaged");
  init_from_checkpoint(rig.directory.path(), {{"old/", "new/"}}).apply(rig.model.variables());
  CHECK(rig.model.bias == 3);
}

TEST_CASE("a missing checkpoint is an error when the function is called", "[session][warm_start]") {
  const sw::test::temporary_directory empty;
  new_model model;
  const init_from_checkpoint of_directory(empty.path(), {{"/", "/"}});
  const init_from_checkpoint of_file(empty / "model.ckpt-1", {{"/", "/"}});
  CHECK_THROWS_AS(of_directory.apply(model.variables()), sw::not_found_error);
  CHECK_THROWS_AS(of_file.apply(model.variables()), sw::not_found_error);
}

TEST_CASE("variables that the checkpoint lacks are an error unless that is allowed", "[session][warm_start]") {
  pretrained rig;
  const sw::checkpoint_name_map map = {{"old/", "new/"}, {"tail", "top"}};
  const auto message = message_of<sw::not_found_error>([&] { init_from_checkpoint(rig.prefix, map).apply(rig.model.variables()); });
  CHECK(message.find("top (\"tail\" in the checkpoint)") != std::string::npos);
  CHECK(rig.model.bias == 0);  // nothing was restored
  const auto report = init_from_checkpoint(rig.prefix, map, {.allow_missing = true}).apply(rig.model.variables());
  CHECK(report.missing == names{"top"});
  CHECK(rig.model.bias == 3);
  CHECK(rig.log.contains(sw::log_level::warning, "top"));
}

TEST_CASE("a prefix that matches no tensor of the checkpoint is an error, even if missing variables are allowed", "[session][warm_start]") {
  pretrained rig;
  const sw::checkpoint_name_map map = {{"odl/", "new/"}, {"old/", "new/"}};
  const auto message =
      message_of<sw::not_found_error>([&] { init_from_checkpoint(rig.prefix, map, {.allow_missing = true}).apply(rig.model.variables()); });
  CHECK(message.find("\"odl/\"") != std::string::npos);
  CHECK(rig.model.bias == 0);
}

TEST_CASE("if one variable has another shape, nothing is restored", "[session][warm_start]") {
  pretrained rig;
  rig.model.kernel.resize(3);
  CHECK_THROWS_AS(init_from_checkpoint(rig.prefix, {{"old/", "new/"}}).apply(rig.model.variables()), sw::invalid_argument_error);
  CHECK(rig.model.bias == 0);
}

TEST_CASE("an invalid map is refused at once, and one without a variable of the model when it is used", "[session][warm_start]") {
  pretrained rig;
  CHECK_THROWS_AS(init_from_checkpoint(rig.prefix, {}), sw::invalid_argument_error);
  CHECK_THROWS_AS(init_from_checkpoint(rig.prefix, {{"old/", "new"}}), sw::invalid_argument_error);
  CHECK_THROWS_AS(init_from_checkpoint(rig.prefix, {{"old", "new/"}}), sw::invalid_argument_error);
  CHECK_THROWS_AS(init_from_checkpoint(rig.prefix, {{"", "new"}}), sw::invalid_argument_error);
  CHECK_THROWS_AS(init_from_checkpoint(rig.prefix, {{"global_step", "global_step"}}), sw::invalid_argument_error);
  CHECK_THROWS_AS(init_from_checkpoint(rig.prefix, {{"x/", "stepwell/"}}), sw::invalid_argument_error);
  const auto message = message_of<sw::invalid_argument_error>(
      [&] { init_from_checkpoint(rig.prefix, {{"old/", "new/"}, {"old/", "newer/"}}).apply(rig.model.variables()); });
  CHECK(message.find("newer/") != std::string::npos);
}

TEST_CASE("a scaffold starts warm where nothing is restored, and not where something is", "[session][warm_start]") {
  pretrained rig;
  const auto warm = std::make_shared<sw::scaffold<new_model>>(
      sw::scaffold_options<new_model>{.init_fn = init_from_checkpoint(rig.prefix, {{"old/", "new/"}})});
  sw::test::creation_rig session;
  auto creation = session.first();
  CHECK(sw::chief_session_creator(rig.model, warm).create_session(creation).global_step() == 0);
  CHECK(rig.model.bias == 3);
  CHECK_FALSE(session.requests.facts().restored_from);

  const sw::test::temporary_directory own;
  {
    const std::vector<float> kernel = {7, 7};
    const float other = 8;
    sw::detail::checkpoint_writer writer(own / "model.ckpt-5");
    writer.add("global_step", sw::view_of(std::int64_t{5}));
    writer.add("new/bias", sw::view_of(other));
    writer.add("new/kernel", sw::view_of(kernel));
    writer.add("top", sw::view_of(other));
    writer.commit();
  }
  sw::chief_session_creator resumed(rig.model, warm, {.restore = {.checkpoint_dir = own.path()}});
  CHECK(resumed.create_session(creation).global_step() == 5);
  CHECK(rig.model.bias == 8);
}

TEST_CASE("D-40 an init_fn sets the global step only if the model has it", "[session][scaffold]") {
  struct weights_only {
    float head = 0;
    void step() {}
    sw::variable_list variables() { return sw::variables({{"head", head}}); }
  };
  struct with_step : weights_only {
    std::int64_t steps = 0;
    void step() { ++steps; }
    std::int64_t& global_step() { return steps; }
  };
  const sw::test::temporary_directory directory;
  const auto old_run = write_pretrained(directory / "model.ckpt-900");
  const auto init = [&](auto&, auto& model) {
    const sw::checkpoint_reader source(old_run);
    sw::restore(model.variables(), source);
    if constexpr (requires { model.steps; }) { model.steps = source.read("global_step").template as<std::int64_t>().front(); }
  };
  const auto started = [&]<class Model>(Model model) {
    sw::monitored_session session(
        sw::chief_session_creator(model, std::make_shared<sw::scaffold<Model>>(sw::scaffold_options<Model>{.init_fn = init})));
    session.run();
    CHECK(model.head == 4);
    return session.global_step();
  };
  CHECK(started(weights_only()) == 1);
  CHECK(started(with_step()) == 901);
}
