// SPDX-License-Identifier: Apache-2.0
//
// Tests of chief and worker, and of a scaffold that they share, with monitored_training_session (contract CREATE).
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/session_rig.hpp"

#include <stepwell/protocol/hook.hpp>

#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace sw = stepwell;
using sw::test::adding_model;
using sw::test::session_rig;

namespace {

struct named_hook {
  std::vector<std::string>* story;
  std::string name;
  void begin() { story->push_back(name + " begin"); }
  auto before_run(auto&) { return sw::fetch(&adding_model::result::loss); }
  void after_run(auto&, const auto& values) { story->push_back(name + " " + std::to_string(static_cast<int>(values.value()))); }
  void end(auto&) { story->push_back(name + " end"); }
};

}  // namespace

TEST_CASE("CREATE-6 the creator and the hooks share one scaffold, which has its defaults if none is given", "[training][roles]") {
  const sw::test::log_capture log;
  session_rig rig;
  int inits = 0;
  int summaries = 0;
  auto options = rig.options();
  options.summaries.save_steps = 1;
  const auto scaffold = std::make_shared<sw::scaffold<adding_model>>(sw::scaffold_options<adding_model>{
      .init_op = [&](adding_model& model) { model.sum = static_cast<float>(100 * ++inits); },
      .summary_op =
          [&](sw::summary::writer& out, const adding_model::result& result, const adding_model&, std::int64_t step) {
            ++summaries;
            out.add_scalar("loss", result.loss, step);
          },
      .saver = sw::saver_options{.basename = "other.ckpt", .file_system = rig.files, .pool = rig.pool}});
  auto session = sw::monitored_training_session(rig.model, options, scaffold);
  CHECK(scaffold->is_finalized());
  CHECK(session.run(std::int64_t{1}).loss == 101);
  session.close();
  CHECK(inits == 1);
  CHECK(summaries == 1);
  CHECK(std::filesystem::exists(rig.directory.path() + "/other.ckpt-1.index"));
}

TEST_CASE("CREATE-6 a summary function that scaffold and summaries both give is refused by name", "[training][roles]") {
  session_rig rig;
  const auto write = [](sw::summary::writer&, const adding_model::result&, const adding_model&, std::int64_t) {};
  CHECK_THROWS_WITH(
      sw::monitored_training_session(rig.model, rig.options(), sw::scaffold<adding_model>({.summary_op = write}), sw::summaries(write)),
      ContainsSubstring("summaries()") && ContainsSubstring("summary_op"));
}

TEST_CASE("CREATE-7 a worker restores nothing, saves nothing, counts nothing, and runs no hook of the chief", "[training][roles]") {
  const sw::test::log_capture log;
  session_rig rig;
  std::vector<std::string> story;
  auto chief_options = rig.options();
  chief_options.master = "local:create-7";
  auto chief =
      sw::monitored_training_session(rig.model, chief_options, sw::chief_only(named_hook{&story, "chief's"}), named_hook{&story, "all"});
  CHECK(story == std::vector<std::string>{"chief's begin", "all begin"});
  story.clear();

  sw::test::temporary_directory other;
  auto worker_options = rig.options();
  worker_options.master = "local:create-7";
  worker_options.is_chief = false;
  worker_options.checkpoint_dir = other.path();
  worker_options.summary_dir = other.path();
  worker_options.summaries.save_steps = 1;
  worker_options.step_counter.every_n_steps = 1;
  auto worker = sw::monitored_training_session(
      rig.model, worker_options, sw::summaries(sw::summary::scalar("loss", &adding_model::result::loss)),
      sw::scaffold<adding_model>({.init_op = [](adding_model&) { throw std::logic_error("a worker initialises nothing"); }}),
      sw::chief_only(named_hook{&story, "chief's"}), named_hook{&story, "all"});
  worker.run(std::int64_t{1});
  CHECK(story == std::vector<std::string>{"all begin", "all 1"});
  worker.close();
  CHECK(sw::test::names_in(other.path()).empty());
  CHECK(chief.global_step() == 1);
  chief.close();
  CHECK(rig.steps() == "0 1");
}

TEST_CASE("CREATE-1 roles that make no sense are refused by name", "[training][roles]") {
  session_rig rig;
  const auto refused = [&](auto change, const std::string& name) {
    auto options = rig.options();
    change(options);
    CHECK_THROWS_WITH(sw::monitored_training_session(rig.model, options), ContainsSubstring(name));
  };
  refused([](auto& options) { options.is_chief = false; }, "master");
  refused([](auto& options) { options.max_wait_secs = -1; }, "max_wait_secs");
  refused([](auto& options) { options.recovery_wait = 0; }, "recovery_wait");
  refused([](auto& options) { options.retry.jitter = 2; }, "jitter");
  refused([](auto& options) { options.master = "grpc://elsewhere"; }, "local:");
}
