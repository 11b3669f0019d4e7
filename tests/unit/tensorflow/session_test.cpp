// SPDX-License-Identifier: Apache-2.0
//
// Sessions over the graph of the stub, which counts the runs of TensorFlow.
#include "stub.hpp"
#include "stub_graph.hpp"
#include "support/catch.hpp"
#include "support/event_oracle.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/checkpoint/checkpoint_reader.hpp>
#include <stepwell/checkpoint/find_checkpoints.hpp>
#include <stepwell/hooks/best_checkpoint_hook.hpp>
#include <stepwell/hooks/early_stopping_hook.hpp>
#include <stepwell/hooks/evaluate_every.hpp>
#include <stepwell/hooks/function_hooks.hpp>
#include <stepwell/hooks/global_step_waiter_hook.hpp>
#include <stepwell/hooks/logging_tensor_hook.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/progress_hook.hpp>
#include <stepwell/hooks/scheduled_hook.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/hooks/summary_saver_hook.hpp>
#include <stepwell/protocol/any_hook.hpp>
#include <stepwell/protocol/run_ending.hpp>
#include <stepwell/tensorflow/evaluation.hpp>
#include <stepwell/tensorflow/training.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sw = stepwell;
namespace test = stepwell::test;
namespace tf = stepwell::tensorflow;

namespace {

using options = sw::training_options;

/// Returns what the graph has under `name` in a run in which `value` is fed to it.
template<class Session, class Value>
tf::tensor fed_and_fetched(Session& session, const std::string& name, const Value& value) {
  auto [got] = session.run(sw::fetch(name), sw::feed(name, value));
  return std::move(got);
}

/// The graph of the stub, imported from a temporary file.
struct stub_graph {
  test::temporary_directory directory;
  std::string bytes;
  tf::graph graph;

  explicit stub_graph(const test::wire::MetaGraphDef& meta = test::stub_meta_graph())
      : bytes(meta.SerializeAsString()), graph(tf::graph::import_meta_graph(test::write_file(directory / "model.meta", bytes))) {
    ::stub_reset();
  }
  [[nodiscard]] std::string run_dir() const { return directory / "run"; }
};

/// Fetches `name` in every run.
struct fetching_hook {
  std::string name;
  auto before_run(auto& /*context*/) const { return sw::fetch(name); }
  void after_run(auto& /*context*/, const auto& values) const { static_cast<void>(values.value().template as<float>()); }
};

std::string content_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Returns w[0] after this many steps with x = 2 and rate = 0.125.
float trained(int steps) {
  float w = 1;
  for (int i = 0; i < steps; ++i) { w -= 0.125F * (w * 2 + 0.5F); }
  return w;
}

/// Returns w, fetched beside the steps.
std::vector<float> variable_of(auto& session) {
  return session.raw_session().run_apart({"w/Read"}).front().template as<std::vector<float>>();
}

}  // namespace

TEST_CASE("D-34: a step is one run of TensorFlow, whatever hooks fetch", "[tensorflow][session]") {
  const test::log_capture quiet;
  stub_graph made;
  SECTION("without hooks") {
    auto session = sw::monitored_training_session(made.graph);
    ::stub_reset();
    for (int i = 0; i < 10; ++i) { session.run(); }
    CHECK(::stub_runs() == 10);
    CHECK(session.global_step() == 10);
  }
  SECTION("with one hook") {
    auto session = sw::monitored_training_session(made.graph, {}, sw::nan_tensor_hook{"loss:0"});
    ::stub_reset();
    for (int i = 0; i < 10; ++i) { session.run(); }
    CHECK(::stub_runs() == 10);
    CHECK(::stub_last_outputs() == 2);  // the loss and the step
  }
  SECTION("with twelve hooks and a caller, whose names overlap") {
    const fetching_hook a{"loss"}, b{"loss:0"}, c{"w/first"}, d{"w/second:0"};
    auto session = sw::monitored_training_session(made.graph, {}, a, b, c, d, a, b, c, d, a, b, sw::nan_tensor_hook{"loss"},
                                                  sw::logging_tensor_hook{{.every_n_iter = 1}, "ids:0"});
    ::stub_reset();
    for (int i = 0; i < 10; ++i) {
      const auto [loss, ids] = session.run(sw::fetch("loss", "ids"), sw::target("train_op"));
      CHECK(loss.as<float>() == trained(i) * 2 + 0.5F);
      CHECK(ids.as<std::vector<std::int64_t>>() == std::vector<std::int64_t>{7, 8});
    }
    CHECK(::stub_runs() == 10);
    CHECK(::stub_last_outputs() == 4 + 1);
    CHECK(session.raw_session().plan_count() == 1);
  }
}

TEST_CASE("a run with fetches runs what its caller names, other runs train", "[tensorflow][session]") {
  stub_graph made;
  auto session = sw::monitored_training_session(made.graph);
  ::stub_reset();
  const auto [loss] = session.run(sw::fetch<float>("loss:0"));
  static_assert(std::is_same_v<decltype(loss), const float>);
  CHECK(loss == 2.5F);
  CHECK(::stub_train_runs() == 0);
  CHECK(session.global_step() == 0);
  session.run();
  session.run(sw::target("train_op"));
  session.run(sw::target(made.graph.operation("train_op")));
  CHECK(::stub_train_runs() == 3);
  CHECK(session.global_step() == 3);
}

TEST_CASE("feeds of callers, hooks and sources reach the run", "[tensorflow][session]") {
  stub_graph made;
  auto session = sw::monitored_training_session(made.graph, {}, sw::feed_fn_hook([] { return sw::feed("rate:0", 0.5F); }),
                                                sw::stop_at_step_hook{{.last_step = 5}});
  const auto [loss] = session.run(sw::fetch<float>("loss"), sw::target("train_op"), sw::feed("x:0", std::vector<float>{4}));
  CHECK(loss == 4.5F);
  const auto [w] = session.run(sw::fetch<std::vector<float>>("w/first:0"));
  CHECK(w == std::vector<float>{1 - 0.5F * 4.5F});
  const std::vector<sw::fed<std::string, std::vector<float>>> batches(10, {"x", {1}});
  int steps = 0;
  for (const auto& step : session.steps(batches)) { steps += step.global_step > 0 ? 1 : 0; }
  CHECK(steps == 4);
  CHECK(session.global_step() == 5);
}

TEST_CASE("a tensor that is fed and fetched has the fed value", "[tensorflow][session]") {
  stub_graph made;
  auto session = sw::monitored_training_session(made.graph);
  const auto [x, again, loss] = session.run(sw::fetch("x", made.graph.tensor("x"), "loss:0"), sw::feed("x:0", std::vector<float>{3}));
  CHECK(x.as<float>() == 3);
  CHECK(again.as<float>() == 3);
  CHECK(loss.as<float>() == 3.5F);
  CHECK(::stub_last_outputs() == 2);
}

TEST_CASE("a run that fetches only what it feeds does not call TensorFlow, which has nothing to do", "[tensorflow][session]") {
  ::stub_set_name_of_step("other");  // not found, so the graph has no global step
  auto meta = test::stub_meta_graph();
  meta.mutable_collection_def()->erase("variables");
  stub_graph made(meta);
  ::stub_set_name_of_step("global_step");
  auto session = sw::monitored_training_session(made.graph);
  ::stub_reset();
  for (int i = 0; i < 2; ++i) {
    const auto [x] = session.run(sw::fetch<std::vector<float>>("x:0"), sw::feed("x:0", std::vector<float>{3}));
    CHECK(x == std::vector<float>{3});
  }
  CHECK(session.global_step() == 2);
  const std::vector<tf::named_feed> feeds = {{"x:0", tf::tensor(std::vector<double>{4})}};
  const auto& raw = session.raw_session();
  const auto apart = raw.run_apart({"x", "x:0"}, {}, feeds);
  REQUIRE(apart.size() == 2);
  CHECK(apart[1].as<std::vector<float>>() == std::vector<float>{4});
  CHECK(raw.run_apart({}).empty());
  CHECK(::stub_runs() == 0);
}

TEST_CASE("a run beside the steps may fetch a tensor that it feeds, too", "[tensorflow][session]") {
  stub_graph made;
  auto session = sw::monitored_training_session(made.graph);
  const auto all = session.raw_session().run_apart({"x", "loss", "x:0"}, {}, {{"x:0", tf::tensor(std::vector<float>{3})}});
  REQUIRE(all.size() == 3);
  CHECK(all[0].as<float>() == 3);
  CHECK(all[1].as<float>() == 3.5F);
  CHECK(all[2].as<float>() == 3);
}

TEST_CASE("numbers that are fed are converted to the dtype of the placeholder, as in TensorFlow", "[tensorflow][session]") {
  stub_graph made;
  auto session = sw::monitored_training_session(made.graph);
  const auto fed = [&](const std::string& name, const auto& value) { return fed_and_fetched(session, name, value); };
  CHECK(fed("rate:0", 0.1).template as<float>() == 0.1F);
  CHECK(fed("rate:0", 2).template as<float>() == 2.0F);
  CHECK(fed("rate:0", true).template as<float>() == 1.0F);
  CHECK(fed("x:0", std::vector<double>{1, 0.1}).template as<std::vector<float>>() == std::vector<float>{1, 0.1F});
  CHECK(fed("x:0", std::vector<std::int64_t>{3, -4}).template as<std::vector<float>>() == std::vector<float>{3, -4});
  CHECK(std::isinf(fed("rate:0", std::numeric_limits<double>::infinity()).template as<float>()));
  CHECK(fed("count:0", std::int64_t{7}).template as<std::int32_t>() == 7);
  CHECK(fed("count:0", -3.0).template as<std::int32_t>() == -3);
  CHECK(fed("flag:0", 1).template as<bool>());

  const auto refused = ContainsSubstring("would change in a conversion");
  CHECK_THROWS_WITH(fed("rate:0", 16777217), refused);
  CHECK_THROWS_WITH(fed("rate:0", 1e300), refused);
  CHECK_THROWS_WITH(fed("count:0", 0.5), refused);
  CHECK_THROWS_WITH(fed("count:0", 3e9), refused);
  CHECK_THROWS_WITH(fed("count:0", std::numeric_limits<double>::quiet_NaN()), refused);
  CHECK_THROWS_WITH(fed("count:0", std::int64_t{1} << 40), refused);
  CHECK_THROWS_WITH(fed("count:0", ~std::uint64_t{0}), refused);
  CHECK_THROWS_WITH(fed("flag:0", 2), refused);
}

TEST_CASE("numbers that are fed to a half or a bfloat16 are rounded to the nearest one, as by numpy", "[tensorflow][session]") {
  stub_graph made;
  auto session = sw::monitored_training_session(made.graph);
  const auto fed = [&](const std::string& name, const auto& value) { return fed_and_fetched(session, name, value); };
  const auto bits = [&](const std::string& name, const auto& value) {
    const auto got = fed(name, value);
    std::uint16_t all = 0;
    REQUIRE(got.bytes().size() == sizeof(all));
    std::memcpy(&all, got.bytes().data(), sizeof(all));
    return all;
  };
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double not_a_number = std::numeric_limits<double>::quiet_NaN();
  // The bits are those of numpy 2 with ml_dtypes: numpy.asarray(value, dtype).view(numpy.uint16).
  CHECK(bits("half", 0.5) == 0x3800);
  CHECK(bits("half", 0.1F) == 0x2e66);
  CHECK(bits("half", -1.0 / 3) == 0xb555);
  CHECK(bits("half", 1 + std::ldexp(1.0, -11)) == 0x3c00);                         // a tie: to even
  CHECK(bits("half", 1 + std::ldexp(3.0, -11)) == 0x3c02);                         // a tie: to even
  CHECK(bits("half", 1 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40)) == 0x3c01);  // rounded once, not also to float
  CHECK(bits("half", 1e-5) == 0x00a8);                                             // subnormal
  CHECK(bits("half", std::ldexp(1.0, -25)) == 0x0000);                             // half of the smallest number
  CHECK(bits("half", std::ldexp(1.0, -25) * 1.001) == 0x0001);
  CHECK(bits("half", 6.103e-5) == 0x0400);  // from the subnormal to the normal numbers
  CHECK(bits("half", 2047.9) == 0x6800);    // to the next power of two
  CHECK(bits("half", 65519.9) == 0x7bff);
  CHECK(bits("half", 65520.0) == 0x7c00);
  CHECK(bits("half", -1e300) == 0xfc00);
  CHECK(bits("half", infinity) == 0x7c00);
  CHECK(bits("half", -0.0) == 0x8000);
  CHECK((bits("half", not_a_number) & 0x7fff) == 0x7e00);
  CHECK(bits("half", true) == 0x3c00);
  CHECK(bits("half", -3) == 0xc200);
  CHECK(bits("half", std::int64_t{2049}) == 0x6800);
  CHECK(bits("half", 70000) == 0x7c00);
  CHECK(bits("bfloat16", 0.5) == 0x3f00);
  CHECK(bits("bfloat16", 0.1) == 0x3dcd);
  CHECK(bits("bfloat16", 1.0 / 3) == 0x3eab);
  CHECK(bits("bfloat16", 65504.0) == 0x4780);
  CHECK(bits("bfloat16", 1 + std::ldexp(1.0, -8) + std::ldexp(1.0, -40)) == 0x3f80);  // numpy rounds to float before
  CHECK(bits("bfloat16", 1e-40) == 0x0001);
  CHECK(bits("bfloat16", 3.39e38) == 0x7f7f);
  CHECK(bits("bfloat16", 3.4e38) == 0x7f80);
  CHECK(bits("bfloat16", -1e300) == 0xff80);
  CHECK(bits("bfloat16", -0.0F) == 0x8000);
  CHECK((bits("bfloat16", not_a_number) & 0x7fff) == 0x7fc0);
  CHECK(bits("bfloat16", 257) == 0x4380);
  CHECK(bits("bfloat16", std::uint8_t{255}) == 0x437f);
  CHECK(bits("bfloat16", fed("half", 0.1)) == 0x3dcd);

  const auto several = fed("halves", std::vector<float>{0.5F, -2});
  CHECK(several.shape() == sw::tensor_shape{2});
  CHECK(sw::detail::as_number(fed("half", 3)) == 3);
  constexpr std::array<std::uint16_t, 2> wanted = {0x3800, 0xc000};
  CHECK(std::ranges::equal(std::as_bytes(std::span(wanted)), several.bytes()));
  CHECK(fed("halves", std::vector<std::int64_t>{1, 2, 3}).size() == 3);
  CHECK(fed("rate", fed("half", 0.5)).template as<float>() == 0.5F);
  CHECK(fed("count", fed("bfloat16", -3)).template as<std::int32_t>() == -3);
  CHECK_THROWS_WITH(fed("count", fed("half", 0.5)), ContainsSubstring("would change in a conversion"));
  CHECK_THROWS_WITH(fed("half", "0.5"), ContainsSubstring("the tensor holds float16, but string was fed"));
  CHECK_THROWS_WITH(fed("float8", 0.5), ContainsSubstring("the tensor holds float8_e5m2, but float64 was fed (invalid_argument)"));
}

TEST_CASE("D-34: mistakes in names, dtypes and shapes are found before anything runs", "[tensorflow][session]") {
  stub_graph made;
  auto session = sw::monitored_training_session(made.graph);
  ::stub_reset();
  CHECK_THROWS_WITH(session.run(sw::fetch("los:0")), ContainsSubstring("fetch \"los:0\": the graph has no operation of this name"));
  CHECK_THROWS_WITH(session.run(sw::fetch("train_op")), ContainsSubstring("is an operation without a value; run it with target"));
  CHECK_THROWS_WITH(session.run(sw::target("trian_op")), ContainsSubstring("target \"trian_op\""));
  CHECK_THROWS_WITH(session.run(sw::feed("y:0", 1.0F)), ContainsSubstring("feed \"y:0\""));
  CHECK_THROWS_WITH(session.run(sw::feed("rate:0", "0.1")),
                    ContainsSubstring("feed \"rate:0\": the tensor holds float32, but string was fed"));
  CHECK_THROWS_WITH(session.run(sw::feed("x:0", 1.0F)), ContainsSubstring("the tensor has the shape [?], but [] was fed"));
  CHECK_THROWS_WITH(session.run(sw::fetch<double>("loss:0")), ContainsSubstring("holds float32, but float64 was requested"));
  CHECK_THROWS_WITH(session.run(sw::fetch("w:0")), ContainsSubstring("resource cannot be fetched"));
  CHECK_THROWS_WITH(session.run(sw::feed("x:0", std::vector<float>{1}), sw::feed("x", std::vector<float>{2})),
                    ContainsSubstring("Conflict(s): [x:0]"));
  CHECK(::stub_runs() == 0);
  session.run();
  CHECK(session.global_step() == 1);
}

TEST_CASE("a tensor of the caller that is fed is copied, so that the graph may keep it", "[tensorflow][session]") {
  stub_graph made;
  auto session = sw::monitored_training_session(made.graph);
  tf::tensor x(std::vector<float>{4});
  const auto elements = x.span<float>();
  session.run(sw::feed("x", x));
  elements[0] = 5;  // not seen by the graph, and still the caller's own
  CHECK(x.as<float>() == 5);
  CHECK(x.span<float>().data() == elements.data());
}

TEST_CASE("a checkpoint is one more run, and a later session continues from it", "[tensorflow][session]") {
  stub_graph made;
  {
    auto session = sw::monitored_training_session(made.graph, {.checkpoint_dir = made.run_dir(), .saves = {.save_steps = 2}},
                                                  sw::stop_at_step_hook{{.last_step = 5}});
    ::stub_reset();
    for ([[maybe_unused]] const auto& step : session.steps()) {}
    CHECK(::stub_runs() == 5 + 2);  // the steps, and the checkpoints 2 and 4
    session.close();
  }
  const sw::checkpoint_reader saved(made.run_dir() + "/model.ckpt-5");
  CHECK(saved.read("w").as<float>()[0] == trained(5));
  CHECK(saved.read("w").as<float>()[1] == 0.5F);
  CHECK(saved.read("global_step").as<std::int64_t>()[0] == 5);
  CHECK(std::filesystem::exists(made.run_dir() + "/graph.pbtxt"));
  CHECK(content_of(made.run_dir() + "/model.ckpt-5.meta") == made.bytes);

  auto session = sw::monitored_training_session(made.graph, {.checkpoint_dir = made.run_dir()}, sw::stop_at_step_hook{{.last_step = 9}});
  CHECK(session.global_step() == 5);
  for ([[maybe_unused]] const auto& step : session.steps()) {}
  CHECK(variable_of(session) == std::vector<float>{trained(9), 0.5F});
}

TEST_CASE("a sharded saver of the graph writes as many data files", "[tensorflow][session]") {
  auto meta = test::stub_meta_graph();
  meta.mutable_saver_def()->set_save_tensor_name("sharded/Identity:0");
  meta.mutable_saver_def()->set_sharded(true);
  stub_graph made(meta);
  {
    auto session = sw::monitored_training_session(made.graph, {.checkpoint_dir = made.run_dir()}, sw::stop_at_step_hook{{.last_step = 3}});
    for ([[maybe_unused]] const auto& step : session.steps()) {}
    session.close();
  }
  CHECK(std::filesystem::exists(made.run_dir() + "/model.ckpt-3.data-00001-of-00002"));
  CHECK(sw::checkpoint_reader(made.run_dir() + "/model.ckpt-3").read("w").as<float>()[0] == trained(3));
  auto again = sw::monitored_training_session(made.graph, {.checkpoint_dir = made.run_dir()});
  CHECK(again.global_step() == 3);
  CHECK_NOTHROW(sw::monitored_training_session(made.graph));  // the shards of the graph are no option without a directory
}

TEST_CASE("a worker that waits for a step sees the steps of others", "[tensorflow][session]") {
  stub_graph made;
  auto session = sw::monitored_training_session(made.graph, {}, sw::global_step_waiter_hook{{.wait_until_step = 3, .max_wait_secs = 5}});
  const auto& raw = session.raw_session();
  for (int i = 0; i < 3; ++i) { static_cast<void>(raw.run_apart({}, sw::target("train_op"))); }  // as another session would
  CHECK(raw.global_step() == 0);
  CHECK_NOTHROW(session.run());
  CHECK(session.global_step() == 4);
}

TEST_CASE("hooks that take numbers take typed fetches", "[tensorflow][session]") {
  const test::log_capture quiet;
  stub_graph made;
  const tf::typed_fetch<float> loss("loss:0");
  std::string line;
  const auto keep = [&](std::string_view text) { line += text; };
  auto session = sw::monitored_training_session(
      made.graph, {}, sw::early_stopping_hook{{.patience = 3, .mode = sw::early_stopping_mode::maximize}, loss},
      sw::progress_hook{{.line_every = 0, .is_terminal = false, .output = keep}, loss},
      sw::summary_saver_hook{{.output_dir = made.run_dir(), .save_steps = 1}, sw::summary::scalar("cost", loss)});
  ::stub_reset();
  for ([[maybe_unused]] const auto& step : session.steps()) {}
  CHECK(session.global_step() == 4);  // the loss falls in each step
  CHECK(::stub_runs() == 4);
  session.close();
  CHECK_FALSE(line.empty());
}

TEST_CASE("evaluation, best checkpoint, early stopping and functions work over a graph as over a model", "[tensorflow][session]") {
  const test::log_capture quiet;
  stub_graph made;
  // The loss falls in each step, so the greatest loss is that of the first evaluation.
  const auto loss_now = [](tf::graph_session& raw) { return raw.run_apart({"loss"}).front().as<float>(); };
  const auto tested = sw::evaluate_every(2, loss_now, sw::measure("loss", [](float loss) { return loss; }));
  int called = 0;
  auto session =
      sw::monitored_training_session(made.graph, {.checkpoint_dir = made.run_dir(), .saves = {.save_steps = 100}}, tested,
                                     sw::best_checkpoint_hook{{.mode = sw::metric_mode::maximize}, tested.value("loss")},
                                     sw::early_stopping_hook{{.patience = 2, .mode = sw::metric_mode::maximize}, tested.value("loss")},
                                     sw::every_n_steps(3, [&] { ++called; }), sw::stop_at_step(100));
  const auto all = session.run_all();
  session.close();
  CHECK(all.steps == 6);  // the evaluations at the steps 4 and 6 are not better
  CHECK(all.why.cause == sw::stop_cause::no_progress);
  CHECK(called == 2);
  const auto best = sw::best_checkpoint(made.run_dir());
  REQUIRE(best);
  CHECK(best->step == 2);
  CHECK(best->value > *tested.value("loss").value());
  CHECK(sw::run_ended(made.run_dir()).value().global_step == 6);
}

TEST_CASE("hooks read fetched tensors of a graph as numbers", "[tensorflow][session]") {
  const test::log_capture log;
  stub_graph made;
  const std::string loss = "loss:0";
  std::string shown;
  const auto tested = sw::evaluate_every(
      2, [](tf::graph_session& raw) { return raw.run_apart({"loss"}).front(); },
      sw::measure("loss", [](const tf::tensor& value) { return value; }));
  auto session = sw::monitored_training_session(
      made.graph, {.checkpoint_dir = made.run_dir(), .saves = {.save_steps = 100}},
      sw::early_stopping_hook{{.patience = 2, .mode = sw::metric_mode::maximize}, loss},
      sw::best_checkpoint_hook{{.mode = sw::metric_mode::maximize}, loss},
      sw::progress_hook{{.last_step = 3, .is_terminal = false, .output = [&](std::string_view text) { shown += text; }}, loss},
      sw::summary_saver_hook{{.save_steps = 1}, sw::summary::scalar("loss", loss), sw::summary::histogram("losses", loss)},
      sw::nan_tensor_hook{loss}, tested);
  CHECK(session.run_all().steps == 3);  // the loss falls
  session.close();
  CHECK(session.stop_reason().cause == sw::stop_cause::no_progress);
  CHECK(sw::best_checkpoint(made.run_dir())->step == 1);
  CHECK(shown.find("loss") != std::string::npos);
  CHECK(tested.value("loss").value().has_value());
  const std::uint16_t two = 0x4000;
  const sw::tensor_view half{sw::dtype::half, {}, std::as_bytes(std::span(&two, 1))};
  CHECK(sw::detail::as_number(tf::tensor(half)) == 2);
}

TEST_CASE("a run over a graph with a schedule, evaluations and early stopping resumes exactly", "[tensorflow][session]") {
  const test::log_capture log;
  struct outcome {
    std::int64_t step = 0;
    std::vector<float> variable;
    std::vector<std::int64_t> called_at;
  };
  // Trains up to `last_step`. The loss falls, so early stopping with the mode `maximize` stops after the second evaluation that is worse.
  const auto train = [](stub_graph& made, std::int64_t last_step) {
    outcome end;
    float rate = 0;
    const auto loss_now = [](tf::graph_session& raw) { return raw.run_apart({"loss"}).front().as<float>(); };
    const auto tested = sw::evaluate_every(2, loss_now, sw::measure("loss", [](float loss) { return loss; }));
    auto session = sw::monitored_training_session(
        made.graph, {.name = "line", .checkpoint_dir = made.run_dir(), .saves = {.save_steps = 100}},
        sw::scheduled([&](double now) { rate = static_cast<float>(now); }, [](std::int64_t step) { return 0.125 / (1 + double(step)); }),
        sw::feed_fn_hook{[&] { return sw::feed("rate:0", rate); }}, tested,
        sw::early_stopping_hook{{.patience = 2, .mode = sw::metric_mode::maximize}, tested.value("loss")},
        sw::every_n_steps(2, [&](std::int64_t step) { end.called_at.push_back(step); }), sw::stop_at_step(last_step));
    session.run_all();
    end.step = session.global_step();
    end.variable = variable_of(session);
    session.close();
    return end;
  };
  stub_graph undisturbed;
  const auto whole = train(undisturbed, 100);
  CHECK(whole.step == 6);
  CHECK(whole.called_at == std::vector<std::int64_t>{2, 4, 6});

  stub_graph interrupted;
  CHECK(train(interrupted, 3).step == 3);
  const auto resumed = train(interrupted, 100);
  CHECK(resumed.step == whole.step);
  CHECK(resumed.variable == whole.variable);
  CHECK(resumed.called_at == std::vector<std::int64_t>{4, 6});
  CHECK(log.contains(sw::log_level::info, "[line] saved "));
}

TEST_CASE("summaries of a graph need no directory if the session has one", "[tensorflow][session]") {
  const test::log_capture quiet;
  stub_graph made;
  auto session = sw::monitored_training_session(
      made.graph, {.checkpoint_dir = made.run_dir()},
      sw::summary_saver_hook{{.save_steps = 1}, sw::summary::scalar("cost", tf::typed_fetch<float>("loss:0"))}, sw::stop_at_step(2));
  session.run_all();
  session.close();
  CHECK(test::steps_with_oracle(made.run_dir(), "cost") == std::set<std::int64_t>{1, 2});
}

TEST_CASE("the metadata of a text summary of a graph are written once for each tag, as in Python", "[tensorflow][session]") {
  const test::temporary_directory directory;
  ::tensorflow::Summary made;
  auto& value = *made.add_value();
  value.set_tag("note");
  value.mutable_metadata()->mutable_plugin_data()->set_plugin_name("text");
  value.mutable_tensor()->set_dtype(::tensorflow::DT_STRING);
  value.mutable_tensor()->mutable_tensor_shape();
  value.mutable_tensor()->add_string_val("hello");
  {
    sw::summary::writer out(directory.path());
    for (const auto step : {1, 2}) { tf::detail::graph_summary{"note:0"}.write(out, tf::tensor(made.SerializeAsString()), step); }
  }
  std::vector<bool> described;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    for (const auto& event : test::events_with_oracle(entry.path().string())) {
      for (const auto& written : event.summary().value()) {
        described.push_back(written.has_metadata());
        CHECK(written.tensor().string_val(0) == "hello");
      }
    }
  }
  CHECK(described == std::vector<bool>{true, false});
}

TEST_CASE("the last step of a graph executes no summaries that are not due, as in Python", "[tensorflow][session]") {
  const test::log_capture quiet;
  stub_graph made;
  const auto cost = sw::summary::scalar("cost", tf::typed_fetch<float>("loss:0"));
  auto session = sw::monitored_training_session(made.graph, {.checkpoint_dir = made.run_dir()},
                                                sw::summary_saver_hook{{.save_steps = 2}, cost}, sw::stop_at_step(4));
  session.run_all();
  session.close();
  CHECK(test::steps_with_oracle(made.run_dir(), "cost") == std::set<std::int64_t>{1, 3});
  auto keeps = sw::monitored_training_session(
      made.graph, {}, sw::summary_saver_hook{{.output_dir = made.run_dir(), .save_steps = 2, .at_end = true}, cost});
  keeps.run();
  CHECK_THROWS_WITH(keeps.run(), ContainsSubstring("results that cannot be copied"));
}

TEST_CASE("a session over a graph writes the values of the argument summaries", "[tensorflow][session]") {
  const test::log_capture quiet;
  stub_graph made;
  auto session =
      sw::monitored_training_session(made.graph, {.checkpoint_dir = made.run_dir(), .summaries = {.save_steps = 2}},
                                     sw::summaries(sw::summary::scalar("cost", tf::typed_fetch<float>("loss:0"))), sw::stop_at_step(4));
  session.run_all();
  session.close();
  CHECK(test::steps_with_oracle(made.run_dir(), "cost") == std::set<std::int64_t>{1, 3});
  CHECK_THROWS_WITH(
      sw::monitored_training_session(made.graph, {}, sw::summaries(sw::summary::scalar("cost", tf::typed_fetch<float>("loss:0")))),
      ContainsSubstring("summaries is given, but neither summary_dir nor checkpoint_dir"));
}

TEST_CASE("summaries.at_end is not available over a graph, and true is an error", "[tensorflow][session]") {
  const test::log_capture quiet;
  stub_graph made;
  const auto train = [&](std::optional<bool> at_end, std::string directory) {
    auto session = sw::monitored_training_session(made.graph, {.summary_dir = std::move(directory), .summaries = {.at_end = at_end}});
  };
  const auto refused = ContainsSubstring("summaries.at_end is not available over a graph");
  CHECK_THROWS_WITH(train(true, made.run_dir()), refused);
  CHECK_THROWS_AS(train(true, made.run_dir()), sw::invalid_argument_error);
  CHECK_THROWS_WITH(train(true, {}), refused);
  CHECK_NOTHROW(train(false, made.run_dir()));
  CHECK_NOTHROW(train(std::nullopt, made.run_dir()));
}

TEST_CASE("transient failures of TensorFlow recover in a new session", "[tensorflow][session]") {
  const test::log_capture quiet;
  stub_graph made;
  constexpr int aborted = 10;
  constexpr int unavailable = 14;
  sw::retry_policy fast{.initial_backoff = 0};
  SECTION("from a checkpoint") {
    auto session = sw::monitored_training_session(made.graph, {.checkpoint_dir = made.run_dir(), .saves = {.save_steps = 2}, .retry = fast},
                                                  sw::stop_at_step_hook{{.last_step = 6}});
    for (int i = 0; i < 3; ++i) { session.run(); }
    ::stub_fail(1, unavailable, "the ps is gone");
    for ([[maybe_unused]] const auto& step : session.steps()) {}
    CHECK(session.metrics().recoveries == 1);
    CHECK(session.global_step() == 6);
    CHECK(::stub_sessions() == 1);
    session.close();
  }
  SECTION("to the initial state") {
    auto session = sw::monitored_training_session(made.graph, {.retry = fast}, sw::stop_at_step_hook{{.last_step = 6}});
    for (int i = 0; i < 3; ++i) { session.run(); }
    ::stub_fail(1, aborted, "the worker has restarted");
    for ([[maybe_unused]] const auto& step : session.steps()) {}
    CHECK(session.metrics().recoveries == 1);
    CHECK(variable_of(session).front() == trained(6));
  }
}

TEST_CASE("other failures are thrown with TensorFlow's text and code", "[tensorflow][session]") {
  const test::log_capture quiet;
  stub_graph made;
  auto session = sw::monitored_training_session(made.graph);
  const auto fails_with = [&](int code) {
    ::stub_fail(1, code, "assertion failed: [[node x_is_finite]]");
    session.run();
  };
  CHECK_THROWS_AS(fails_with(3), sw::invalid_argument_error);
  CHECK_THROWS_AS(fails_with(4), sw::deadline_exceeded_error);
  CHECK_THROWS_AS(fails_with(8), sw::resource_exhausted_error);
  CHECK_THROWS_AS(fails_with(11), sw::out_of_range_error);
  CHECK_THROWS_AS(fails_with(16), sw::permission_denied_error);
  CHECK_THROWS_WITH(fails_with(13), ContainsSubstring("could not run a step of the graph") && ContainsSubstring("[[node x_is_finite]]"));
}

TEST_CASE("the end of a queue ends a loop as the end of the data", "[tensorflow][session]") {
  stub_graph made;
  auto session = sw::monitored_training_session(made.graph);
  ::stub_reset();
  ::stub_fail(4, 11, "FIFOQueue is closed and has insufficient elements");
  int steps = 0;
  for ([[maybe_unused]] const auto& step : session.steps()) { ++steps; }
  CHECK(steps == 3);
  CHECK(session.stop_reason().cause == sw::stop_cause::end_of_data);
  CHECK_NOTHROW(session.close());
}

TEST_CASE("hooks that fetch now and then cause few plans", "[tensorflow][session]") {
  const test::log_capture quiet;
  stub_graph made;
  auto session =
      sw::monitored_training_session(made.graph, {.checkpoint_dir = made.run_dir(), .summaries = {.save_steps = 7}},
                                     sw::nan_tensor_hook{"loss"}, sw::logging_tensor_hook{{.every_n_iter = 3}, "ids", "w/first"});
  for (int i = 0; i < 200; ++i) { session.run(); }
  CHECK(session.raw_session().plan_count() <= 4);
}

TEST_CASE("a plan with side effects or large values does not replace a smaller one", "[tensorflow][session]") {
  stub_graph made;
  auto session = sw::monitored_training_session(made.graph);
  session.run(sw::fetch("loss", "random"));
  session.run(sw::fetch("loss", "huge"));
  session.run(sw::fetch("loss", "summary"));
  session.run(sw::fetch("loss", "assigned"));  // assigns a reference, which TensorFlow does not call stateful
  session.run(sw::fetch("loss", "called"));    // a function of the graph may do anything
  CHECK(session.raw_session().plan_count() == 5);
  session.run(sw::fetch("loss"));
  CHECK(session.raw_session().plan_count() == 6);
  session.run(sw::fetch("loss", "ids"));
  session.run(sw::fetch("ids"));  // the loss is small and only read
  CHECK(session.raw_session().plan_count() == 7);
}

TEST_CASE("the type of the global step is that of its variable, not that of a saved one", "[tensorflow][session]") {
  stub_graph made;
  constexpr int int32 = 3;
  constexpr int float32 = 1;
  constexpr int int64 = 9;
  ::stub_set_type_of_step(int32);
  {
    auto session = sw::monitored_training_session(made.graph);
    session.run();
    CHECK(session.global_step() == 1);
  }
  ::stub_set_type_of_step(float32);
  CHECK_THROWS_WITH(sw::monitored_training_session(made.graph), ContainsSubstring("is a float32; it must be an int64 or an int32"));
  ::stub_set_type_of_step(int64);
}

TEST_CASE("a graph has one global step", "[tensorflow][session]") {
  auto meta = test::stub_meta_graph();
  auto& all = *meta.mutable_collection_def();
  all["global_step"] = all["variables"];
  stub_graph made(meta);
  CHECK_THROWS_WITH(sw::monitored_training_session(made.graph), ContainsSubstring("More than one item in the collection \"global_step\""));
}

TEST_CASE("a run in the calling thread flushes denormal numbers, as a pool of TensorFlow does, and leaves the thread as it was",
          "[tensorflow][session]") {
  stub_graph made;
  const auto is_flushed_here = [] {
    volatile float denormal = 1e-38F;
    denormal = denormal * 0.1F;
    return denormal == 0;
  };
  const auto runs_flushed = [&](int threads) {
    auto session = sw::monitored_training_session(made.graph, {.config = {.inter_op_parallelism_threads = threads}});
    for (int i = 0; i < 2; ++i) {  // the first run is also prepared
      session.run();
      if (::stub_flushes_denormals() != (threads == 1 ? 1 : 0)) { return false; }
    }
    return true;
  };
  CHECK(runs_flushed(1));
  CHECK(runs_flushed(2));
  CHECK_FALSE(is_flushed_here());
}

TEST_CASE("a name with a zero byte is refused", "[tensorflow][session]") {
  stub_graph made;
  auto session = sw::monitored_training_session(made.graph);
  CHECK_THROWS_AS(session.run(sw::fetch(std::string("loss\0x", 6))), sw::invalid_argument_error);
  CHECK_NOTHROW(session.run(sw::fetch("loss")));
}

TEST_CASE("the saver of the graph says how many checkpoints are kept, unless the options do", "[tensorflow][session]") {
  auto meta = test::stub_meta_graph();
  meta.mutable_saver_def()->set_max_to_keep(2);
  stub_graph made(meta);
  const auto kept = [&](sw::setting<int> max_to_keep) {
    const auto directory = made.directory / ("run" + std::to_string(max_to_keep.given().value_or(0)));
    auto session =
        sw::monitored_training_session(made.graph, {.checkpoint_dir = directory, .saves = {.saver = {.max_to_keep = max_to_keep}}});
    for (int i = 0; i < 5; ++i) {
      session.run();
      session.checkpoint_now();
    }
    session.close();
    return sw::list_checkpoints(directory).size();
  };
  CHECK(kept({}) == 2);
  CHECK(kept(3) == 3);
}

TEST_CASE("a .meta file that a killed process did not write is written at the next start", "[tensorflow][session]") {
  stub_graph made;
  const auto file = made.run_dir() + "/model.ckpt-2.meta";
  const auto train_to = [&](std::int64_t last, bool save_meta_graph) {
    auto session =
        sw::monitored_training_session(made.graph, {.checkpoint_dir = made.run_dir()},
                                       tf::graph_options{.save_meta_graph = save_meta_graph}, sw::stop_at_step_hook{{.last_step = last}});
    for ([[maybe_unused]] const auto& step : session.steps()) {}
    session.close();
  };
  train_to(2, false);
  CHECK_FALSE(std::filesystem::exists(file));
  train_to(2, true);
  CHECK(content_of(file) == made.bytes);
}

TEST_CASE("a graph without a train operation, or without variables, says so or counts its runs", "[tensorflow][session]") {
  auto meta = test::stub_meta_graph();
  meta.mutable_collection_def()->erase("train_op");
  stub_graph made(meta);
  SECTION("without a train operation") {
    auto session = sw::monitored_training_session(made.graph);
    CHECK_THROWS_WITH(session.run(), ContainsSubstring("no collection \"train_op\""));
    session.run(sw::target("train_op"));
  }
  SECTION("with a train operation in the options") {
    auto session = sw::monitored_training_session(made.graph, {}, tf::graph_options{.operations = {.train_op = "train_op"}});
    session.run();
    CHECK(session.global_step() == 1);
  }
}

TEST_CASE("NaN in a fetched tensor stops the training, and its state is not saved", "[tensorflow][session]") {
  const test::log_capture quiet;
  stub_graph made;
  auto session = sw::monitored_training_session(made.graph, {.checkpoint_dir = made.run_dir()}, sw::nan_tensor_hook{"loss:0"});
  session.run();
  const std::vector<float> bad = {std::numeric_limits<float>::quiet_NaN()};
  CHECK_THROWS_AS(session.run(sw::feed("x", bad)), sw::nan_loss_error);
}

TEST_CASE("any_hook passes the names of its hook to the run", "[tensorflow][session]") {
  stub_graph made;
  auto session = sw::monitored_training_session(made.graph, {}, sw::any_hook<tf::graph_session>(fetching_hook{"loss"}),
                                                sw::any_hook<tf::graph_session>(sw::nan_tensor_hook{"loss:0"}));
  ::stub_reset();
  session.run();
  CHECK(::stub_runs() == 1);
  CHECK(::stub_last_outputs() == 2);
}

TEST_CASE("a run beside the steps, at the end too, is not counted as a step", "[tensorflow][session]") {
  stub_graph made;
  sw::final_ops_hook final_ops{[](const tf::graph_session& raw) { return raw.run_apart({"w/Read"}).front().as<std::vector<float>>()[0]; }};
  auto session = sw::monitored_training_session(made.graph, {}, std::ref(final_ops));
  session.run();
  CHECK(session.raw_session().run_apart({"loss"}, {}, {{"x:0", tf::tensor(std::vector<float>{0})}}).front().as<float>() == 0.5F);
  session.close();
  CHECK(std::get<0>(*final_ops.final_ops_values()) == trained(1));
  CHECK(session.global_step() == 1);
}

TEST_CASE("sessions leave nothing behind in the library", "[tensorflow][session]") {
  const auto sessions = ::stub_sessions();
  const auto tensors = ::stub_tensors();
  {
    stub_graph made;
    auto session = sw::monitored_training_session(made.graph, {.checkpoint_dir = made.run_dir(), .saves = {.save_steps = 1}},
                                                  sw::nan_tensor_hook{"loss"});
    for (int i = 0; i < 3; ++i) { session.run(); }
    session.close();
  }
  CHECK(::stub_sessions() == sessions);
  CHECK(::stub_tensors() == tensors);
}

TEST_CASE("a graph is evaluated at each checkpoint of its training", "[tensorflow][session]") {
  const test::log_capture quiet;
  stub_graph made;
  {
    auto session = sw::monitored_training_session(made.graph, {.checkpoint_dir = made.run_dir()}, sw::stop_at_step_hook{{.last_step = 4}});
    for ([[maybe_unused]] const auto& step : session.steps()) {}
    session.close();
  }
  const auto& graph = made.graph;
  tf::graph_evaluation measured(graph, {.operations = {.train_op = "summary"}});
  const std::vector<sw::fed<std::string, std::vector<float>>> batches(3, {"x", {1}});
  const auto weight = [](const tf::graph_session& raw) { return raw.run_apart({"w/first"}).front().as<float>(); };
  SECTION("once, and the variables have the values of the checkpoint") {
    const auto newest = made.run_dir() + "/model.ckpt-4";
    const auto found = sw::evaluate_once(measured, newest, batches, {}, sw::final_ops_hook{weight});
    CHECK(found.evals == 3);
    CHECK(found.global_step == 4);
    CHECK(std::get<0>(*found.final_ops_values) == trained(4));
  }
  SECTION("repeatedly") {
    std::vector<std::int64_t> steps;
    const auto all = [&] { return sw::data::source(batches); };
    for (const auto& found :
         sw::evaluate_repeatedly(measured, made.run_dir(), all, {.eval_interval_secs = 0, .timeout = 0, .all_listed = true})) {
      steps.push_back(found.global_step);
    }
    CHECK(steps == std::vector<std::int64_t>{0, 4});
  }
  CHECK(::stub_train_runs() == 4);  // those of the training
}
