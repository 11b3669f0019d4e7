// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"
#include "support/toy_model.hpp"
#include "unit/hooks/event_reading.hpp"

#include <stepwell/checkpoint/find_checkpoints.hpp>
#include <stepwell/hooks/checkpoint_saver_hook.hpp>
#include <stepwell/hooks/step_counter_hook.hpp>
#include <stepwell/hooks/summary_saver_hook.hpp>
#include <stepwell/model/model_session.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sw = stepwell;
using namespace std::chrono_literals;
using sw::format::session_status;
using sw::test::adding_model;
using sw::test::counting_model;
using sw::test::notes_in;
using sw::test::temporary_directory;

namespace {

using steps = std::vector<std::int64_t>;

steps steps_on_disk(const std::string& directory) {
  steps all;
  for (const auto& prefix : sw::list_checkpoints(directory)) { all.push_back(*sw::step_of_checkpoint(prefix)); }
  return all;
}

/// A listener that records its calls. It can throw or request a stop.
struct diary final : sw::checkpoint_saver_listener {
  std::string& heard;
  std::string name;
  bool asks_for_stop = false;
  bool throws = false;
  bool throws_before = false;

  diary(std::string& into, std::string called) : heard(into), name(std::move(called)) {}
  void note(const std::string& text) { heard += (heard.empty() ? "" : " ") + name + text; }

  void begin() override { note("begin"); }
  void before_save(std::int64_t step) override {
    note("<" + std::to_string(step));
    if (throws_before) { throw std::runtime_error("a listener fails"); }
  }
  bool after_save(const sw::saved_checkpoint& saved) override {
    note(">" + std::to_string(saved.step));
    CHECK(std::filesystem::exists(saved.prefix + ".index"));
    if (throws) { throw std::runtime_error("a listener fails"); }
    return asks_for_stop;
  }
  void end(std::int64_t step) override { note("end" + std::to_string(step)); }
};

template<class Session>
void settle(Session& session) {
  session.template hook<sw::checkpoint_saver_hook>().saver().drain();
}

/// Runs `runs` steps and waits for each save before the next step, so that the order of the listener's calls is fixed.
template<class Session>
void run_slowly(Session& session, int runs) {
  for (int i = 0; i < runs; ++i) {
    settle(session);
    session.run();
  }
  settle(session);
}

sw::checkpoint_saver_options every(std::int64_t save_steps, const temporary_directory& directory) {
  return {.checkpoint_dir = directory.path(), .save_steps = save_steps};
}

/// A model with state of several types.
struct stateful_model {
  std::vector<double> matrix = {0.1, 0.2, 1e300};
  std::array<std::uint8_t, 3> flags = {1, 2, 3};
  bool warm = false;
  std::int32_t age = 0;
  struct moments {
    float m = 0;
    float v = 0;
  } adam;

  void step() {
    for (auto& x : matrix) { x = x * 1.1 + 1; }
    flags[0] = static_cast<std::uint8_t>(flags[0] + 1);
    warm = !warm;
    ++age;
    adam.m = adam.m * 0.9f + 0.1f;
    adam.v = adam.v * 0.999f + 0.001f;
  }
  sw::variable_list variables() {
    return sw::variables(
        {{"matrix", matrix}, {"flags", flags}, {"warm", warm}, {"age", age}, {"adam", sw::variables({{"m", adam.m}, {"v", adam.v}})}});
  }
  bool operator==(const stateful_model& other) const {
    return matrix == other.matrix && flags == other.flags && warm == other.warm && age == other.age && adam.m == other.adam.m &&
           adam.v == other.adam.v;
  }
};

struct noting_creation {
  std::string* heard;
  void after_create_session(auto&, auto&) { *heard += " created"; }
};

sw::session_setup from_newest_of(const std::string& directory) {
  return {.find_checkpoint = [directory] { return sw::latest_whole_checkpoint(directory); }};
}

}  // namespace

TEST_CASE("HOOK-CKPT-1 a directory and a period above zero must be given", "[hooks][checkpoint_saver]") {
  const temporary_directory directory;
  CHECK_THROWS_AS(sw::checkpoint_saver_hook{{.checkpoint_dir = directory.path()}}, sw::invalid_argument_error);
  CHECK_THROWS_AS((sw::checkpoint_saver_hook{{.checkpoint_dir = directory.path(), .save_steps = 0}}), sw::invalid_argument_error);
  CHECK_THROWS_AS((sw::checkpoint_saver_hook{{.save_steps = 1}}), sw::invalid_argument_error);
  CHECK(sw::test::file_names_in(directory.path()).empty());
}

TEST_CASE("HOOK-CKPT-4 HOOK-CKPT-6 saved at the start and whenever due", "[hooks][checkpoint_saver]") {
  const temporary_directory directory;
  counting_model model;
  const auto period = GENERATE(1, 2);
  sw::monitored_session session(model, sw::checkpoint_saver_hook{every(period, directory)});
  settle(session);
  CHECK(steps_on_disk(directory.path()) == steps{0});
  run_slowly(session, 1);
  CHECK(steps_on_disk(directory.path()) == (period == 1 ? steps{0, 1} : steps{0}));
  run_slowly(session, 1);
  CHECK(steps_on_disk(directory.path()) == (period == 1 ? steps{0, 1, 2} : steps{0, 2}));
}

TEST_CASE("HOOK-CKPT-3 begin opens the event file of the directory and begins the listeners, before there is a session",
          "[hooks][checkpoint_saver]") {
  const temporary_directory directory;
  std::string heard;
  counting_model model;
  auto options = every(2, directory);
  options.checkpoint_dir = directory / "made/for/it";
  options.listeners = {std::make_shared<diary>(heard, "a"), std::make_shared<diary>(heard, "b")};
  sw::checkpoint_saver_hook saver{options};
  CHECK(sw::test::event_files_in(options.checkpoint_dir) == 0);
  sw::monitored_session session(model, noting_creation{&heard}, std::move(saver));
  CHECK(heard.starts_with("abegin bbegin created a<0 b<0"));
  CHECK(sw::test::event_files_in(options.checkpoint_dir) == 1);
}

TEST_CASE("a durable checkpoint is logged at most once in ten seconds and at the end, or each one with log_every_secs = 0",
          "[hooks][checkpoint_saver]") {
  const auto lines_with = [](sw::seconds_value log_every_secs) {
    const temporary_directory directory;
    sw::test::log_capture log;
    counting_model model;
    auto options = every(1, directory);
    options.log_every_secs = log_every_secs;
    options.saver.clock = std::make_shared<sw::manual_clock>();
    sw::monitored_session session(model, sw::checkpoint_saver_hook{options});
    run_slowly(session, 4);
    session.close();
    const auto all = log.messages();
    return std::ranges::count_if(all, [](const auto& message) { return message.text.starts_with("saved "); });
  };
  CHECK(lines_with(10) == 2);  // steps 0 and 4
  CHECK(lines_with(0) == 5);
}

TEST_CASE("HOOK-CKPT-10 with several steps a run, the first that is a period after the one before is saved", "[hooks][checkpoint_saver]") {
  struct striding_model {
    std::int64_t steps = 0;
    int unused = 0;
    void step() { steps += 5; }
    std::int64_t& global_step() { return steps; }
    sw::variable_list variables() { return sw::variables({{"unused", unused}}); }
  };
  const temporary_directory directory;
  striding_model model;
  sw::monitored_session session(model, sw::checkpoint_saver_hook{every(9, directory)});
  run_slowly(session, 5);
  CHECK(steps_on_disk(directory.path()) == steps{0, 10, 20});
}

TEST_CASE("HOOK-CKPT-6 HOOK-CKPT-10 every so many seconds of the session's clock", "[hooks][checkpoint_saver]") {
  const temporary_directory directory;
  const auto clock = std::make_shared<sw::manual_clock>();
  counting_model model;
  sw::monitored_session session(sw::training_options{.clock = clock}, model,
                                sw::checkpoint_saver_hook{{.checkpoint_dir = directory.path(), .save_secs = 2}});
  for (const auto gap : {500ms, 2000ms, 100ms, 100ms, 7300ms}) {
    clock->advance(gap);
    run_slowly(session, 1);
  }
  CHECK(steps_on_disk(directory.path()) == steps{0, 2, 5});
}

TEST_CASE("HOOK-CKPT-11, D-15 the end saves an unsaved step, then notifies the listeners, once", "[hooks][checkpoint_saver]") {
  const temporary_directory directory;
  std::string heard;
  counting_model model;
  auto options = every(2, directory);
  options.listeners = {std::make_shared<diary>(heard, "")};
  sw::monitored_session session(model, sw::checkpoint_saver_hook{options});
  const int runs = GENERATE(2, 3);
  run_slowly(session, runs);
  session.close();
  session.close();  // a second close does nothing (decision D-15)
  CHECK(heard == (runs == 2 ? "begin <0 >0 <2 >2 end2" : "begin <0 >0 <2 >2 <3 >3 end3"));
  CHECK(steps_on_disk(directory.path()) == (runs == 2 ? steps{0, 2} : steps{0, 2, 3}));
}

TEST_CASE("HOOK-CKPT-11 a session left by an error saves nothing more and ends no listener", "[hooks][checkpoint_saver]") {
  const temporary_directory directory;
  std::string heard;
  counting_model model;
  auto options = every(2, directory);
  options.listeners = {std::make_shared<diary>(heard, "")};
  sw::monitored_session session(model, sw::checkpoint_saver_hook{options});
  run_slowly(session, 3);
  session.abandon(std::make_exception_ptr(std::runtime_error("the body failed")));
  CHECK(heard == "begin <0 >0 <2 >2");
  CHECK(steps_on_disk(directory.path()) == steps{0, 2});
}

TEST_CASE("HOOK-CKPT-12 D-25 one save: all before, the checkpoint, a note with its whole prefix, all after", "[hooks][checkpoint_saver]") {
  const temporary_directory directory;
  std::string heard;
  counting_model model;
  auto options = every(2, directory);
  options.listeners = {std::make_shared<diary>(heard, "a"), std::make_shared<diary>(heard, "b")};
  options.summary_dir = GENERATE(true, false) ? directory / "events" : "";
  sw::monitored_session session(model, sw::checkpoint_saver_hook{options});
  run_slowly(session, 2);
  session.close();
  CHECK(heard == "abegin bbegin a<0 b<0 a>0 b>0 a<2 b<2 a>2 b>2 aend2 bend2");
  const auto where = options.summary_dir.empty() ? directory.path() : options.summary_dir;
  using note = std::pair<std::int64_t, std::string>;
  CHECK(notes_in(where, session_status::checkpoint) == std::vector<note>{{0, directory / "model.ckpt-0"}, {2, directory / "model.ckpt-2"}});
}

TEST_CASE("HOOK-CKPT-16 begin, before, after and end are called, and a request to stop has its effect", "[hooks][checkpoint_saver]") {
  const temporary_directory directory;
  std::string heard;
  counting_model model;
  const auto clock = std::make_shared<sw::manual_clock>();
  const auto before_run_calls = std::make_shared<diary>(heard, "");
  const auto other = std::make_shared<diary>(heard, "-");
  sw::monitored_session session(
      sw::training_options{.clock = clock}, model,
      sw::checkpoint_saver_hook{{.checkpoint_dir = directory.path(), .save_secs = 2, .listeners = {before_run_calls, other}}});
  run_slowly(session, 2);  // the clock does not move
  before_run_calls->asks_for_stop = true;
  CHECK_FALSE(session.should_stop());
  clock->advance(2s);
  run_slowly(session, 2);  // the first run saves, the next boundary processes the request of the listener
  CHECK(session.should_stop());
  CHECK(session.stop_reason().text.find("model.ckpt-3") != std::string::npos);
  session.close();
  CHECK(heard == "begin -begin <0 -<0 >0 ->0 <3 -<3 >3 ->3 <4 -<4 >4 ->4 end4 -end4");
}

TEST_CASE("HOOK-CKPT-13 a listener cannot request a stop after the first save or while the session closes", "[hooks][checkpoint_saver]") {
  const temporary_directory directory;
  std::string heard;
  counting_model model;
  const auto before_run_calls = std::make_shared<diary>(heard, "");
  before_run_calls->asks_for_stop = true;
  auto options = every(10, directory);
  options.listeners = {before_run_calls};
  sw::monitored_session session(model, sw::checkpoint_saver_hook{options});
  run_slowly(session, 3);
  CHECK_FALSE(session.should_stop());
  session.close();
  CHECK(heard == "begin <0 >0 <3 >3 end3");
  CHECK(session.stop_reason().cause == sw::stop_cause::closed);
}

TEST_CASE("a hook given by reference starts afresh with the next session", "[hooks][checkpoint_saver]") {
  const temporary_directory directory;
  std::string heard;
  const auto before_run_calls = std::make_shared<diary>(heard, "");
  auto options = every(1, directory);
  options.listeners = {before_run_calls};
  sw::checkpoint_saver_hook saver{options};
  const auto two_steps = [&] {
    counting_model model;
    sw::monitored_session session(model, std::ref(saver));
    settle(session);
    run_slowly(session, 2);
    const bool stopped = session.should_stop();
    session.close();
    return stopped;
  };
  CHECK_FALSE(two_steps());
  heard.clear();
  before_run_calls->asks_for_stop = true;
  CHECK(two_steps());
  CHECK(heard.starts_with("begin <0 >0 <1 >1"));
}

TEST_CASE("HOOK-CKPT-16 the exception of a listener is thrown at the boundary, and the other listeners are called",
          "[hooks][checkpoint_saver]") {
  const temporary_directory directory;
  std::string heard;
  counting_model model;
  const auto bad = std::make_shared<diary>(heard, "a");
  auto options = every(1, directory);
  options.listeners = {bad, std::make_shared<diary>(heard, "b")};
  sw::monitored_session session(model, sw::checkpoint_saver_hook{options});
  settle(session);
  bad->throws = true;
  CHECK_THROWS_AS(session.run(), std::runtime_error);
  CHECK(heard == "abegin bbegin a<0 b<0 a>0 b>0 a<1 b<1");
  bad->throws = false;
  session.close();
  CHECK(heard == "abegin bbegin a<0 b<0 a>0 b>0 a<1 b<1 a>1 b>1 aend1 bend1");
  CHECK(notes_in(directory.path(), session_status::checkpoint).size() == 2);
}

TEST_CASE("HOOK-CKPT-16 if a listener throws before a save, the others are still called, and nothing is saved",
          "[hooks][checkpoint_saver]") {
  const temporary_directory directory;
  std::string heard;
  counting_model model;
  const auto bad = std::make_shared<diary>(heard, "a");
  auto options = every(1, directory);
  options.listeners = {bad, std::make_shared<diary>(heard, "b")};
  sw::monitored_session session(model, sw::checkpoint_saver_hook{options});
  settle(session);
  bad->throws_before = true;
  CHECK_THROWS_AS(session.run(), std::runtime_error);
  CHECK(heard == "abegin bbegin a<0 b<0 a>0 b>0 a<1 b<1");
  CHECK(steps_on_disk(directory.path()) == steps{0});
  bad->throws_before = false;
  session.close();
  CHECK(steps_on_disk(directory.path()) == steps{0, 1});
}

TEST_CASE("a model of many kinds of state is restored to the bit", "[hooks][checkpoint_saver]") {
  const temporary_directory directory;
  stateful_model model;
  {
    sw::monitored_session session(model, sw::checkpoint_saver_hook{every(10, directory)});
    for (int i = 0; i < 7; ++i) { session.run(); }
    session.close();
  }
  stateful_model again;
  sw::monitored_session session(from_newest_of(directory.path()), again, sw::checkpoint_saver_hook{every(10, directory)});
  CHECK(again == model);
  CHECK(session.global_step() == 7);
  CHECK(session.restored_from() == directory / "model.ckpt-7");
}

TEST_CASE("D-5 restored from here: not written again; restored from elsewhere: written here at once", "[hooks][checkpoint_saver]") {
  const temporary_directory here;
  const temporary_directory elsewhere;
  counting_model model;
  {
    sw::monitored_session session(model, sw::checkpoint_saver_hook{every(3, here)});
    run_slowly(session, 3);
    session.close();
  }
  const auto index = here / "model.ckpt-3.index";
  const auto written = std::filesystem::last_write_time(index);
  {
    sw::monitored_session session(from_newest_of(here.path()), model, sw::checkpoint_saver_hook{every(3, here)});
    session.close();
  }
  CHECK(steps_on_disk(here.path()) == steps{0, 3});
  CHECK(std::filesystem::last_write_time(index) == written);
  sw::monitored_session session(from_newest_of(here.path()), model, sw::checkpoint_saver_hook{every(3, elsewhere)});
  session.close();
  CHECK(steps_on_disk(elsewhere.path()) == steps{3});
}

TEST_CASE("HOOK-SUM-2 EVT-12 hooks that share a directory share one event file; two savers on one are refused",
          "[hooks][checkpoint_saver]") {
  const temporary_directory directory;
  counting_model model;
  sw::monitored_session session(model, sw::step_counter_hook{{.every_n_steps = 1, .output_dir = directory.path()}},
                                sw::summary_saver_hook{sw::summary_saver_options{.output_dir = directory.path() + "/.", .save_steps = 1},
                                                       sw::summary::scalar("count", [](const int& count) { return count; })},
                                sw::checkpoint_saver_hook{every(1, directory)});
  run_slowly(session, 3);
  CHECK_THROWS_AS(sw::checkpoint_saver_hook{every(1, directory)}, sw::failed_precondition_error);
  session.close();
  CHECK(sw::test::event_files_in(directory.path()) == 1);
  CHECK(sw::test::scalars_in(directory.path(), "count").size() == 3);
  CHECK(notes_in(directory.path(), session_status::checkpoint).size() == 4);
}

TEST_CASE("a hook that is off does nothing", "[hooks][checkpoint_saver]") {
  counting_model model;
  sw::monitored_session session(model, sw::checkpoint_saver_hook::off());
  session.run();
  session.close();
  CHECK_FALSE(session.hook<sw::checkpoint_saver_hook>().is_on());
}
