// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/checkpoint_files.hpp"
#include "support/file_text.hpp"
#include "support/log_capture.hpp"
#include "support/signalling_hook.hpp"
#include "support/temporary_directory.hpp"
#include "unit/hooks/scripted_model.hpp"

#include <stepwell/checkpoint/checkpoint_reader.hpp>
#include <stepwell/checkpoint/find_checkpoints.hpp>
#include <stepwell/checkpoint/restore.hpp>
#include <stepwell/hooks/best_checkpoint_hook.hpp>
#include <stepwell/hooks/early_stopping_hook.hpp>
#include <stepwell/hooks/function_hooks.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace sw = stepwell;
using sw::test::scripted_model;
using sw::test::steps_in;

namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

/// Trains in `directory` to the end of the script.
template<class... Hooks>
void train(const std::string& directory, scripted_model& model, Hooks... hooks) {
  auto session = sw::monitored_training_session(model,
                                                {.checkpoint_dir = directory,
                                                 .saves = {.save_steps = 2},
                                                 .summaries = {.save_steps = sw::none},
                                                 .step_counter = {.every_n_steps = sw::none}},
                                                sw::stop_at_step(static_cast<std::int64_t>(model.script.size())), std::move(hooks)...);
  for ([[maybe_unused]] const auto& step : session.steps()) {}
  session.close();
}

constexpr auto score = &scripted_model::result::score;

/// A hook that truncates the file `path` when all saves have ended, before the session restores the best state.
struct damaging_hook {
  std::string path;

  struct work final : sw::boundary_work {
    explicit work(std::string given) : path(std::move(given)) {}
    void write_ending(const sw::run_ending& /*ending*/) override { std::filesystem::resize_file(path, 1); }
    std::string path;
  };
  void after_create_session(auto& session, auto& /*threads*/) { session.add_work(std::make_shared<work>(path)); }
};

}  // namespace

TEST_CASE("a state is saved when its value is better than all before, and the best one is found again", "[hooks][best]") {
  const sw::test::temporary_directory directory;
  CHECK(sw::best_checkpoint(directory / "run") == std::nullopt);
  scripted_model model{.script = {5, 3, 4, 2, 2.5, 2}};
  train(directory / "run", model, sw::best_checkpoint_hook{{.keep = 2}, score});
  CHECK(steps_in(directory / "run/best") == "2 4");
  const auto best = sw::best_checkpoint(directory / "run");
  REQUIRE(best);
  CHECK(best->prefix == directory / "run/best/model.ckpt-4");
  CHECK(best->step == 4);
  CHECK(best->value == 2);
  scripted_model restored;
  sw::restore(restored.variables(), sw::checkpoint_reader(best->prefix), {});
  CHECK(restored.next == 4);
}

TEST_CASE("the best checkpoints have their own retention, apart from the others", "[hooks][best]") {
  const sw::test::temporary_directory directory;
  scripted_model model{.script = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}};
  train(directory.path(), model, sw::best_checkpoint_hook{score},
        sw::best_checkpoint_hook{{.mode = sw::metric_mode::maximize, .name = "highest"}, score});
  CHECK(steps_in(directory / "best") == "1");
  CHECK(steps_in(directory / "highest") == "14");
  CHECK(steps_in(directory.path()) == "6 8 10 12 14");
  CHECK(sw::best_checkpoint(directory.path(), "highest")->value == 14);
}

TEST_CASE("NaN and an empty value are never better, and min_delta is the least gain", "[hooks][best]") {
  const sw::test::temporary_directory directory;
  SECTION("NaN") {
    scripted_model model{.script = {nan_value, 3, nan_value, 4}};
    train(directory.path(), model, sw::best_checkpoint_hook{score});
    CHECK(steps_in(directory / "best") == "2");
  }
  SECTION("empty") {
    scripted_model model{.script = {1, 5, 1, 4, 1}};
    train(directory.path(), model, sw::best_checkpoint_hook{&scripted_model::result::measured});
    CHECK(steps_in(directory / "best") == "4");
  }
  SECTION("min_delta") {
    scripted_model model{.script = {5, 4.5, 3.9, 3}};
    train(directory.path(), model, sw::best_checkpoint_hook{{.keep = 9, .min_delta = 1}, score});
    CHECK(steps_in(directory / "best") == "1 3");
  }
  SECTION("every_n_steps") {
    scripted_model model{.script = {5, 4, 3, 2, 1}};
    train(directory.path(), model, sw::best_checkpoint_hook{{.keep = 9, .every_n_steps = 2}, score});
    CHECK(steps_in(directory / "best") == "2 4");
  }
}

TEST_CASE("if an optional value is empty when it is due, the next one is checked", "[hooks][best]") {
  const sw::test::temporary_directory directory;
  scripted_model model{.script = {9, 8, 7, 6, 5, 4, 3}};
  train(directory.path(), model, sw::best_checkpoint_hook{{.keep = 9, .every_n_steps = 3}, &scripted_model::result::measured});
  CHECK(steps_in(directory / "best") == "4 6");  // due after step 3, which has no value, and after step 6
}

TEST_CASE("a resumed run keeps the best checkpoint of the run before, until a better state comes", "[hooks][best]") {
  const sw::test::temporary_directory directory;
  const auto run = [&](std::vector<double> script) {
    scripted_model model{.script = std::move(script)};
    train(directory.path(), model, sw::best_checkpoint_hook{score});
    return sw::best_checkpoint(directory.path())->step;
  };
  CHECK(run({5, 2}) == 2);
  CHECK(run({5, 2, 3, 3}) == 2);
  CHECK(run({5, 2, 3, 3, 1, 2}) == 5);
}

TEST_CASE("a best checkpoint saved after the newest other one is kept when its step is repeated", "[hooks][best]") {
  const sw::test::temporary_directory directory;
  scripted_model model{.script = {5, 4, 3, 2, 1}};
  train(directory.path(), model, sw::best_checkpoint_hook{{.keep = 2}, score});
  for (const std::int64_t step : {4, 5}) { sw::remove_checkpoint(directory / ("model.ckpt-" + std::to_string(step))); }
  scripted_model again{.script = model.script};
  sw::test::log_capture log;
  train(directory.path(), again, sw::best_checkpoint_hook{{.keep = 2}, score});
  CHECK(again.next == 5);
  CHECK(steps_in(directory / "best") == "4 5");
  CHECK_FALSE(log.contains(sw::log_level::info, "best: "));
}

TEST_CASE("a new best value is logged at most once in ten seconds, and the last one at the close", "[hooks][best]") {
  const sw::test::temporary_directory directory;
  scripted_model model{.script = {5, 4, 3}};
  sw::test::log_capture log;
  train(directory.path(), model, sw::best_checkpoint_hook{{.saver = {.clock = std::make_shared<sw::manual_clock>()}}, score});
  CHECK(log.contains(sw::log_level::info, "best: the watched value 5 at step 1"));
  CHECK_FALSE(log.contains(sw::log_level::info, "at step 2"));
  CHECK(log.contains(sw::log_level::info, "best: the watched value 3 at step 3"));
  CHECK(steps_in(directory / "best") == "3");
}

TEST_CASE("log_every_secs = 0 logs each new best value at once", "[hooks][best]") {
  const sw::test::temporary_directory directory;
  scripted_model model{.script = {5, 4, 3}};
  sw::test::log_capture log;
  train(directory.path(), model,
        sw::best_checkpoint_hook{{.log_every_secs = 0, .saver = {.clock = std::make_shared<sw::manual_clock>()}}, score});
  for (const auto* const line : {"5 at step 1", "4 at step 2", "3 at step 3"}) {
    CHECK(log.contains(sw::log_level::info, std::string("best: the watched value ") + line));
  }
}

TEST_CASE("after a kill between the first best state and the first checkpoint, the message says that all is well", "[hooks][best]") {
  const sw::test::temporary_directory directory;
  scripted_model model{.script = {5, 4}};
  train(directory.path(), model, sw::best_checkpoint_hook{score});
  const auto whole = sw::test::file_text(directory / "best/model.ckpt-2.data-00000-of-00001");
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    if (!entry.is_directory()) { std::filesystem::remove(entry.path()); }
  }
  scripted_model again{.script = {5, 4}};
  sw::test::log_capture log;
  train(directory.path(), again, sw::best_checkpoint_hook{score});
  CHECK(log.contains(sw::log_level::warning, "This is right if that start was killed before its first checkpoint"));
  CHECK_FALSE(log.contains(sw::log_level::warning, "Remove"));
  CHECK(sw::test::file_text(directory / "best/model.ckpt-2.data-00000-of-00001") == whole);
}

TEST_CASE("training that begins anew in a directory with an earlier best checkpoint is warned", "[hooks][best]") {
  const sw::test::temporary_directory directory;
  const sw::test::temporary_directory other;
  scripted_model model{.script = {5, 4}};
  train(directory.path(), model, sw::best_checkpoint_hook{score});
  scripted_model anew{.script = {6, 3}};
  sw::test::log_capture log;
  train(other.path(), anew, sw::best_checkpoint_hook{{.directory = directory.path()}, sw::tag("loss", score)});
  CHECK(log.contains(sw::log_level::warning, "an earlier start, with loss = 4 at step 2"));
  CHECK(sw::best_checkpoint(directory.path())->value == 3);
}

TEST_CASE("a hook that never got a value is an error at the close", "[hooks][best]") {
  const sw::test::temporary_directory directory;
  scripted_model model{.script = {5}};
  CHECK_THROWS_WITH(train(directory.path(), model, sw::best_checkpoint_hook{sw::tag("accuracy", &scripted_model::result::measured)}),
                    ContainsSubstring("accuracy never had a value"));
  scripted_model finished{.script = {5}};  // a run that is already at its end does no run
  train(directory.path(), finished, sw::best_checkpoint_hook{&scripted_model::result::measured});
}

TEST_CASE("a session without a directory is an error when it begins, and options that make no sense are errors at once", "[hooks][best]") {
  scripted_model model{.script = {5}};
  CHECK_THROWS_WITH(sw::monitored_session(model, sw::best_checkpoint_hook{score}).run(), ContainsSubstring("no directory"));
  const auto refused = [](sw::best_checkpoint_options options, const std::string& member) {
    CHECK_THROWS_WITH((sw::best_checkpoint_hook{std::move(options), score}), ContainsSubstring(member));
  };
  refused({.keep = 0}, "keep=0");
  refused({.min_delta = -1}, "min_delta");
  refused({.every_n_steps = 0}, "every_n_steps");
  refused({.name = "a/b"}, "name");
}

TEST_CASE("a best checkpoint that cannot be saved ends training, and the one before it stays", "[hooks][best]") {
  const sw::test::temporary_directory directory;
  const auto files = sw::test::fast_faulty_files();
  files->inject(
      {.kind = sw::test::operation::rename, .path_contains = "best/model.ckpt-2.index", .errno_value = ENOSPC, .from_then_on = true});
  scripted_model model{.script = {5, 4, 4.5, 4.5, 4.5}};
  CHECK_THROWS_AS(train(directory.path(), model, sw::best_checkpoint_hook{{.saver = {.file_system = files}}, score}),
                  sw::resource_exhausted_error);
  CHECK(sw::best_checkpoint(directory.path())->step == 1);
}

TEST_CASE("a best state whose save fails is kept and saved later, so a worse state never counts as the best", "[hooks][best]") {
  const sw::test::temporary_directory directory;
  const auto files = sw::test::fast_faulty_files();
  const auto on_error = GENERATE(sw::on_save_error::warn(), sw::on_save_error::stop());
  const int errno_value = GENERATE(EINTR, ENOSPC);
  files->inject({.kind = sw::test::operation::rename, .path_contains = "best/model.ckpt-2.index", .errno_value = errno_value});
  scripted_model model{.script = {5, 1, 3, 2, 4}};
  const auto session_of = [&] {
    return sw::monitored_training_session(model,
                                          {.checkpoint_dir = directory.path(),
                                           .saves = {.save_steps = 1},
                                           .summaries = {.save_steps = sw::none},
                                           .retry = {.initial_backoff = 0}},
                                          sw::best_checkpoint_hook{{.saver = {.on_error = on_error, .file_system = files}}, score},
                                          sw::early_stopping_hook{{.patience = 9, .restore_best = true}, score}, sw::stop_at_step(5));
  };
  try {
    auto session = session_of();
    session.run_all();
    session.close();
  } catch (const sw::error&) {  // of the policy `stop`: the program is started again
    CHECK_FALSE(on_error.only_warns());
    model.next = 0;
    auto session = session_of();
    session.run_all();
    session.close();
  }
  CHECK(model.next == 2);
  CHECK(sw::best_checkpoint(directory.path())->value == 1);
}

TEST_CASE("a best state that cannot be saved until the close is an error with the policy warn, too", "[hooks][best]") {
  const sw::test::temporary_directory directory;
  const auto files = sw::test::fast_faulty_files();
  files->inject(
      {.kind = sw::test::operation::rename, .path_contains = "best/model.ckpt-2.index", .errno_value = ENOSPC, .from_then_on = true});
  scripted_model model{.script = {5, 1, 3}};
  const sw::best_checkpoint_options options{.saver = {.on_error = sw::on_save_error::warn(), .file_system = files}};
  CHECK_THROWS_WITH(train(directory.path(), model, sw::best_checkpoint_hook{options, score}), ContainsSubstring("at step 2) is lost"));
}

TEST_CASE("a checkpoint of the session is not committed before the best state is saved", "[hooks][best]") {
  const sw::test::temporary_directory directory;
  const auto files = sw::test::fast_faulty_files();
  files->inject(
      {.kind = sw::test::operation::rename, .path_contains = "best/model.ckpt-2.index", .errno_value = ENOSPC, .from_then_on = true});
  scripted_model model{.script = {5, 1, 3, 3, 3, 3}};
  const sw::test::log_capture log;
  // Both saves fail. The session throws the failure that it notices first, and logs the other one.
  try {
    train(directory.path(), model, sw::best_checkpoint_hook{{.saver = {.file_system = files}}, score});
    FAIL_CHECK("the training has not failed");
  } catch (const sw::resource_exhausted_error& of_best) {
    CHECK_THAT(of_best.what(), ContainsSubstring("No space left on device"));
  } catch (const sw::unavailable_error& of_checkpoint) {
    CHECK_THAT(of_checkpoint.what(), ContainsSubstring("this checkpoint is not committed, because the best state"));
    CHECK(log.contains(sw::log_level::error, "No space left on device"));
  }
  CHECK(steps_in(directory.path()) == "0");
}

TEST_CASE("a run whose best checkpoint has disappeared says so, and never takes a worse state for the best", "[hooks][best]") {
  const sw::test::temporary_directory directory;
  const auto run = [&](std::vector<double> script) {
    scripted_model model{.script = std::move(script)};
    train(directory.path(), model, sw::best_checkpoint_hook{score}, sw::early_stopping_hook{{.patience = 9, .restore_best = true}, score});
    return model.next;
  };
  CHECK(run({5, 1}) == 2);
  std::filesystem::remove_all(directory / "best");
  sw::test::log_capture log;
  CHECK_THROWS_WITH(run({5, 1, 3, 2}), ContainsSubstring("best state (the watched value = 1 at step 2) is lost"));
  CHECK(log.contains(sw::log_level::warning, "is lost"));
  CHECK(sw::best_checkpoint(directory.path()) == std::nullopt);
  CHECK(run({5, 1, 3, 2, 0.5, 2}) == 5);  // a better state ends the loss
}

TEST_CASE("a best checkpoint that is damaged before the restore is an error, not a reason to restore a worse one", "[hooks][best]") {
  const sw::test::temporary_directory directory;
  scripted_model model{.script = {5, 4, 6}};
  sw::test::log_capture log;
  CHECK_THROWS_WITH(train(directory.path(), model, sw::best_checkpoint_hook{{.keep = 2}, score},
                          sw::early_stopping_hook{{.patience = 9, .restore_best = true}, score},
                          damaging_hook{directory / "best/model.ckpt-2.data-00000-of-00001"}),
                    ContainsSubstring("the best state is lost"));
  CHECK(model.next == 3);
}

TEST_CASE("restore_best reads the best state through the file system of the session", "[hooks][best][early_stopping]") {
  const sw::test::temporary_directory directory;
  const auto files = sw::test::fast_faulty_files();
  const auto failing = GENERATE(sw::test::operation::stat, sw::test::operation::read);
  scripted_model model{.script = {5, 4, 6}};
  auto session = sw::monitored_training_session(
      model, {.checkpoint_dir = directory.path(), .saves = {.saver = {.file_system = files}}, .summaries = {.save_steps = sw::none}},
      sw::best_checkpoint_hook{score}, sw::early_stopping_hook{{.patience = 9, .restore_best = true}, score});
  const auto fail = [&] { files->inject({.kind = failing, .path_contains = "/best", .errno_value = EACCES, .from_then_on = true}); };
  if (failing == sw::test::operation::stat) {
    fail();
    CHECK_THROWS_WITH(session.run(), ContainsSubstring("nothing saves best checkpoints in this directory"));
  } else {
    while (!session.should_stop() && session.global_step() < 3) { session.run(); }
    fail();
    CHECK_THROWS_WITH(session.close(), ContainsSubstring("/best"));
  }
}

TEST_CASE("a damaged best checkpoint gives way to the one before it", "[hooks][best]") {
  const sw::test::temporary_directory directory;
  scripted_model model{.script = {5, 4}};
  train(directory.path(), model, sw::best_checkpoint_hook{{.keep = 2}, score});
  std::filesystem::resize_file(directory / "best/model.ckpt-2.data-00000-of-00001", 1);
  sw::test::log_capture log;
  CHECK(sw::best_checkpoint(directory.path())->step == 1);
}

TEST_CASE("early stopping ends with the best state restored, and the last checkpoint is that of the end", "[hooks][best][early_stopping]") {
  const sw::test::temporary_directory directory;
  const auto run = [&] {
    scripted_model model{.script = {5, 3, 4, 4, 4, 4, 4}};
    train(directory.path(), model, sw::best_checkpoint_hook{score}, sw::early_stopping_hook{{.patience = 3, .restore_best = true}, score});
    return model.next;
  };
  CHECK(run() == 2);
  scripted_model last;
  sw::restore(last.variables(), *sw::latest_whole_checkpoint(directory.path()));
  CHECK(last.next == 5);
  CHECK(run() == 2);  // a resumed run stops at once, and restores the same state
}

TEST_CASE("restore_best without a hook for best checkpoints is an error at the first value", "[hooks][best][early_stopping]") {
  const sw::test::temporary_directory directory;
  scripted_model model{.script = {5, 3}};
  CHECK_THROWS_WITH(train(directory.path(), model, sw::early_stopping_hook{{.patience = 3, .restore_best = true}, score}),
                    ContainsSubstring("add a best_checkpoint_hook"));
  CHECK(model.next == 1);
}

TEST_CASE("an interrupted session needs no best value, and does not restore the best state", "[hooks][best][early_stopping]") {
  const sw::test::log_capture log;
  const sw::test::temporary_directory directory;
  const auto clock = std::make_shared<sw::manual_clock>();
  std::stop_source stops;
  const bool has_value = GENERATE(false, true);
  CAPTURE(has_value);
  scripted_model model{.script = has_value ? std::vector<double>{1, 2, 3, 4} : std::vector<double>(4, nan_value)};
  const auto cause_of_stop = [&](auto interrupting_hook) {
    auto session = sw::monitored_training_session(model,
                                                  {.checkpoint_dir = directory.path(),
                                                   .summaries = {.save_steps = sw::none},
                                                   .step_counter = {.every_n_steps = sw::none},
                                                   .stop_token = stops.get_token(),
                                                   .stop_on = {SIGURG},
                                                   .clock = clock},
                                                  sw::time_limit_hook{60}, sw::best_checkpoint_hook{score},
                                                  sw::early_stopping_hook{{.patience = 100, .restore_best = true}, score},
                                                  std::move(interrupting_hook));
    session.run_all();
    session.close();
    return session.stop_reason().cause;
  };
  SECTION("by a signal") { CHECK(cause_of_stop(sw::test::signalling_hook{2}) == sw::stop_cause::signal); }
  SECTION("by a stop token") {
    CHECK(cause_of_stop(sw::every_n_steps(2, [&] { stops.request_stop(); })) == sw::stop_cause::stop_token);
  }
  SECTION("by a time limit") {
    CHECK(cause_of_stop(sw::every_n_steps(2, [&] { clock->advance(std::chrono::minutes(2)); })) == sw::stop_cause::deadline);
  }
  CHECK(model.next >= 2);  // the best state is that of step 1
  CHECK(sw::best_checkpoint(directory.path()).has_value() == has_value);
}

TEST_CASE("restore_best of values that are all NaN says so at the close", "[hooks][best][early_stopping]") {
  const sw::test::temporary_directory directory;
  scripted_model model{.script = {nan_value, nan_value}};
  CHECK_THROWS_WITH(train(directory.path(), model, sw::best_checkpoint_hook{score},
                          sw::early_stopping_hook{{.patience = 3, .restore_best = true}, score}),
                    ContainsSubstring("was NaN in every run") && !ContainsSubstring("add a best_checkpoint_hook"));
  CHECK(model.next == 2);
}

TEST_CASE("a watched value that is always NaN is an error at the close", "[hooks][best]") {
  const sw::test::temporary_directory directory;
  scripted_model model{.script = {nan_value, nan_value}};
  CHECK_THROWS_WITH(train(directory.path(), model, sw::best_checkpoint_hook{sw::tag("loss", score)}),
                    ContainsSubstring("loss was NaN in every run"));
}
