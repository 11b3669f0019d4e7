// SPDX-License-Identifier: Apache-2.0
#include "support/accumulating_model.hpp"
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"
#include "support/toy_model.hpp"
#include "unit/hooks/event_reading.hpp"

#include <stepwell/checkpoint/find_checkpoints.hpp>
#include <stepwell/format/events/detail/summary_values.hpp>
#include <stepwell/hooks/function_hooks.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/hooks/summary_saver_hook.hpp>
#include <stepwell/model/model_session.hpp>
#include <stepwell/training/evaluation.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sw = stepwell;
using namespace std::chrono_literals;
using sw::format::session_status;
using sw::test::accumulating_model;
using sw::test::adding_model;
using sw::test::counting_model;
using sw::test::events_in;
using sw::test::notes_in;
using sw::test::scalars_in;
using sw::test::tagged_in;
using sw::test::temporary_directory;

namespace {

/// A tensor type, recognised by its members.
struct pixels {
  using value_type = std::uint8_t;
  std::vector<std::uint8_t> values = {0, 64, 128, 255};
  std::vector<std::size_t> sizes = {2, 2};
  const std::uint8_t* data() const { return values.data(); }
  std::size_t size() const { return values.size(); }
  const std::vector<std::size_t>& shape() const { return sizes; }
};

/// A model with every kind of value that a summary accepts.
struct rich_model {
  struct result {
    float loss = 0;
    std::vector<double> gradients;
  };
  std::int64_t done = 0;
  std::vector<float> weights = {0.5f, 1.5f, 2.5f};
  pixels picture;
  std::string words = "**bold**";

  result step() {
    ++done;
    return {1.0f / static_cast<float>(done), {1, -1, 2}};
  }
  sw::variable_list variables() { return sw::variables({{"weights", weights}}); }
};

struct steps_written {
  std::vector<std::int64_t> steps;
  int asked = 0;
};

/// Returns the runs that wrote a summary, and the number of times the value was computed.
steps_written written(sw::summary_saver_options options, int runs, sw::clock::duration gap = 1s) {
  const temporary_directory directory;
  const auto clock = std::make_shared<sw::manual_clock>();
  counting_model model;
  int asked = 0;
  options.output_dir = directory.path();
  options.events.clock = clock;
  sw::monitored_session session(
      sw::training_options{.clock = clock}, model,
      sw::summary_saver_hook{std::move(options), sw::summary::scalar("asked", [&](const int&) { return ++asked; }),
                             sw::summary::scalar("count", [](const int& count) { return count; })});
  for (int i = 0; i < runs; ++i) {
    session.run();
    clock->advance(gap);
  }
  session.close();
  steps_written all{{}, asked};
  float expected = 0;
  for (const auto& [step, value] : scalars_in(directory.path(), "asked")) {
    CHECK(value == ++expected);
    all.steps.push_back(step);
  }
  for (const auto& [step, value] : scalars_in(directory.path(), "count")) { CHECK(value == static_cast<float>(step)); }
  CHECK(scalars_in(directory.path(), "count").size() == all.steps.size());
  return all;
}

/// Returns the scalars of a tag in the order in which they were written.
std::vector<std::pair<std::int64_t, float>> all_scalars_in(const std::string& directory, const std::string& tag) {
  std::vector<std::pair<std::int64_t, float>> found;
  for (const auto& [step, value] : tagged_in(directory, tag)) { found.emplace_back(step, std::get<float>(value.value)); }
  return found;
}

/// A model whose results can only be moved.
struct moving_model {
  struct result {
    std::unique_ptr<int> held;
    int number() const { return *held; }
  };
  int steps = 0;
  result step() { return {std::make_unique<int>(++steps)}; }
  sw::variable_list variables() { return sw::variables({{"steps", steps}}); }
};

/// A model whose results claim to be copyable.
struct listing_model {
  struct result {
    std::vector<std::unique_ptr<int>> held;
    int number() const { return *held.front(); }
  };
  int steps = 0;
  result step() {
    result made;
    made.held.push_back(std::make_unique<int>(++steps));
    return made;
  }
  sw::variable_list variables() { return sw::variables({{"steps", steps}}); }
};

/// A model that returns a result in every second run.
struct pausing_model {
  struct result {
    double loss = 0;
  };
  int runs = 0;
  std::shared_ptr<result> step() { return ++runs % 2 == 1 ? std::make_shared<result>(result{0.5 * runs}) : nullptr; }
  sw::variable_list variables() { return sw::variables({{"runs", runs}}); }
};

using steps = std::vector<std::int64_t>;
using note = std::pair<std::int64_t, std::string>;

}  // namespace

template<>
inline constexpr bool sw::can_keep_result<listing_model::result> = false;

TEST_CASE("HOOK-SUM-1, D-8 a directory or a writer, and a period, must be given", "[hooks][summary_saver]") {
  const auto op = sw::summary::scalar("x", [](const int& count) { return count; });
  counting_model model;
  CHECK_THROWS_AS(sw::monitored_session(model, sw::summary_saver_hook{sw::summary_saver_options{.save_steps = 1}, op}),
                  sw::invalid_argument_error);
  CHECK_THROWS_AS((sw::summary_saver_hook{sw::summary_saver_options{.output_dir = "x", .save_steps = sw::none}, op}),
                  sw::invalid_argument_error);
  CHECK_THROWS_AS((sw::summary_saver_hook{sw::summary_saver_options{.output_dir = "x", .save_steps = 0, .save_secs = 0}, op}),
                  sw::invalid_argument_error);
  sw::test::log_capture log;
  CHECK(written({.save_steps = 1, .save_secs = 3}, 5).steps == steps{1, 4});  // the seconds are used (decision D-8)
  CHECK(log.contains(sw::log_level::warning, "both save_secs and save_steps"));
}

TEST_CASE("HOOK-SUM-4 START stands before the first values, at the first step of a fresh run", "[hooks][summary_saver]") {
  const temporary_directory directory;
  counting_model model;
  sw::monitored_session session(model, sw::summary_saver_hook{sw::summary_saver_options{.output_dir = directory.path(), .save_steps = 1},
                                                              sw::summary::scalar("count", [](const int& count) { return count; })});
  session.run();
  session.run();
  session.close();
  CHECK(notes_in(directory.path(), session_status::start) == std::vector<note>{{1, ""}});
  const auto all = events_in(directory.path());
  REQUIRE(all.size() == 4);
  CHECK(std::holds_alternative<sw::format::file_version>(all[0].what));
  CHECK(std::holds_alternative<sw::format::session_log>(all[1].what));
  CHECK(all[2].step == 1);
  CHECK(all[3].step == 2);
}

TEST_CASE("HOOK-SUM-4, D-5 a run that goes on says START with the first step to come", "[hooks][summary_saver]") {
  const temporary_directory directory;
  for (int round = 0; round < 2; ++round) {
    adding_model model;
    auto session = sw::monitored_training_session(
        model, {.checkpoint_dir = directory.path(), .saves = {.save_steps = 3}, .summaries = {.save_steps = 1}},
        sw::summaries([](sw::summary::writer& out, const auto& result, const auto&, std::int64_t step) {
          out.add_scalar("loss", result.loss, step);
        }));
    for (int i = 0; i < 3; ++i) { session.run(std::int64_t{1}); }
    session.close();
  }
  CHECK(notes_in(directory.path(), session_status::start) == std::vector<note>{{1, ""}, {4, ""}});
  CHECK(scalars_in(directory.path(), "loss").size() == 6);
  CHECK(sw::test::event_files_in(directory.path()) == 2);
}

TEST_CASE("HOOK-SUM-3 HOOK-SUM-5 values are asked for in the runs that write, and only there", "[hooks][summary_saver]") {
  const auto every_eight = written({.save_steps = 8}, 30);
  CHECK(every_eight.steps == steps{1, 9, 17, 25});
  CHECK(every_eight.asked == 4);
  CHECK(written({.save_secs = 0.5}, 4, 500ms).steps == steps{1, 2, 3, 4});
  CHECK(written({.save_secs = 9}, 8, 3100ms).steps == steps{1, 4, 7});
  CHECK(written({}, 201).steps == steps{1, 101, 201});  // the default is every 100 steps
}

TEST_CASE("with at_end, the close writes the values of the last step, unless they are written already", "[hooks][summary_saver]") {
  const auto last = written({.save_steps = 8, .at_end = true}, 11);
  CHECK(last.steps == steps{1, 9, 11});
  CHECK(last.asked == 3);
  CHECK(written({.save_steps = 8, .at_end = true}, 9).steps == steps{1, 9});
  CHECK(written({.save_steps = 8, .at_end = true}, 0).steps.empty());
}

TEST_CASE("a step that is known to be the last one writes all values in its run", "[hooks][summary_saver]") {
  const temporary_directory directory;
  const auto train = [&](const std::string& name, std::optional<bool> at_end, int runs) {
    counting_model model;
    int asked = 0;
    const sw::summary_saver_options options{.output_dir = directory / name, .save_steps = 10, .at_end = at_end};
    sw::monitored_session session(
        model,
        sw::summary_saver_hook{options, sw::summary::scalar("count", [&](const int& count) { return ++asked, count; }),
                               sw::summary::histogram("counts", [](const int& count) { return std::vector<double>{0.5 * count}; })},
        sw::stop_at_step(4));
    for (int i = 0; i < runs; ++i) { session.run(); }
    session.close();
    CHECK(tagged_in(directory / name, "counts").size() == static_cast<std::size_t>(asked));
    return scalars_in(directory / name, "count");
  };
  using values = std::map<std::int64_t, float>;
  CHECK(train("default", std::nullopt, 4) == values{{1, 1}, {4, 4}});
  CHECK(train("on", true, 4) == values{{1, 1}, {4, 4}});
  CHECK(train("off", false, 4) == values{{1, 1}});
  CHECK(train("stopped before", std::nullopt, 3) == values{{1, 1}});  // the values are computed, and are not kept
}

TEST_CASE("a step of several runs has one value, also if it is known to be the last one", "[hooks][summary_saver]") {
  const temporary_directory directory;
  accumulating_model model;
  const sw::summary_saver_options options{.output_dir = directory.path(), .save_steps = 100};
  sw::monitored_session session(model,
                                sw::summary_saver_hook{options, sw::summary::scalar("loss", &accumulating_model::result::loss),
                                                       sw::summary::scalar("computed", [](const auto& one) { return one.loss; })},
                                sw::stop_at_step(3));
  session.run_all();
  session.close();
  using values = std::vector<std::pair<std::int64_t, float>>;
  CHECK(all_scalars_in(directory.path(), "loss") == values{{0, 1}, {3, 12}});
  CHECK(all_scalars_in(directory.path(), "computed") == values{{0, 1}});
}

TEST_CASE("the close writes no second value of a step", "[hooks][summary_saver]") {
  const temporary_directory directory;
  const auto at_end = GENERATE(std::optional<bool>(), std::optional(true));
  const sw::summary_saver_options options{.output_dir = directory.path(), .save_steps = 100, .at_end = at_end};
  using values = std::vector<std::pair<std::int64_t, float>>;
  SECTION("in an evaluation, whose runs do no step") {
    adding_model model;
    const temporary_directory run;
    {
      auto session = sw::monitored_training_session(model, {.checkpoint_dir = run.path()});
      session.run(std::int64_t{1});
      session.close();
    }
    sw::evaluate_once(model, *sw::latest_checkpoint(run.path()), std::vector<std::int64_t>{10, 20, 30}, {},
                      sw::summary_saver_hook{options, sw::summary::scalar("loss", &adding_model::result::loss)});
    CHECK(all_scalars_in(directory.path(), "loss") == values{{1, 11}});
  }
  SECTION("if a step has several runs, and the data end between them") {
    accumulating_model model;
    sw::monitored_session session(model, sw::summary_saver_hook{options, sw::summary::scalar("loss", &accumulating_model::result::loss)});
    for (int i = 0; i < 3; ++i) { session.run(); }
    session.close();
    CHECK(all_scalars_in(directory.path(), "loss") == values{{0, 1}});
  }
}

TEST_CASE("a run whose values are not due follows no pointer to its result", "[hooks][summary_saver]") {
  const temporary_directory directory;
  pausing_model model;
  sw::monitored_session session(model, sw::summary_saver_hook{{.output_dir = directory.path(), .save_steps = 2},
                                                              sw::summary::scalar("loss", &pausing_model::result::loss)});
  for (int i = 0; i < 4; ++i) { session.run(); }
  session.close();
  CHECK(scalars_in(directory.path(), "loss") == std::map<std::int64_t, float>{{1, 0.5}, {3, 1.5}});
}

TEST_CASE("the close writes the numbers of the last step that are members of the result or of the model", "[hooks][summary_saver]") {
  const temporary_directory directory;
  const auto train = [&](const std::string& name, std::optional<bool> at_end) {
    adding_model model;
    auto session = sw::monitored_training_session(
        model, {.summary_dir = directory / name, .summaries = {.save_steps = 100, .at_end = at_end}},
        sw::summaries(sw::summary::scalar("loss", &adding_model::result::loss), sw::summary::scalar("sum", &adding_model::sum),
                      sw::summary::scalar("computed", [](const adding_model::result& one) { return one.loss; })));
    session.run_all(std::vector<std::int64_t>{1, 2, 3});
    session.close();
    using values = std::map<std::int64_t, float>;
    const auto last = [](bool is_written) { return is_written ? values{{1, 1}, {3, 6}} : values{{1, 1}}; };
    CHECK(scalars_in(directory / name, "loss") == last(at_end != false));
    CHECK(scalars_in(directory / name, "sum") == last(at_end != false));
    CHECK(scalars_in(directory / name, "computed") == last(at_end == true));
  };
  train("default", std::nullopt);
  train("on", true);
  train("off", false);
}

TEST_CASE("the close writes numbers of all types, constant ones, too", "[hooks][summary_saver]") {
  struct base {
    bool is_good = false;
  };
  struct result : base {
    const double loss = 0;
    std::uint8_t small = 0;
    long double large = 0;
  };
  struct typed_model {
    int steps = 0;
    result step() {
      ++steps;
      return {{steps == 2}, 0.5 * steps, static_cast<std::uint8_t>(steps), 1.5L * steps};
    }
    sw::variable_list variables() { return sw::variables({{"steps", steps}}); }
  };
  const temporary_directory directory;
  typed_model model;
  sw::monitored_session session(model, sw::summary_saver_hook{{.output_dir = directory.path()},
                                                              sw::summary::scalar("good", &result::is_good),
                                                              sw::summary::scalar("loss", &result::loss),
                                                              sw::summary::scalar("small", &result::small),
                                                              sw::summary::scalar("large", &result::large)});
  session.run();
  session.run();
  session.close();
  using values = std::map<std::int64_t, float>;
  CHECK(scalars_in(directory.path(), "good") == values{{1, 0}, {2, 1}});
  CHECK(scalars_in(directory.path(), "loss") == values{{1, 0.5}, {2, 1}});
  CHECK(scalars_in(directory.path(), "small") == values{{1, 1}, {2, 2}});
  CHECK(scalars_in(directory.path(), "large") == values{{1, 1.5}, {2, 3}});
}

TEST_CASE("the close does not write the values of a step that a rollback has undone", "[hooks][summary_saver]") {
  const temporary_directory directory;
  const auto at_end = GENERATE(std::optional<bool>(), std::optional(true));
  const auto stop_in = GENERATE(2, 3);  // the last run, or the one that is rolled back
  const sw::test::log_capture log;
  adding_model model;
  auto session = sw::monitored_training_session(
      model, {.checkpoint_dir = directory.path(), .saves = {.save_steps = 100}, .summaries = {.save_steps = 100, .at_end = at_end}},
      sw::summaries(sw::summary::scalar("loss", &adding_model::result::loss)), sw::every_n_steps(1, [&](auto& context) {
        if (context.global_step() != stop_in) { return; }
        context.request_stop("enough");
        if (stop_in == 3) { context.request_rollback({.why = "a test"}); }
      }));
  session.run_all(std::vector<std::int64_t>{1, 2, 3});
  session.close();
  CHECK(session.global_step() == (stop_in == 3 ? 0 : 2));
  using values = std::map<std::int64_t, float>;
  CHECK(scalars_in(directory.path(), "loss") == (stop_in == 3 ? values{{1, 1}} : values{{1, 1}, {2, 3}}));
}

TEST_CASE("at_end is an error if the result of a step cannot be copied", "[hooks][summary_saver]") {
  const temporary_directory directory;
  const auto train = [&](auto model, const sw::summary_saver_options& options) {
    using result = decltype(model)::result;
    sw::monitored_session session(
        model, sw::summary_saver_hook{options, sw::summary::scalar("number", [](const result& one) { return one.number(); })});
    session.run();  // its values are due
    session.run();
    session.close();
  };
  const sw::summary_saver_options at_end{.output_dir = directory.path(), .save_steps = 3, .at_end = true};
  const auto refusal = ContainsSubstring("this session has results that cannot be copied; set at_end = false");
  CHECK_THROWS_WITH(train(moving_model(), at_end), refusal);
  CHECK_THROWS_WITH(train(listing_model(), at_end), refusal);
  CHECK_NOTHROW(train(listing_model(), {.output_dir = directory.path()}));
}

TEST_CASE("hooks that share an event file say START once, before the first values of any of them", "[hooks][summary_saver]") {
  const temporary_directory directory;
  for (const int runs : {3, 2}) {  // the second session continues the first one
    adding_model model;
    auto session = sw::monitored_training_session(
        model, {.checkpoint_dir = directory.path(), .saves = {.save_steps = 100}},
        sw::summary_saver_hook{{.output_dir = directory.path(), .save_steps = 1}, sw::summary::scalar("a", &adding_model::sum)},
        sw::summary_saver_hook{{.output_dir = directory.path(), .save_steps = 1}, sw::summary::scalar("b", &adding_model::sum)});
    for (int i = 0; i < runs; ++i) { session.run(std::int64_t{1}); }
    session.close();
  }
  using note = std::pair<std::int64_t, std::string>;
  CHECK(notes_in(directory.path(), session_status::start) == std::vector<note>{{1, ""}, {4, ""}});
  std::int64_t started = 0;
  for (const auto& event : events_in(directory.path())) {
    const auto* log = std::get_if<sw::format::session_log>(&event.what);
    if (log != nullptr && log->status == session_status::start) { started = event.step; }
    if (std::holds_alternative<sw::format::summary>(event.what)) {
      CHECK(started >= 1);
      CHECK(event.step >= started);
    }
  }
}

TEST_CASE("HOOK-SUM-8 the first run always writes, wherever it starts, and a failed one does not count", "[hooks][summary_saver]") {
  const temporary_directory directory;
  const auto start = GENERATE(0, 3);
  adding_model model;
  {
    auto session = sw::monitored_training_session(model, {.checkpoint_dir = directory / "run"});
    for (int i = 0; i < start; ++i) { session.run(std::int64_t{1}); }
    session.close();
  }
  auto session =
      sw::monitored_training_session(model, {.checkpoint_dir = directory / "run"},
                                     sw::summary_saver_hook{sw::summary_saver_options{.output_dir = directory / "events", .save_steps = 10},
                                                            sw::summary::scalar("loss", &adding_model::result::loss)});
  model.before = [](std::int64_t) { throw std::runtime_error("no step"); };
  CHECK_THROWS_AS(session.run(std::int64_t{1}), std::runtime_error);
  model.before = nullptr;
  for (int i = 0; i < 12; ++i) { session.run(std::int64_t{1}); }
  session.close();
  steps seen;
  for (const auto& [step, value] : scalars_in(directory / "events", "loss")) { seen.push_back(step); }
  CHECK(seen == steps{start + 1, start + 11, start + 12});  // the last one by the close
  CHECK(notes_in(directory / "events", session_status::start) == std::vector<note>{{start + 1, ""}});
}

TEST_CASE("HOOK-SUM scalars, histograms, images and text, by projection on result and model", "[hooks][summary_saver]") {
  const temporary_directory directory;
  rich_model model;
  sw::monitored_session session(
      model, sw::summary_saver_hook{sw::summary_saver_options{.output_dir = directory.path(), .save_steps = 2},
                                    sw::summary::scalar("loss", &rich_model::result::loss),
                                    sw::summary::histogram("gradients", &rich_model::result::gradients),
                                    sw::summary::histogram("weights", &rich_model::weights),
                                    sw::summary::image("picture", &rich_model::picture), sw::summary::text("words", &rich_model::words)});
  for (int i = 0; i < 3; ++i) { session.run(); }
  session.close();
  CHECK(scalars_in(directory.path(), "loss") == std::map<std::int64_t, float>{{1, 1.0f}, {3, 1.0f / 3}});
  const auto gradients = tagged_in(directory.path(), "gradients");
  REQUIRE(gradients.size() == 2);
  const auto& histogram = std::get<sw::format::histogram_value>(gradients[0].second.value);
  CHECK(histogram.min == -1);
  CHECK(histogram.max == 2);
  CHECK(histogram.num == 3);
  CHECK(histogram.sum_squares == 6);
  const auto weights = tagged_in(directory.path(), "weights");
  REQUIRE(weights.size() == 2);
  CHECK(std::get<sw::format::histogram_value>(weights[0].second.value).sum == 4.5);
  const auto pictures = tagged_in(directory.path(), "picture/image");
  REQUIRE(pictures.size() == 2);
  const auto& picture = std::get<sw::format::image_value>(pictures[0].second.value);
  CHECK(picture.width == 2);
  CHECK(picture.height == 2);
  CHECK(picture.encoded.starts_with("\x89PNG"));
  const auto texts = tagged_in(directory.path(), "words");
  REQUIRE(texts.size() == 2);
  REQUIRE(texts[0].second.metadata);
  CHECK(texts[0].second.metadata->plugin_name == "text");
  CHECK_FALSE(texts[1].second.metadata);  // only the first value of a tag has metadata
}

TEST_CASE("HOOK-SUM pictures and histograms may be tensors of ours, and views", "[hooks][summary_saver]") {
  struct painter {
    sw::tensor gray{sw::dtype::uint8, {2, 3}};
    sw::tensor colours{sw::dtype::float32, {2, 2, 3}};
    std::vector<float> pixels = {0, 0.5f, 1, 2};
    float step() { return 1; }
    [[nodiscard]] sw::tensor_view view() const { return {sw::dtype::float32, {2, 2}, std::as_bytes(std::span(pixels))}; }
    sw::variable_list variables() { return sw::variables({{"gray", gray}}); }
  };
  const temporary_directory directory;
  painter model;
  const auto view = [](const painter& all) { return all.view(); };
  sw::monitored_session session(
      model, sw::summary_saver_hook{sw::summary_saver_options{.output_dir = directory.path()}, sw::summary::image("gray", &painter::gray),
                                    sw::summary::image("colours", &painter::colours), sw::summary::image("view", view),
                                    sw::summary::histogram("values", &painter::colours), sw::summary::histogram("of_view", view)});
  session.run();
  session.close();
  const auto sizes = [&](const std::string& tag) {
    const auto found = tagged_in(directory.path(), tag);
    REQUIRE(found.size() == 1);
    const auto& picture = std::get<sw::format::image_value>(found[0].second.value);
    return std::vector<int>{picture.height, picture.width, picture.colorspace};
  };
  CHECK(sizes("gray/image") == std::vector<int>{2, 3, 1});
  CHECK(sizes("colours/image") == std::vector<int>{2, 2, 3});
  CHECK(sizes("view/image") == std::vector<int>{2, 2, 1});
  CHECK(std::get<sw::format::histogram_value>(tagged_in(directory.path(), "values")[0].second.value).num == 12);
  CHECK(std::get<sw::format::histogram_value>(tagged_in(directory.path(), "of_view")[0].second.value).max == 2);
}

TEST_CASE("an image may have its channels first, and floats of any range", "[hooks][summary_saver]") {
  struct painter {
    sw::tensor first{sw::dtype::float32, {2, 3, 2, 1}};  // two images, three channels, two rows, one column
    sw::tensor last{sw::dtype::float32, {2, 2, 1, 3}};
    float step() { return 1; }
    sw::variable_list variables() { return sw::variables({{"first", first}}); }
  };
  const temporary_directory directory;
  painter model;
  for (std::size_t image = 0; image < 2; ++image) {
    for (std::size_t channel = 0; channel < 3; ++channel) {
      for (std::size_t row = 0; row < 2; ++row) {
        const auto value = static_cast<float>(image * 6 + channel * 2 + row) / 12;
        model.first.as<float>()[(image * 3 + channel) * 2 + row] = value * 2 - 1;
        model.last.as<float>()[(image * 2 + row) * 3 + channel] = value;
      }
    }
  }
  sw::monitored_session session(
      model, sw::summary_saver_hook{sw::summary_saver_options{.output_dir = directory.path()},
                                    sw::summary::image("first", &painter::first, {.layout = sw::summary::image_layout::nchw, .black = -1}),
                                    sw::summary::image("last", &painter::last)});
  session.run();
  session.close();
  for (const auto* const image : {"/0/image", "/1/image"}) {
    const auto encoded = [&](const std::string& tag) {
      return std::get<sw::format::image_value>(tagged_in(directory.path(), tag + image).at(0).second.value).encoded;
    };
    CHECK(encoded("first") == encoded("last"));
  }
}

TEST_CASE("a plain array is an image if the options have its shape", "[hooks][summary_saver]") {
  struct painter {
    std::vector<float> floats{0, 1, 0.5F, 0.25F, 2, -1};
    std::array<std::uint8_t, 6> bytes{0, 255, 128, 64, 255, 0};
    std::uint8_t plain[6] = {0, 255, 128, 64, 255, 0};
    sw::tensor shaped{sw::dtype::uint8, {2, 3}};
    float step() { return 1; }
    sw::variable_list variables() { return sw::variables({{"floats", floats}}); }
  };
  const temporary_directory directory;
  painter model;
  std::ranges::copy(model.bytes, model.shaped.as<std::uint8_t>().begin());
  const auto span = [](const painter& all) { return std::as_bytes(std::span(all.bytes)); };
  const sw::summary::image_options shape{.shape = {2, 3}};
  sw::monitored_session session(
      model, sw::summary_saver_hook{
                 sw::summary_saver_options{.output_dir = directory.path()}, sw::summary::image("floats", &painter::floats, shape),
                 sw::summary::image("bytes", &painter::bytes, shape), sw::summary::image("plain", &painter::plain, shape),
                 sw::summary::image("span", span, shape), sw::summary::image("shaped", &painter::shaped),
                 sw::summary::image("two", &painter::bytes, {.shape = {2, 1, 3, 1}})});
  session.run();
  session.close();
  const auto encoded = [&](const std::string& tag) {
    return std::get<sw::format::image_value>(tagged_in(directory.path(), tag + "/image").at(0).second.value).encoded;
  };
  for (const auto* const tag : {"floats", "bytes", "plain", "span"}) { CHECK(encoded(tag) == encoded("shaped")); }
  CHECK(encoded("two/1") != encoded("two/0"));
  const auto message = [&](sw::summary::image_options options) -> std::string {
    sw::monitored_session other(model, sw::summary_saver_hook{sw::summary_saver_options{.output_dir = directory.path()},
                                                              sw::summary::image("floats", &painter::floats, std::move(options))});
    try {
      other.run();
      return "";
    } catch (const sw::invalid_argument_error& failure) { return failure.what(); }
  };
  CHECK_THAT(message({}), ContainsSubstring("float32 [6]; give its shape"));
  CHECK_THAT(message({.shape = {2, 2}}), ContainsSubstring("\"floats\": the option .shape is [2,2], but the value has 6 elements"));
  CHECK_THAT(message({.shape = {-2, -3}}), ContainsSubstring("has 6 elements"));
  CHECK_THAT(message({.shape = {6}}), ContainsSubstring("an image is"));
  CHECK_THAT(message({.shape = {838488366986797801, 22}}), ContainsSubstring("has 6 elements"));  // 6 in 64 bits
}

TEST_CASE("the tag of an image does not depend on the number of images in a batch", "[hooks][summary_saver]") {
  const temporary_directory directory;
  struct painter {
    std::int64_t count = 2;
    sw::tensor images{sw::dtype::uint8, {2, 1, 1, 1}};
    void step() { images = sw::tensor(sw::dtype::uint8, {count--, 1, 1, 1}); }
    sw::variable_list variables() { return {}; }
  };
  painter model;
  const auto read = [](const painter& from) -> const sw::tensor& { return from.images; };
  sw::monitored_session session(model, sw::summary_saver_hook{{.output_dir = directory.path(), .save_steps = 1},
                                                              sw::summary::image("one", read, {.max_outputs = 1}),
                                                              sw::summary::image("more", read)});
  session.run();  // a batch of two images
  session.run();  // a batch of one
  session.close();
  CHECK(tagged_in(directory.path(), "one/image").size() == 2);
  CHECK(tagged_in(directory.path(), "more/0/image").size() == 2);
  CHECK(tagged_in(directory.path(), "more/1/image").size() == 1);
}

TEST_CASE("an image whose black is not below its white is refused", "[hooks][summary_saver]") {
  const temporary_directory directory;
  rich_model model;
  sw::monitored_session session(model, sw::summary_saver_hook{sw::summary_saver_options{.output_dir = directory.path()},
                                                              sw::summary::image("picture", &rich_model::picture, {.black = 1})});
  CHECK_THROWS_AS(session.run(), sw::invalid_argument_error);
  const auto greatest = std::numeric_limits<float>::max();
  sw::monitored_session other(
      model, sw::summary_saver_hook{sw::summary_saver_options{.output_dir = directory.path()},
                                    sw::summary::image("picture", &rich_model::picture, {.black = -greatest, .white = greatest})});
  CHECK_THROWS_WITH(other.run(), ContainsSubstring("their difference finite"));
}

TEST_CASE("a summary that changes a variable is an error that names the variable, if the check is on", "[hooks][summary_saver]") {
  struct noisy {
    float weight = 1;
    std::shared_ptr<float> mean = std::make_shared<float>(0.0F);
    float step() { return weight; }
    sw::variable_list variables() { return sw::variables({{"weight", weight}, {"mean", *mean}}); }
  };
  const auto changes = [](const noisy& model) { return *model.mean += 1; };
  const temporary_directory directory;
  noisy model;
  const auto run = [&](bool check, auto projection) {
    auto session =
        sw::monitored_training_session(model, {.summary_dir = directory.path(), .summaries = {.save_steps = 1, .check_variables = check}},
                                       sw::summaries(sw::summary::scalar("mean", projection)));
    session.run();
    session.close();
  };
  CHECK_NOTHROW(run(false, changes));
  CHECK_NOTHROW(run(true, [](const noisy& now) { return *now.mean; }));
  CHECK_THROWS_WITH(run(true, changes), ContainsSubstring("the variable \"mean\" changed"));
}

TEST_CASE("HOOK-SUM an image of strings is refused with its type", "[hooks][summary_saver]") {
  struct writer_model {
    sw::tensor words{sw::dtype::string, {2, 2}};
    float sum = 0;
    float step() { return 1; }
    sw::variable_list variables() { return sw::variables({{"sum", sum}}); }
  };
  const temporary_directory directory;
  writer_model model;
  sw::monitored_session session(model, sw::summary_saver_hook{sw::summary_saver_options{.output_dir = directory.path()},
                                                              sw::summary::image("words", &writer_model::words)});
  CHECK_THROWS_AS(session.run(), sw::invalid_argument_error);
}

TEST_CASE("HOOK-SUM hyper-parameters are written once to a file", "[hooks][summary_saver]") {
  const temporary_directory directory;
  sw::test::log_capture log;
  const sw::format::hparam_map settings = {{"batch_size", 32}, {"optimiser", "adam"}, {"nesterov", false}};
  const sw::summary_saver_options options{.output_dir = directory.path(), .save_steps = 1, .hparams = settings};
  const auto op = sw::summary::scalar("count", [](const int& count) { return count; });
  counting_model model;
  sw::monitored_session session(model, sw::summary_saver_hook{options, op}, sw::summary_saver_hook{options, op});
  session.run();
  session.close();
  int found = 0;
  for (const auto& event : events_in(directory.path())) {
    const auto* values = std::get_if<sw::format::summary>(&event.what);
    if (values == nullptr || !values->values[0].metadata || values->values[0].metadata->plugin_name != "hparams") { continue; }
    const auto& content = values->values[0].metadata->plugin_content;
    const auto record = sw::format::decode_hparams(std::as_bytes(std::span(content)));
    REQUIRE(record.ok());
    if (const auto* start = std::get_if<sw::format::hparams_start>(&*record)) {
      CHECK(start->hparams == settings);
      ++found;
    }
  }
  CHECK(found == 1);
  CHECK(tagged_in(directory.path(), "_hparams_/session_end_info").size() == 1);
  CHECK(log.contains(sw::log_level::warning, "are already in its event file"));
}

TEST_CASE("HOOK-SUM-6 a writer of the caller is flushed at the end, not closed", "[hooks][summary_saver]") {
  const temporary_directory directory;
  const auto writer = std::make_shared<sw::summary::writer>(directory.path());
  counting_model model;
  sw::monitored_session session(model, sw::summary_saver_hook{sw::summary_saver_options{.writer = writer, .save_steps = 1},
                                                              sw::summary::scalar("count", [](const int& count) { return count; })});
  session.run();
  session.close();
  CHECK_FALSE(writer->is_closed());
  CHECK(scalars_in(directory.path(), "count").size() == 1);
}

TEST_CASE("HOOK-SUM a value that is no image is refused with its type", "[hooks][summary_saver]") {
  const temporary_directory directory;
  rich_model model;
  model.picture.sizes = {4};
  sw::monitored_session session(model, sw::summary_saver_hook{sw::summary_saver_options{.output_dir = directory.path()},
                                                              sw::summary::image("picture", &rich_model::picture)});
  try {
    session.run();
    FAIL("a vector was taken for a picture");
  } catch (const sw::invalid_argument_error& failure) {
    CHECK(std::string(failure.what()).find("an image is") != std::string::npos);
    CHECK(std::string(failure.what()).find("[4]") != std::string::npos);
  }
}

TEST_CASE("a summary_saver_hook without a directory uses that of its session", "[hooks][summary_saver]") {
  const temporary_directory directory;
  counting_model model;
  auto session = sw::monitored_training_session(
      model, {.checkpoint_dir = directory.path(), .saves = {.save_secs = sw::none}, .step_counter = {.every_n_steps = sw::none}},
      sw::summary_saver_hook{{.save_steps = 3, .hparams = sw::format::hparam_map{{"rate", 0.5}}},
                             sw::summary::scalar("count", [](const int& count) { return count; })});
  for (int i = 0; i < 5; ++i) { session.run(); }
  session.close();
  CHECK(scalars_in(directory.path(), "count") == std::map<std::int64_t, float>{{1, 1.0f}, {4, 4.0f}});
}

TEST_CASE("summaries are read in the order in which they are given", "[hooks][summary_saver]") {
  const temporary_directory directory;
  std::vector<int> order;
  const auto value = [&order](int number) { return [&order, number](const counting_model&) { return order.push_back(number), number; }; };
  counting_model model;
  sw::monitored_session session(model, sw::summary_saver_hook{{.output_dir = directory.path()},
                                                              sw::summary::scalar("1", value(1)),
                                                              sw::summary::scalar("2", value(2)),
                                                              sw::summary::scalar("3", value(3))});
  session.run();
  session.close();
  CHECK(order == std::vector{1, 2, 3});
}
