// SPDX-License-Identifier: Apache-2.0
//
// The state of hooks, metrics and sources of files after a resume, in blocking and awaited sessions.
#include "support/both_ways.hpp"
#include "support/catch.hpp"
#include "support/file_text.hpp"
#include "support/log_capture.hpp"
#include "support/signalling_hook.hpp"
#include "support/temporary_directory.hpp"
#include "unit/training/mixing_rig.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/base/random.hpp>
#include <stepwell/checkpoint/find_checkpoints.hpp>
#include <stepwell/data/record_files.hpp>
#include <stepwell/data/shuffled_batches.hpp>
#include <stepwell/data/source.hpp>
#include <stepwell/format/events/record.hpp>
#include <stepwell/hooks/early_stopping_hook.hpp>
#include <stepwell/hooks/evaluate_every.hpp>
#include <stepwell/hooks/function_hooks.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/metrics/metrics.hpp>
#include <stepwell/protocol/run_ending.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sw = stepwell;
namespace data = stepwell::data;
using namespace std::chrono_literals;
using namespace sw::test;

namespace {

constexpr std::int64_t save_steps = 4;

sw::saved_state counted_as(std::string name, std::int64_t& count) {
  return {std::move(name), [&count] { return sw::variables({{"n", count}}); }};
}

/// A model whose state depends on the order of all bytes that it has seen.
struct byte_model {
  std::uint64_t mixed = 1;
  void add(std::span<const std::byte> record) {
    for (const auto one : record) { mixed = (mixed ^ std::to_integer<std::uint64_t>(one)) * 0x100000001B3ULL; }
  }
  void step(const std::vector<std::byte>& record) { add(record); }
  sw::variable_list variables() { return sw::variables({{"mixed", mixed}}); }
};
struct mapped_model : byte_model {
  void step(const std::vector<data::mapped_records::record>& batch) {
    for (const auto& record : batch) { add(record); }
  }
};

/// Returns twelve records; the size of a record is `size` of its number.
template<class Size>
std::vector<std::string> records_of(Size size) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < 12; ++i) { all.emplace_back(size(i), static_cast<char>('a' + i)); }
  return all;
}
std::string framed(const std::vector<std::string>& texts) {
  std::vector<std::byte> out;
  for (const auto& text : texts) { sw::format::append_record(out, std::as_bytes(std::span(text))); }
  return {reinterpret_cast<const char*>(out.data()), out.size()};
}

/// Trains over `make_source()` until `last_step` in the directory, and returns the state of the model.
template<class Model, class MakeSource>
std::uint64_t train_until(session_way way, const std::string& directory, const MakeSource& make_source, std::int64_t last_step,
                          std::int64_t killed_at = 0) {
  Model model;
  auto source = make_source();
  train(way, model, saving_in(directory, save_steps), source, killed_at, sw::stop_at_step(last_step));
  return model.mixed;
}

/// Checks that runs which are killed at any step end like one that is not, and that `grow`, which adds data to the files, is noticed.
template<class Model, class MakeSource, class Grow>
void check_resumed_and_grown(const MakeSource& make_source, const Grow& grow) {
  const auto way = GENERATE(session_way::blocking, session_way::awaited);
  CAPTURE(way == session_way::awaited);
  const log_capture log;
  const temporary_directory whole;
  const auto train_ten = [&](const std::string& directory, std::int64_t killed_at) {
    return train_until<Model>(way, directory, make_source, 10, killed_at);
  };
  check_resumed_after_kills(train_ten, train_ten(whole.path(), 0), 10);
  CHECK(log.count(sw::log_level::warning) == 0);
  grow();
  train_until<Model>(way, whole.path(), make_source, 11);
  CHECK(log.count(sw::log_level::warning) == 1);
  CHECK(log.contains(sw::log_level::warning, "has other data ("));
}

/// All metrics, with updates that differ from step to step.
struct measured_model {
  sw::metrics::sum sum;
  sw::metrics::mean mean;
  sw::metrics::min_max min_max;
  sw::metrics::windowed_mean windowed_mean{3};
  sw::metrics::exponential_mean exponential_mean{0.9};
  sw::metrics::variance variance;
  sw::metrics::accuracy accuracy;
  sw::metrics::top_k_accuracy top_k_accuracy{2};
  sw::metrics::precision_recall precision_recall;
  sw::metrics::confusion_matrix confusion_matrix{3};
  sw::metrics::auc auc{20};
  sw::metrics::perplexity perplexity;
  sw::metrics::mean_absolute_error mean_absolute_error;
  sw::metrics::mean_squared_error mean_squared_error;
  sw::metrics::r_squared r_squared;

  void step(std::uint64_t number) {
    const double x = static_cast<double>(sw::random_bits(7, number, 0) % 1000) / 1000;
    const double y = static_cast<double>(sw::random_bits(7, number, 1) % 1000) / 1000;
    const auto of_class = static_cast<std::int64_t>(number % 3);
    const auto guess = static_cast<std::int64_t>(number * number % 7 % 3);
    sum.update(x * 1e10);
    mean.update(x, y);
    min_max.update(x * static_cast<double>(number));
    windowed_mean.update(x);
    exponential_mean.update(x);
    variance.update(x);
    accuracy.update(guess, of_class);
    const std::array scores = {static_cast<float>(x), static_cast<float>(y), 0.5F};
    top_k_accuracy.update(scores, std::array{of_class});
    precision_recall.update(x > 0.4, y > 0.4);
    confusion_matrix.update(guess, of_class);
    auc.update(x, number % 2 == 0);
    perplexity.update(x);
    mean_absolute_error.update(x, y);
    mean_squared_error.update(x, y);
    r_squared.update(x, y);
  }
  sw::variable_list variables() {
    return sw::variables({{"sum", sum.variables()},
                          {"mean", mean.variables()},
                          {"min_max", min_max.variables()},
                          {"windowed_mean", windowed_mean.variables()},
                          {"exponential_mean", exponential_mean.variables()},
                          {"variance", variance.variables()},
                          {"accuracy", accuracy.variables()},
                          {"top_k_accuracy", top_k_accuracy.variables()},
                          {"precision_recall", precision_recall.variables()},
                          {"confusion_matrix", confusion_matrix.variables()},
                          {"auc", auc.variables()},
                          {"perplexity", perplexity.variables()},
                          {"mean_absolute_error", mean_absolute_error.variables()},
                          {"mean_squared_error", mean_squared_error.variables()},
                          {"r_squared", r_squared.variables()}});
  }
  [[nodiscard]] std::vector<std::pair<std::string, double>> values() const {
    return {{"sum", sum.value()},
            {"mean", mean.value()},
            {"min_max", min_max.value()},
            {"windowed_mean", windowed_mean.value()},
            {"exponential_mean", exponential_mean.value()},
            {"variance", variance.value()},
            {"accuracy", accuracy.value()},
            {"top_k_accuracy", top_k_accuracy.value()},
            {"precision_recall", precision_recall.value()},
            {"confusion_matrix", confusion_matrix.value()},
            {"auc", auc.value()},
            {"perplexity", perplexity.value()},
            {"mean_absolute_error", mean_absolute_error.value()},
            {"mean_squared_error", mean_squared_error.value()},
            {"r_squared", r_squared.value()}};
  }
};

void check_same(const std::vector<std::pair<std::string, double>>& found, const std::vector<std::pair<std::string, double>>& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(found[i].first);
    CHECK(found[i].second == expected[i].second);  // false for NaN
  }
}

}  // namespace

TEST_CASE("the state of every, at_end and a function with fetched values is saved and restored", "[training][function_hooks]") {
  const auto way = GENERATE(session_way::blocking, session_way::awaited);
  struct counts {
    std::int64_t timed = 0;
    std::int64_t ended = 0;
    std::int64_t fetched = 0;
    bool operator==(const counts&) const = default;
  };
  const temporary_directory directory;
  const auto six_steps = [&] {
    counts all;
    mixing_model model;
    auto options = saving_in(directory.path(), save_steps);
    const auto clock = std::make_shared<sw::manual_clock>();
    options.clock = clock;
    auto source = shuffled(8, 1);
    train(way, model, options, source, 0, ticking_hook{clock, 10s},
          sw::every(
              30s, [&] { ++all.timed; }, counted_as("timed", all.timed)),
          sw::every_n_steps(
              2, [&](std::uint64_t mixed) { all.fetched += mixed == model.mixed ? 1 : 100; }, sw::fetch(&mixing_model::mixed),
              counted_as("fetched", all.fetched)),
          sw::at_end([&] { ++all.ended; }, counted_as("ended", all.ended)), sw::stop_at_step_hook{{.num_steps = 6}});
    return all;
  };
  CHECK(six_steps() == counts{2, 1, 3});
  CHECK(six_steps() == counts{4, 2, 6});
}

TEST_CASE("every_n_steps calls after the same steps if the run is resumed at a step that is not a multiple", "[training][function_hooks]") {
  const auto way = GENERATE(session_way::blocking, session_way::awaited);
  const auto calls_of = [&](const std::vector<std::int64_t>& ends) {
    const temporary_directory directory;
    std::vector<std::int64_t> calls;
    for (const auto end : ends) {
      mixing_model model;
      auto source = shuffled(8, 1);
      train(way, model, saving_in(directory.path(), save_steps), source, 0,
            sw::every_n_steps(4, [&](std::int64_t step) { calls.push_back(step); }), sw::stop_at_step(end));
    }
    return calls;
  };
  const auto expected = calls_of({13});
  CHECK(expected == std::vector<std::int64_t>{4, 8, 12});
  for (std::int64_t end = 1; end < 13; ++end) {
    CAPTURE(end);
    CHECK(calls_of({end, 13}) == expected);
  }
}

TEST_CASE("a resumed run has the values, the step and the number of its last evaluation before the first step",
          "[training][evaluate_every]") {
  const temporary_directory directory;
  mixing_model model;
  mixing_model other;
  const bool is_beside = GENERATE(false, true);
  const auto mixed_of = [](const mixing_model& now) { return static_cast<double>(now.mixed % 1000); };
  const auto metric = sw::measure("mixed", [](double value) { return value; });
  struct evaluation {
    std::optional<double> value;
    std::int64_t step;
    std::int64_t count;
    bool operator==(const evaluation&) const = default;
  };
  const auto train_with = [&](const auto& tested, std::int64_t steps, evaluation& before) {
    auto session =
        sw::monitored_training_session(model, saving_in(directory.path(), save_steps), tested, sw::stop_at_step_hook{{.num_steps = steps}});
    const auto now = [&] {
      const auto watched = tested.value("mixed");
      return evaluation{watched.value(), watched.step(), watched.count()};
    };
    before = now();
    auto source = shuffled(23, 5);
    session.run_all(source);
    const auto after = now();
    session.close();
    return after;
  };
  const auto run = [&](std::int64_t steps, evaluation& before) {
    return is_beside ? train_with(sw::evaluate_every(3, sw::beside(other), mixed_of, metric), steps, before)
                     : train_with(sw::evaluate_every(3, mixed_of, metric), steps, before);
  };
  evaluation before;
  const auto after = run(8, before);
  CHECK(before.count == 0);
  CHECK(after.step == (is_beside ? 3 : 6));
  CHECK(after.count == (is_beside ? 1 : 2));
  const auto later = run(8, before);
  CHECK(before == after);
  CHECK(later.step == (is_beside ? 12 : 15));
  CHECK(later.count == (is_beside ? 4 : 5));
}

TEST_CASE("a run over record files resumes at its record, and warns if a file has grown", "[training][record_files]") {
  const temporary_directory files;
  const auto texts = records_of([](std::size_t i) { return i * 7 % 5; });
  write_file_text(files / "a", framed({texts.begin(), texts.begin() + 5}));
  write_file_text(files / "b", framed({texts.begin() + 5, texts.end()}));
  const auto source = [&] { return data::record_files({.paths = {files / "a", files / "b"}, .epochs = std::nullopt}); };
  check_resumed_and_grown<byte_model>(source, [&] { write_file_text(files / "b", framed({texts.begin() + 4, texts.end()})); });
}

TEST_CASE("a shuffled run over mapped records resumes at its batch, and warns if a file has grown", "[training][mapped_records]") {
  const temporary_directory files;
  std::string all;
  for (const auto& text : records_of([](std::size_t) { return 3; })) { all += text; }
  write_file_text(files / "a", all);
  const auto source = [&] {
    return data::shuffled_batches(data::mapped_records({.paths = {files / "a"}, .record_size = 3}), {.batch_size = 5, .seed = 3});
  };
  check_resumed_and_grown<mapped_model>(source, [&] { write_file_text(files / "a", all + "new"); });
}

TEST_CASE("every metric in a checkpoint has the same value in a new object, and continues in the same way", "[training][metrics]") {
  const auto train_to = [](const std::string& directory, std::uint64_t count) {
    measured_model model;
    auto session = sw::monitored_training_session(model, saving_in(directory, save_steps));
    const auto restored = model.values();
    session.run_all(data::counter({.count = count}));
    session.close();
    return std::pair(restored, model.values());
  };
  const temporary_directory whole;
  const temporary_directory parts;
  const auto at_once = train_to(whole.path(), 40).second;
  const auto first = train_to(parts.path(), 17).second;
  const auto [restored, last] = train_to(parts.path(), 40);
  check_same(restored, first);
  check_same(last, at_once);
}

// ---- stops

namespace {

/// What one start of a program has done.
struct one_start {
  std::int64_t steps = 0;
  std::int64_t global_step = 0;
  std::uint64_t mixed = 0;
  sw::stop_cause cause = sw::stop_cause::none;
  std::string text;

  friend bool operator==(const one_start&, const one_start&) = default;
};

/// The body of a loop. The second argument requests a stop.
using loop_body = std::function<void(std::int64_t step, const std::function<void(std::string)>& request_stop)>;
void no_body(std::int64_t /*step*/, const std::function<void(std::string)>& /*request_stop*/) {}

template<class Source>
struct awaited_loop {
  Source& source;
  const loop_body& body;
  std::int64_t& steps;

  boost::asio::awaitable<void> operator()(auto& session) {
    co_await session.async_start();
    const std::function<void(std::string)> request_stop = [&](std::string why) { session.request_stop(std::move(why)); };
    for (;;) {
      const auto step = co_await session.async_next(source);
      if (!step) { break; }
      ++steps;
      body(step->global_step, request_stop);
    }
  }
};

template<class... Hooks>
one_start start(session_way way, const sw::training_options& options, const loop_body& body, Hooks... hooks) {
  mixing_model model;
  auto source = shuffled(23, 5);
  one_start done;
  const auto note_end = [&](auto& session) {
    done.global_step = session.global_step();
    done.mixed = model.mixed;
    done.cause = session.stop_reason().cause;
    done.text = session.stop_reason().text;
  };
  if (way == session_way::blocking) {
    auto session = sw::monitored_training_session(model, options, std::move(hooks)...);
    const std::function<void(std::string)> request_stop = [&](std::string why) { session.request_stop(std::move(why)); };
    for (const auto& step : session.steps(source)) {
      ++done.steps;
      body(step.global_step, request_stop);
    }
    session.close();
    note_end(session);
    return done;
  }
  auto session = sw::monitored_training_session(sw::defer_start, model, options, std::move(hooks)...);
  awaited_loop<decltype(source)> loop{source, body, done.steps};
  boost::asio::io_context context;
  auto finished = boost::asio::co_spawn(context, sw::async_with(session, loop), boost::asio::use_future);
  context.run();
  finished.get();
  note_end(session);
  return done;
}

/// Requests a stop after step `at`.
struct stopping_at {
  std::int64_t at;
  void after_run(auto& context, const auto&) const {
    if (context.global_step() == at) { context.request_stop("a criterion"); }
  }
};

/// Fails once after step `at`, with a failure that a recovery overcomes.
struct failing_at {
  static constexpr auto phase = sw::hook_phase::guard;
  std::int64_t at;
  void after_run(auto& context, const auto&) {
    if (context.global_step() != at) { return; }
    at = -1;
    throw sw::aborted_error("once");
  }
};

/// Returns the text of the stop in the checkpoint of `step`. Empty if it contains none.
std::string stop_in_checkpoint(const temporary_directory& directory, std::int64_t step) {
  const sw::checkpoint_reader reader(directory / ("model.ckpt-" + std::to_string(step)));
  if (!reader.contains("stepwell/stop/text")) { return {}; }
  return std::string(reader.read("stepwell/stop/text").strings().front());
}

}  // namespace

TEST_CASE("a stop that a hook or the body of the loop requests is in the checkpoint of its step, and a restart does no step",
          "[training][stop]") {
  const auto way = GENERATE(session_way::blocking, session_way::awaited);
  const bool is_by_hook = GENERATE(true, false);
  const std::int64_t at = GENERATE(5, 7);  // the period saves step 5 itself
  CAPTURE(way, is_by_hook, at);
  const temporary_directory directory;
  const log_capture log;
  auto options = saving_in(directory.path());
  const loop_body body = [&](std::int64_t step, const auto& request_stop) {
    if (!is_by_hook && step == at) { request_stop("a criterion"); }
  };
  const stopping_at hook{is_by_hook ? at : -1};
  const auto first = start(way, options, body, hook, sw::stop_at_step(20));
  CHECK(first == one_start{at, at, first.mixed, sw::stop_cause::requested, "a criterion"});
  CHECK(stop_in_checkpoint(directory, at) == "a criterion");

  auto again = start(way, options, body, hook, sw::stop_at_step(20));
  CHECK(again.steps == 0);
  again.steps = first.steps;
  CHECK(again == first);
  CHECK(
      log.contains(sw::log_level::info, "contains a stop, which was requested after its last step: a criterion; no further step is done"));
  const auto ended = sw::run_ended(directory.path());
  REQUIRE(ended);
  CHECK(ended->how == sw::session_ending::finished);
  CHECK(ended->why.text == "a criterion");

  options.resume_after_stop = true;
  const auto further = start(way, options, no_body, sw::stop_at_step(20));
  CHECK(further.steps == 20 - at);
  CHECK(further.cause == sw::stop_cause::last_step);
  CHECK(stop_in_checkpoint(directory, 20).empty());
  CHECK(log.contains(sw::log_level::info, "the training goes on, because resume_after_stop is set"));
}

TEST_CASE("a stop by the surroundings is in no checkpoint, and a restart continues to the end of a training without a stop",
          "[training][stop]") {
  const auto way = GENERATE(session_way::blocking, session_way::awaited);
  const std::string by = GENERATE("signal", "stop token", "time limit");
  CAPTURE(way, by);
  const temporary_directory directory;
  const temporary_directory other;
  const log_capture log;
  const auto undisturbed = start(way, saving_in(other.path()), no_body, sw::stop_at_step(20));
  auto options = saving_in(directory.path());
  std::stop_source stop;
  options.clock = std::make_shared<sw::manual_clock>();
  options.stop_on = {SIGURG};
  options.stop_token = stop.get_token();
  const ticking_hook ticking{std::static_pointer_cast<sw::manual_clock>(options.clock), by == "time limit" ? 1s : 0s};
  const auto first = start(
      way, options,
      [&](std::int64_t step, const auto& /*request_stop*/) {
        if (by == "stop token" && step == 5) { stop.request_stop(); }
      },
      ticking, sw::time_limit_hook{std::chrono::seconds(5)}, signalling_hook{by == "signal" ? 5 : -1}, sw::stop_at_step(20));
  CHECK(first.global_step == 5);
  CHECK(stop_in_checkpoint(directory, 5).empty());
  options.stop_token = {};
  auto second = start(way, options, no_body, sw::stop_at_step(20));
  CHECK(second.steps == 15);
  second.steps = undisturbed.steps;
  CHECK(second == undisturbed);
}

TEST_CASE("a criterion that follows from the restored state is evaluated again, and is in no checkpoint", "[training][stop]") {
  const auto way = GENERATE(session_way::blocking, session_way::awaited);
  const temporary_directory directory;
  const log_capture log;
  const auto options = saving_in(directory.path());
  const auto with_patience = [&](std::int64_t patience) {
    return start(way, options, no_body, sw::stop_at_step(30),
                 sw::early_stopping_hook{{.patience = patience}, [](const mixing_model& /*model*/) { return 1.0; }});
  };
  const auto first = with_patience(4);
  CHECK(first.global_step == 5);
  CHECK(first.cause == sw::stop_cause::no_progress);
  CHECK(stop_in_checkpoint(directory, 5).empty());
  CHECK(with_patience(4).steps == 0);
  CHECK(with_patience(6).steps == 2);  // the criterion was changed
}

TEST_CASE("a training that stop_when ended does no step at a restart, and continues if its predicate was changed", "[training][stop]") {
  const auto way = GENERATE(session_way::blocking, session_way::awaited);
  const std::int64_t at = GENERATE(5, 7);  // the period saves step 5 itself
  const temporary_directory directory;
  const log_capture log;
  const auto until = [&](std::int64_t step) {
    return start(way, saving_in(directory.path()), no_body, sw::stop_when([step](std::int64_t done) { return done >= step; }, "far enough"),
                 sw::stop_at_step(20));
  };
  const auto first = until(at);
  CHECK(first == one_start{at, at, first.mixed, sw::stop_cause::criterion, "far enough"});
  CHECK(stop_in_checkpoint(directory, at).empty());
  const auto ended = sw::run_ended(directory.path());
  REQUIRE(ended);
  CHECK(ended->how == sw::session_ending::finished);
  CHECK(ended->why.cause == sw::stop_cause::criterion);

  auto again = until(at);
  CHECK(again.steps == 0);
  again.steps = first.steps;
  CHECK(again == first);
  CHECK(until(at + 3).steps == 3);
  CHECK(until(30).cause == sw::stop_cause::last_step);
}

TEST_CASE("stop_when evaluates its predicate again after a recovery, and ends where an undisturbed training ends",
          "[training][stop][recovery]") {
  const auto way = GENERATE(session_way::blocking, session_way::awaited);
  const std::int64_t failing = GENERATE(6, 8);  // step 8: the step that meets the criterion
  const temporary_directory directory;
  const temporary_directory other;
  const log_capture log;
  const auto run = [&](const temporary_directory& in, std::int64_t fails) {
    auto options = saving_in(in.path());
    options.retry.initial_backoff = 0;
    return start(way, options, no_body, sw::stop_when([](std::int64_t done) { return done == 8; }), failing_at{fails},
                 sw::stop_at_step(20));
  };
  const auto undisturbed = run(other, -1);
  CHECK(undisturbed.global_step == 8);
  CHECK(undisturbed.text == "the criterion of stop_when is met");
  auto recovered = run(directory, failing);
  recovered.steps = undisturbed.steps;
  CHECK(recovered == undisturbed);
}

TEST_CASE("a criterion that holds after the step of a signal is not lost", "[training][stop][signals]") {
  const auto way = GENERATE(session_way::blocking, session_way::awaited);
  const temporary_directory directory;
  const log_capture log;
  auto options = saving_in(directory.path());
  options.stop_on = {SIGURG};
  const bool is_by_hook = GENERATE(true, false);
  const loop_body body = [&](std::int64_t step, const auto& request_stop) {
    if (!is_by_hook && step == 5) { request_stop("a criterion"); }
  };
  const auto first = start(way, options, body, signalling_hook{5}, stopping_at{is_by_hook ? 5 : -1}, sw::stop_at_step(20));
  CHECK(first.cause == sw::stop_cause::signal);
  CHECK(first.global_step == 5);
  CHECK(stop_in_checkpoint(directory, 5) == "a criterion");  // the signal has saved step 5 before the body
  const auto second = start(way, options, body, signalling_hook{5}, stopping_at{is_by_hook ? 5 : -1}, sw::stop_at_step(20));
  CHECK(second == one_start{0, 5, first.mixed, sw::stop_cause::requested, "a criterion"});
}

TEST_CASE("no checkpoint of a step is committed before the body has handled the step, and none if the body fails", "[training][stop]") {
  const auto way = GENERATE(session_way::blocking, session_way::awaited);
  const temporary_directory directory;
  const log_capture log;
  auto options = saving_in(directory.path(), 1);
  options.saves.saver.max_to_keep = sw::none;
  const loop_body failing = [](std::int64_t step, const auto& /*request_stop*/) {
    if (step == 3) { throw std::runtime_error("the body"); }
  };
  CHECK_THROWS_WITH(start(way, options, failing, sw::stop_at_step(20)), "the body");
  CHECK(sw::step_of_checkpoint(sw::latest_checkpoint(directory.path()).value()) == 2);  // all saves have ended
  std::vector<std::int64_t> handled;
  const loop_body stopping = [&](std::int64_t step, const auto& request_stop) {
    handled.push_back(step);
    if (step == 3) { request_stop("a criterion"); }
  };
  CHECK(start(way, options, stopping, sw::stop_at_step(20)).global_step == 3);
  CHECK(handled == std::vector<std::int64_t>{3});  // the step is done again, and its body decides
  CHECK(stop_in_checkpoint(directory, 3) == "a criterion");
}

TEST_CASE("a step that is saved already is saved again with a stop that comes later", "[training][stop]") {
  const temporary_directory directory;
  const log_capture log;
  mixing_model model;
  auto source = shuffled(23, 5);
  auto session = sw::monitored_training_session(model, saving_in(directory.path(), 100), sw::stop_at_step(20));
  for (const auto& step : session.steps(source)) {
    if (step.global_step != 7) { continue; }
    session.checkpoint_now();
    CHECK(stop_in_checkpoint(directory, 7).empty());
    session.request_stop("a criterion");
  }
  SECTION("by the close") { session.close(); }
  SECTION("by checkpoint_now") { CHECK(session.checkpoint_now() == 7); }
  CHECK(stop_in_checkpoint(directory, 7) == "a criterion");
}

TEST_CASE("a recovery keeps a requested stop, which the checkpoint of the restored step then contains", "[training][stop][recovery]") {
  const auto way = GENERATE(session_way::blocking, session_way::awaited);
  const temporary_directory directory;
  const log_capture log;
  const auto options = saving_in(directory.path());
  const auto first = start(way, options, no_body, stopping_at{7}, failing_at{7}, sw::stop_at_step(20));
  CHECK(first.global_step == 5);
  CHECK(first.text == "a criterion");
  CHECK(stop_in_checkpoint(directory, 5) == "a criterion");
  CHECK(start(way, options, no_body, sw::stop_at_step(20)).steps == 0);
}
