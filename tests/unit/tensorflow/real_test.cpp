// SPDX-License-Identifier: Apache-2.0
//
// Tests with TensorFlow's own library, which `bash tests/run tensorflow` provides. They are not part of the other kinds of tests.
#include "stub_graph.hpp"
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/base/trace.hpp>
#include <stepwell/checkpoint/checkpoint_reader.hpp>
#include <stepwell/hooks/early_stopping_hook.hpp>
#include <stepwell/hooks/function_hooks.hpp>
#include <stepwell/hooks/global_step_waiter_hook.hpp>
#include <stepwell/hooks/logging_tensor_hook.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/profiler_hook.hpp>
#include <stepwell/hooks/progress_hook.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/hooks/summary_saver_hook.hpp>
#include <stepwell/tensorflow/graph_builder.hpp>
#include <stepwell/tensorflow/runtime.hpp>
#include <stepwell/tensorflow/training.hpp>

#include <google/protobuf/stubs/common.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace sw = stepwell;
namespace test = stepwell::test;
namespace tf = stepwell::tensorflow;
namespace fs = std::filesystem;

namespace {

const std::string data = STEPWELL_TENSORFLOW_DATA;

sw::session_config one_thread() { return {.intra_op_parallelism_threads = 1, .inter_op_parallelism_threads = 1}; }

/// Feeds of the graph `mlp`.
std::vector<tf::named_feed> mlp_feeds() {
  return {{"images:0", tf::tensor(sw::dtype::float32, {16, 64})}, {"labels:0", tf::tensor(sw::dtype::int64, {16})}};
}

/// Feeds of the iterator of tf1_estimator: 17 columns of 40 examples; columns 5, 12 and 13 are floats.
std::vector<tf::named_feed> estimator_feeds() {
  constexpr std::array floats = {5, 12, 13};
  std::vector<tf::named_feed> all;
  for (int i = 0; i < 17; ++i) {
    const bool is_float = std::ranges::find(floats, i) != floats.end();
    tf::tensor column(is_float ? sw::dtype::float32 : sw::dtype::int64, {40, 1});
    if (!is_float) {
      std::int64_t next = 0;
      for (auto& one : column.span<std::int64_t>()) { one = next++ % 2; }
    }
    all.push_back({"IteratorGetNext:" + std::to_string(i), std::move(column)});
  }
  return all;
}

bool holds(const std::string& file, const std::string& text) {
  std::ifstream in(file, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(in), {}};
  return content.find(text) != std::string::npos;
}
std::string event_file_in(const std::string& directory) {
  for (const auto& one : fs::directory_iterator(directory)) {
    if (one.path().filename().string().find("tfevents") != std::string::npos) { return one.path().string(); }
  }
  return {};
}

}  // namespace

TEST_CASE("libprotobuf and TensorFlow work in one process", "[tensorflow][real]") {
  GOOGLE_PROTOBUF_VERIFY_VERSION;
  CHECK(tf::runtime::open().version().starts_with("2."));
  const auto meta = test::stub_meta_graph();
  test::wire::MetaGraphDef parsed;
  CHECK(parsed.ParseFromString(meta.SerializeAsString()));
  const auto graph = tf::graph::import_meta_graph(data + "/graph/mlp/model.ckpt-0.meta");
  CHECK(graph.operations().size() > 100);
  CHECK(parsed.ParseFromString(meta.SerializeAsString()));
}

TEST_CASE("a graph of an Estimator continues from its checkpoint", "[tensorflow][real]") {
  const test::log_capture quiet;
  const test::temporary_directory directory;
  const auto run_dir = directory / "run";
  fs::copy(data + "/tf1_estimator", run_dir);
  auto graph = tf::graph::import_meta_graph(run_dir + "/model.ckpt-10000.meta");
  const auto loss = graph.collection("losses").front();
  auto session = sw::monitored_training_session(graph, {.checkpoint_dir = run_dir, .summaries = {.save_steps = 10}, .config = one_thread()},
                                                tf::graph_options{.operations = {.train_op = "training/group_deps"}},
                                                sw::nan_tensor_hook{loss}, sw::stop_at_step_hook{{.num_steps = 20}});
  CHECK(session.global_step() == 10'000);
  const std::vector<std::vector<tf::named_feed>> batches(100, estimator_feeds());
  for ([[maybe_unused]] const auto& step : session.steps(batches)) {}
  CHECK(session.global_step() == 10'020);
  session.close();
  CHECK(sw::checkpoint_reader(run_dir + "/model.ckpt-10020").read("global_step").as<std::int64_t>()[0] == 10'020);
  CHECK(fs::exists(run_dir + "/model.ckpt-10020.meta"));
  for (const auto& name : graph.collection("summaries")) { INFO(name); }
  CHECK(fs::file_size(event_file_in(run_dir)) > 1'000'000);  // the graph, and the summaries
  if (const char* const kept = std::getenv("STEPWELL_KEEP_ESTIMATOR")) { fs::copy(run_dir, kept, fs::copy_options::recursive); }
}

TEST_CASE("a graph without a global step and a ready operation trains", "[tensorflow][real]") {
  const test::log_capture quiet;
  auto graph = tf::graph::import_meta_graph(data + "/tf1_regression/model.meta");
  std::string train;
  std::vector<tf::named_feed> feeds;
  for (const auto& one : graph.operations()) {
    if (one.type() == "NoOp" && one.name().find("GradientDescent") != std::string::npos) { train = one.name(); }
    if (one.type() == "Placeholder") { feeds.push_back({one.name(), tf::tensor(1.0F)}); }
  }
  for (auto& one : feeds) {
    const auto shape = graph.shape(graph.tensor(one.key));
    if (shape && !shape->empty()) { one.value = tf::tensor(sw::dtype::float32, sw::tensor_shape(shape->size(), 1)); }
  }
  REQUIRE_FALSE(train.empty());
  const test::temporary_directory directory;
  {
    auto session = sw::monitored_training_session(graph, {.checkpoint_dir = directory.path(), .config = one_thread()},
                                                  tf::graph_options{.operations = {.train_op = train}});
    for (int i = 0; i < 5; ++i) { session.run(sw::target(train), feeds); }
    CHECK(session.global_step() == 5);
    session.close();
  }
  auto again = sw::monitored_training_session(graph, {.checkpoint_dir = directory.path(), .config = one_thread()},
                                              tf::graph_options{.operations = {.train_op = train}});
  CHECK(again.global_step() == 5);  // the count is in the checkpoint
}

TEST_CASE("operations that TensorFlow lacks are named in one error", "[tensorflow][real]") {
  const auto bytes = test::graph_def_of({"NoOp", "FrobnicateV7", "DefenestrateV2", "Reticulate"});
  CHECK_THROWS_WITH(tf::graph::import_graph_def(std::as_bytes(std::span(bytes))),
                    ContainsSubstring("DefenestrateV2 (\"node_DefenestrateV2\"), FrobnicateV7 (\"node_FrobnicateV7\"), Reticulate"));
}

TEST_CASE("summaries, graph and traces of a graph reach the event file", "[tensorflow][real]") {
  const test::log_capture quiet;
  const test::temporary_directory directory;
  auto graph = tf::graph::import_meta_graph(data + "/graph/mlp/model.ckpt-0.meta");
  auto session = sw::monitored_training_session(
      graph, {.checkpoint_dir = directory.path(), .summaries = {.save_steps = 2}, .config = one_thread()}, sw::nan_tensor_hook{"loss:0"},
      sw::stop_at_step_hook{{.last_step = 6}}, sw::profiler_hook{{.save_steps = 3, .output_dir = directory.path()}});
  const std::vector<std::vector<tf::named_feed>> batches(10, mlp_feeds());
  for ([[maybe_unused]] const auto& step : session.steps(batches)) {}
  session.close();
  const auto events = event_file_in(directory.path());
  CHECK(holds(events, "loss_summary"));
  CHECK(holds(events, "hidden_kernel"));
  CHECK(holds(events, "digits/image"));
  CHECK(holds(directory / "graph.pbtxt", "op: \"SparseSoftmaxCrossEntropyWithLogits\""));
  CHECK(holds(directory / "timeline-3.json", "logits/kernel"));
}

TEST_CASE("few plans are made with all hooks on", "[tensorflow][real]") {
  const test::log_capture quiet;
  const test::temporary_directory directory;
  const tf::typed_fetch<float> loss("loss:0");
  const auto labels = [] { return tf::tensor(sw::dtype::int64, {16}); };
  auto graph = tf::graph::import_meta_graph(data + "/graph/mlp/model.ckpt-0.meta");
  auto session = sw::monitored_training_session(
      graph, {.checkpoint_dir = directory.path(), .saves = {.save_steps = 3'000}, .summaries = {.save_steps = 70}, .config = one_thread()},
      sw::nan_tensor_hook{"loss:0"}, sw::logging_tensor_hook{{.every_n_iter = 30}, "loss:0", "accuracy:0"},
      sw::profiler_hook{{.save_steps = 4'000, .output_dir = directory.path()}}, sw::stop_at_step_hook{{.last_step = 10'000}},
      sw::early_stopping_hook{{.patience = 100'000, .every_n_steps = 20}, loss}, sw::time_limit_hook{3'600},
      sw::progress_hook{{.is_terminal = false, .output = [](std::string_view) {}}, loss},
      sw::summary_saver_hook{{.output_dir = directory.path(), .save_steps = 50}, sw::summary::scalar("cost", loss)},
      sw::global_step_waiter_hook{{.wait_until_step = 0}}, sw::feed_fn_hook([labels] { return sw::feed("labels:0", labels()); }),
      sw::final_ops_hook{[](const tf::graph_session& raw) { return raw.global_step(); }});
  const std::vector<tf::named_feed> images = {mlp_feeds().front()};
  const std::vector<std::vector<tf::named_feed>> batches(10'001, images);
  for ([[maybe_unused]] const auto& step : session.steps(batches)) {}
  CHECK(session.global_step() == 10'000);
  CHECK(session.raw_session().plan_count() <= 4);
}

TEST_CASE("a run that waits ends with its time-out", "[tensorflow][real]") {
  const test::log_capture quiet;
  auto graph = tf::graph::import_meta_graph(data + "/graph/queue/model.ckpt-0.meta");
  tf::graph_session raw(graph, {.target = {.config = one_thread()}});  // nothing fills the queue
  raw.init_variables();
  sw::monitored_session session(std::move(raw));
  const auto begun = std::chrono::steady_clock::now();
  CHECK_THROWS_AS(session.run(sw::fetch("loss:0"), sw::run_options{.timeout_in_ms = 200}), sw::deadline_exceeded_error);
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(20));
}

TEST_CASE("the queue runners of a graph feed its training until the end of the data", "[tensorflow][real]") {
  const test::log_capture quiet;
  auto graph = tf::graph::import_meta_graph(data + "/graph/queue/model.ckpt-0.meta");
  auto session = sw::monitored_training_session(graph, {.config = one_thread()});
  int steps = 0;
  for ([[maybe_unused]] const auto& step : session.steps()) { ++steps; }
  CHECK(steps == 20);
  CHECK(session.stop_reason().cause == sw::stop_cause::end_of_data);
  CHECK_NOTHROW(session.close());
}

TEST_CASE("a stop ends queue runners that wait for room in their queue", "[tensorflow][real]") {
  const test::log_capture quiet;
  auto graph = tf::graph::import_meta_graph(data + "/graph/queue/model.ckpt-0.meta");
  const auto begun = std::chrono::steady_clock::now();
  auto session = sw::monitored_training_session(graph, {.config = one_thread()}, sw::stop_at_step_hook{{.last_step = 2}});
  for ([[maybe_unused]] const auto& step : session.steps()) {}
  CHECK_NOTHROW(session.close());
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(30));
}

TEST_CASE("a graph that is built in C++ trains, saves and resumes", "[tensorflow][real]") {
  const test::log_capture quiet;
  const test::temporary_directory directory;
  const auto build_line = [] {
    tf::graph_builder build;
    const tf::output x = build.add("Placeholder", "x").attr("dtype", sw::dtype::float32).attr("shape", sw::tensor_shape{4});
    const tf::output y = build.add("Placeholder", "y").attr("dtype", sw::dtype::float32).attr("shape", sw::tensor_shape{4});
    const auto w = build.variable("w", tf::tensor(0.0F));
    const auto b = build.variable("b", tf::tensor(0.0F));
    const auto step = build.variable("global_step", tf::tensor(std::int64_t{0}));
    const tf::output product = build.add("Mul", "product").input(w.value).input(x);
    const tf::output line = build.add("AddV2", "line").input(product).input(b.value);
    const tf::output error = build.add("Square", "error").input(build.add("Sub", "distance").input(line).input(y));
    const tf::output loss = build.add("Mean", "loss").input(error).input(build.constant("axis", tf::tensor(std::vector<std::int32_t>{0})));
    const auto gradients = build.gradients({loss}, {w.value, b.value});
    const auto rate = build.constant("rate", tf::tensor(0.1F));
    auto train = build.add("AssignAddVariableOp", "train_op");
    train.input(step.handle).input(build.constant("one", tf::tensor(std::int64_t{1}))).attr("dtype", sw::dtype::int64);
    const tf::operation for_w = build.add("ResourceApplyGradientDescent", "apply_w").input(w.handle).input(rate).input(gradients[0]);
    const tf::operation for_b = build.add("ResourceApplyGradientDescent", "apply_b").input(b.handle).input(rate).input(gradients[1]);
    train.control_input(for_w).control_input(for_b).build();
    build.add_to_collection("train_op", "train_op");
    return std::move(build).finish();
  };
  const std::vector<float> x = {-1, 0, 1, 2};
  const std::vector<float> y = {-2, 1, 4, 7};
  const auto train_until = [&](std::int64_t last) {
    auto graph = build_line();
    auto session = sw::monitored_training_session(graph, {.checkpoint_dir = directory.path(), .config = one_thread()},
                                                  sw::nan_tensor_hook{"loss"}, sw::stop_at_step_hook{{.last_step = last}});
    const auto begun = session.global_step();
    while (!session.should_stop()) { session.run(sw::feed("x:0", x), sw::feed("y:0", y)); }
    const auto values = session.raw_session().run_apart({"w/read", "b/read"});
    session.close();
    return std::tuple(begun, values[0].as<float>(), values[1].as<float>());
  };
  CHECK(std::get<0>(train_until(100)) == 0);
  const auto [begun, w, b] = train_until(200);
  CHECK(begun == 100);
  CHECK(std::abs(w - 3) < 1e-3F);
  CHECK(std::abs(b - 1) < 1e-3F);
  CHECK_THROWS_AS(tf::graph_builder().add("NoSuchOperation", "a").build(), sw::error);
  CHECK(tf::graph::import_meta_graph(directory / "model.ckpt-200.meta").collection("train_op").size() == 1);
}

TEST_CASE("a SavedModel starts with its saved values", "[tensorflow][real]") {
  const test::log_capture quiet;
  const test::temporary_directory directory;
  test::wire::MetaGraphDef meta;
  std::ifstream in(data + "/graph/adam_resource/model.ckpt-0.meta", std::ios::binary);
  REQUIRE(meta.ParseFromString(std::string(std::istreambuf_iterator<char>(in), {})));
  meta.mutable_meta_info_def()->clear_tags();
  meta.mutable_meta_info_def()->add_tags("train");
  test::wire::SavedModel model;
  model.add_meta_graphs(meta.SerializeAsString());
  test::write_file(directory / "saved_model.pb", model.SerializeAsString());
  fs::create_directory(directory / "variables");
  for (const std::string part : {".index", ".data-00000-of-00001"}) {
    fs::copy(data + "/graph/adam_resource/model.ckpt-20" + part, directory / "variables/variables" + part);
  }
  CHECK_THROWS_WITH(tf::graph::load_saved_model(directory.path(), {"serve"}), ContainsSubstring("there is: train"));
  auto graph = tf::graph::load_saved_model(directory.path(), {"train"});
  auto session = sw::monitored_training_session(graph, {.config = one_thread()});
  CHECK(session.global_step() == 20);
}

TEST_CASE("a string variable, a table and a string feed work", "[tensorflow][real]") {
  const test::log_capture quiet;
  const test::temporary_directory directory;
  auto graph = tf::graph::import_meta_graph(data + "/graph/words/model.ckpt-0.meta");
  auto session = sw::monitored_training_session(graph, {.checkpoint_dir = directory.path(), .config = one_thread()});
  const std::vector<std::string> tokens = {"token0", "token31", "token3", "token49", "nothing", "token1"};
  const auto [ids, shown] = session.run(sw::fetch("ids", "shown"), sw::feed("tokens:0", tokens));
  CHECK(ids.as<std::vector<std::int64_t>>()[1] == 31);
  CHECK(shown.strings().front() == "<run of words>");
  session.close();
  CHECK(sw::checkpoint_reader(directory / "model.ckpt-0").read("label").strings().front() == "run of words");
}

TEST_CASE("an update that one run fetches is not executed by a later run that fetches less", "[tensorflow][real]") {
  const test::log_capture quiet;
  tf::graph_builder build;
  const auto w = build.variable("w", tf::tensor(0.5F));
  const auto step = build.variable("global_step", tf::tensor(std::int64_t{0}));
  const auto one = build.constant("one", tf::tensor(std::int64_t{1}));
  const tf::output counter =
      build.add("VariableV2", "counter").attr("dtype", sw::dtype::int64).attr("shape", sw::tensor_shape{});  // a reference variable
  build.add("Assign", "begin").input(counter).input(build.constant("zero", tf::tensor(std::int64_t{0}))).build();
  build.add("AssignAdd", "count").input(counter).input(one).build();  // TensorFlow's registry does not call it stateful
  build.add("Square", "loss").input(w.value).build();
  build.add("AssignAddVariableOp", "train_op").input(step.handle).input(one).attr("dtype", sw::dtype::int64).build();
  build.add_to_collection("train_op", "train_op");
  auto graph = std::move(build).finish();
  auto session = sw::monitored_training_session(graph, {.config = one_thread()});
  session.run(sw::target("begin"));
  for (int i = 0; i < 3; ++i) { session.run(sw::fetch("loss", "count"), sw::target("train_op")); }
  for (int i = 0; i < 3; ++i) { session.run(sw::fetch("loss"), sw::target("train_op")); }
  CHECK(session.raw_session().run_apart({"counter"}).front().as<std::int64_t>() == 3);
  CHECK(session.global_step() == 6);
}

TEST_CASE("a run returns the values that it feeds, in a graph with and without a global step", "[tensorflow][real]") {
  const test::log_capture quiet;
  for (const bool has_step : {false, true}) {
    tf::graph_builder build;
    build.add("Placeholder", "x").attr("dtype", sw::dtype::float32).attr("shape", sw::tensor_shape{}).build();
    if (has_step) { build.variable("global_step", tf::tensor(std::int64_t{0})); }
    auto graph = std::move(build).finish();
    auto session = sw::monitored_training_session(graph);
    const auto [x] = session.run(sw::fetch<float>("x:0"), sw::feed("x:0", 0.5));
    CHECK(x == 0.5F);
    CHECK(session.raw_session().run_apart({"x"}, {}, {{"x", tf::tensor(2.0F)}}).front().as<float>() == 2);
    CHECK(session.raw_session().run_apart({}).empty());
  }
}

TEST_CASE("numbers that are fed to a half or a bfloat16 reach TensorFlow", "[tensorflow][real]") {
  const test::log_capture quiet;
  for (const auto type : {sw::dtype::half, sw::dtype::bfloat16}) {
    tf::graph_builder build;
    const tf::output x = build.add("Placeholder", "x").attr("dtype", type).attr("shape", sw::tensor_shape{2});
    build.add("Cast", "y").input(x).attr("DstT", sw::dtype::float32).build();
    auto graph = std::move(build).finish();
    auto session = sw::monitored_training_session(graph);
    const auto [y] = session.run(sw::fetch<std::vector<float>>("y:0"), sw::feed("x:0", std::vector<double>{0.5, 0.1}));
    CHECK(y == std::vector<float>{0.5F, type == sw::dtype::half ? 0.0999755859375F : 0.10009765625F});
    const auto [whole] = session.run(sw::fetch<std::vector<float>>("y:0"), sw::feed("x:0", std::vector<int>{-3, 2}));
    CHECK(whole == std::vector<float>{-3, 2});
  }
}

TEST_CASE("a tensor for which TensorFlow has no memory is an error", "[tensorflow][real]") {
  CHECK_THROWS_AS(tf::tensor(sw::dtype::float32, {std::int64_t{1} << 40, 2}), sw::resource_exhausted_error);
  CHECK_THROWS_AS(tf::tensor(sw::dtype::string, {std::int64_t{1} << 40}), sw::resource_exhausted_error);
}
