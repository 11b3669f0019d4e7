// SPDX-License-Identifier: Apache-2.0
#include "stepwell/tensorflow/training.hpp"

#include "stepwell/base/clock.hpp"
#include "stepwell/base/detail/failure_kind.hpp"
#include "stepwell/base/detail/locks.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/checkpoint/detail/checkpoint_directory.hpp"
#include "stepwell/checkpoint/find_checkpoints.hpp"
#include "stepwell/creation/session_manager.hpp"
#include "stepwell/format/detail/coding.hpp"
#include "stepwell/format/events/event.hpp"
#include "stepwell/format/proto/summary.pb.h"
#include "stepwell/io/atomic_file.hpp"
#include "stepwell/io/file_system.hpp"
#include "stepwell/tensorflow/detail/cluster_tasks.hpp"
#include "stepwell/tensorflow/detail/config.hpp"
#include "stepwell/tensorflow/detail/graph_state.hpp"
#include "stepwell/tensorflow/detail/meta_graph.hpp"
#include "stepwell/tensorflow/detail/saved_variables.hpp"
#include "stepwell/tensorflow/detail/session_core.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell {
namespace tensorflow::detail {
namespace {

io::file_system& files_of(const std::shared_ptr<io::file_system>& given) { return given ? *given : *io::posix_file_system(); }

/// Returns an Event message whose summary is encoded already.
std::string encode_event_of(double wall_time, std::int64_t step, std::string_view summary) {
  std::string event(1 + sizeof wall_time, 0x09);  // field 1, eight bytes
  for (auto [i, bits] = std::pair(1U, std::bit_cast<std::uint64_t>(wall_time)); i < event.size(); ++i, bits >>= 8U) {
    event[i] = static_cast<char>(bits & 0xFFU);
  }
  event.push_back(0x10);  // field 2, a varint
  format::append_varint(event, static_cast<std::uint64_t>(step));
  event.push_back(0x2A);  // field 5, a message
  format::append_varint(event, summary.size());
  return event.append(summary);
}

/// Returns true if a value of an encoded summary has metadata.
bool has_metadata(const std::string& encoded) {
  ::tensorflow::Summary values;
  return values.ParseFromString(encoded) && std::ranges::any_of(values.value(), [](const auto& value) { return value.has_metadata(); });
}

void write_meta_graph(const graph_state& graph, io::file_system& files, const std::string& prefix) {
  value_or_throw(io::write_file_atomically(files, prefix + ".meta", std::string_view(graph.meta_graph_bytes)));
}

/// Writes a ".meta" file beside each checkpoint.
class meta_graph_listener final : public checkpoint_saver_listener {
public:
  meta_graph_listener(std::shared_ptr<graph_state> graph, std::shared_ptr<io::file_system> files)
      : graph_(std::move(graph)), files_(std::move(files)) {}

  bool after_save(const saved_checkpoint& saved) override {
    write_meta_graph(*graph_, files_of(files_), saved.prefix);
    return false;
  }

private:
  std::shared_ptr<graph_state> graph_;
  std::shared_ptr<io::file_system> files_;
};

/// The session that queue runners use at present. Runners exist before their sessions, and outlive one through a recovery.
class present_session {
public:
  void set(std::shared_ptr<const session_core> core) {
    const stepwell::detail::mutex_lock lock(mutex_);
    core_ = std::move(core);
  }
  void run(const std::string& operation) const {
    const auto core = get();
    if (!core) { throw cancelled_error("the session of the queue runner is closed"); }
    static_cast<void>(core->run_operations({}, {core->graph->get(split_tensor_name(operation).first, "operation of a queue runner")},
                                           "could not run \"" + operation + "\" of a queue runner"));
  }

private:
  std::shared_ptr<const session_core> get() const {
    const stepwell::detail::mutex_lock lock(mutex_);
    return core_;
  }
  mutable stepwell::detail::checked_mutex mutex_;
  std::shared_ptr<const session_core> core_ STEPWELL_GUARDED_BY(mutex_);
};

/// The queue of a queue runner, in the graph.
struct graph_queue {
  std::string queue_name;
  std::string close_op;
  std::string cancel_op;
  std::shared_ptr<present_session> session;

  [[nodiscard]] const std::string& name() const noexcept { return queue_name; }
  void close(bool cancel_pending_enqueues) const { session->run(cancel_pending_enqueues ? cancel_op : close_op); }
};

exception_set closed_exceptions(const std::vector<int>& codes) {
  if (codes.empty()) { return {errc::out_of_range}; }
  return exception_set([codes](const std::exception_ptr& failure) {
    const auto kind = stepwell::detail::kind_of(failure);
    return kind && std::ranges::find(codes, static_cast<int>(*kind)) != codes.end();
  });
}

}  // namespace

/// The part of a `graph_hook` that its header does not show.
class graph_work {
public:
  graph_work(std::shared_ptr<graph_state> graph, const training_options& options, const graph_options& of_graph)
      : graph_(std::move(graph)), present_(std::make_shared<present_session>()), files_(options.saves.saver.file_system) {
    if (of_graph.save_meta_graph) { meta_dir_ = options.checkpoint_dir; }
    if (of_graph.save_graph_def) {
      checkpoint_dir_ = options.checkpoint_dir;
      event_dir_ = options.summary_dir;
      events_ = stepwell::detail::event_options(options);
    }
    if (options.is_chief) { make_runners(); }
  }
  graph_work(const graph_work&) = delete;
  graph_work& operator=(const graph_work&) = delete;
  ~graph_work() { present_->set(nullptr); }

  void start(const std::shared_ptr<const session_core>& core, std::int64_t step, coordinator& threads) {
    if (!std::exchange(is_written_, true)) {
      write_graph(step);
      write_missing_meta_graph();
    }
    present_->set(core);
    if (!runners_.empty()) { static_cast<void>(start_queue_runners(core.get(), threads, runners_)); }
  }

private:
  void write_graph(std::int64_t step) {
    if (!checkpoint_dir_.empty()) {
      const auto text = value_or_throw(graph_text(graph_->parts.graph_def));
      auto& files = files_of(files_);
      value_or_throw(io::write_file_atomically(files, io::join_path(checkpoint_dir_, "graph.pbtxt"), std::string_view(text)));
    }
    if (event_dir_.empty()) { return; }
    const auto out = summary::writer::shared(event_dir_, events_);
    out->add_graph(graph_->parts.graph_def, step);
    out->add_meta_graph(graph_->meta_graph_bytes, step);
    out_ = out;  // keeps the file open for the hooks that write to it
  }

  /// A process that is killed after it saved a checkpoint may not have written its ".meta" file.
  void write_missing_meta_graph() const {
    if (meta_dir_.empty()) { return; }
    auto& files = files_of(files_);
    const auto newest = latest_checkpoint(meta_dir_, files_);
    if (newest && !value_or_throw(files.exists(*newest + ".meta"))) { write_meta_graph(*graph_, files, *newest); }
  }

  void make_runners() {
    const auto found = graph_->parts.messages.find("queue_runners");
    if (found == graph_->parts.messages.end()) { return; }
    for (const auto& bytes : found->second) {
      auto parsed = parse_queue_runner(bytes);
      if (!parsed) { throw data_loss_error(parsed.error().message, graph_->place + ", collection \"queue_runners\""); }
      add_runner(*parsed);
    }
  }
  void add_runner(const queue_runner_def& made) {
    for (const auto& name : {made.close_op_name, made.cancel_op_name}) { check(name); }
    auto& queue = *queues_.emplace_back(
        std::make_unique<graph_queue>(graph_queue{made.queue_name, made.close_op_name, made.cancel_op_name, present_}));
    std::vector<enqueue_op> ops;
    for (const auto& name : made.enqueue_op_names) {
      check(name);
      ops.push_back({name, [present = present_, name](const std::stop_token&) { present->run(name); }});
    }
    const auto copy = queue;  // the threads may outlive this object
    runners_.push_back(std::make_shared<queue_runner>(queue, std::move(ops),
                                                      queue_runner_options{[copy] { copy.close(false); }, [copy] { copy.close(true); },
                                                                           closed_exceptions(made.queue_closed_exception_types)}));
  }
  void check(const std::string& name) const {
    static_cast<void>(graph_->get(split_tensor_name(name).first, "collection \"queue_runners\", operation"));
  }

  std::shared_ptr<graph_state> graph_;
  std::shared_ptr<present_session> present_;
  std::shared_ptr<io::file_system> files_;
  std::string meta_dir_;
  std::string checkpoint_dir_;
  std::string event_dir_;
  summary::writer_options events_;
  std::shared_ptr<summary::writer> out_;
  std::vector<std::unique_ptr<graph_queue>> queues_;
  std::vector<std::shared_ptr<queue_runner>> runners_;
  bool is_written_ = false;
};

graph_hook::graph_hook(std::shared_ptr<graph_state> graph, const training_options& options, const graph_options& of_graph)
    : work_(std::make_shared<graph_work>(std::move(graph), options, of_graph)) {}
void graph_hook::start(const graph_session& raw, std::int64_t step, coordinator& threads) { work_->start(raw.core(), step, threads); }

graph_session_creator::graph_session_creator(std::shared_ptr<graph_state> graph, std::shared_ptr<scaffold<graph_session>> with,
                                             const training_options& options, graph_options of_graph)
    : graph_(std::move(graph)), scaffold_(std::move(with)), options_{.operations = std::move(of_graph.operations),
                                                                     .runtime = std::move(of_graph.runtime),
                                                                     .target = stepwell::detail::target_of(options)},
      keeps_initial_state_(stepwell::detail::keeps_initial_state(options)), max_wait_secs_(options.max_wait_secs),
      recovery_wait_(options.recovery_wait) {}

/// Waits for the master and for the tasks that the graph names, because the tasks of a cluster are started in any order, and because
/// TensorFlow waits without a limit for a task that it needs.
void graph_session_creator::wait_for_servers(session_creation& creation) const {
  if (options_.target.master.empty()) { return; }
  const auto silent = [&] { return sentence_about_tasks(options_.target.master, timeout_of(options_), &graph_->tasks); };
  stepwell::detail::wait_until_ready(creation, max_wait_secs_, recovery_wait_, silent, [](clock::time_point) { return std::nullopt; });
}

graph_session graph_session_creator::create_session(session_creation& creation) {
  wait_for_servers(creation);
  scaffold<graph_session> own;
  auto& with = scaffold_ ? *scaffold_ : own;
  const auto manager = stepwell::detail::manager_for<graph_session>(with, recovery_wait_);
  graph_session raw(graph_, options_);
  if (options_.target.is_chief) {
    manager.prepare_session(raw, creation, {}, {with.init_op(), with.init_fn(), keeps_initial_state_});
  } else {
    manager.wait_for_session(raw, creation, max_wait_secs_);
  }
  return raw;
}

namespace {

/// Lets the SaverDef say how many checkpoints are kept, unless the options do.
void take_retention(const saver_def& saver, training_options& options) {
  constexpr double never = 10'000;  // the default of TensorFlow's Saver for hours
  const saver_options defaults;
  auto& given = options.saves.saver;
  const bool is_default = given.max_to_keep.is_default() || given.max_to_keep.given() == defaults.max_to_keep.given();
  if (is_default && saver.max_to_keep >= 0) { given.max_to_keep = saver.max_to_keep; }
  const bool keeps_by_hours = saver.keep_checkpoint_every_n_hours > 0 && saver.keep_checkpoint_every_n_hours < never;
  if (keeps_by_hours && !given.keep_every_n_hours.given()) { given.keep_every_n_hours = saver.keep_checkpoint_every_n_hours; }
}

}  // namespace

void complete(training_options& options, const graph_options& of_graph, const std::shared_ptr<graph_state>& graph,
              const std::optional<saver_options>& of_scaffold, bool has_summaries) {
  if (options.group) {
    throw invalid_argument_error(
        "monitored_training_session: a graph of TensorFlow has no group; TensorFlow's own servers train it on several machines, see master");
  }
  if (options.summaries.at_end.value_or(false)) {
    throw invalid_argument_error(
        "monitored_training_session: summaries.at_end is not available over a graph of TensorFlow, because the results of its runs "
        "cannot be copied; do not set it");
  }
  const bool saves = options.is_chief && !options.checkpoint_dir.empty();
  if (saves) {
    options.saves.saver.file_system = stepwell::detail::with_fence(std::move(options.saves.saver.file_system), options.checkpoint_dir);
  }
  if (of_graph.save_meta_graph && saves) {
    options.saves.listeners.push_back(std::make_shared<meta_graph_listener>(graph, options.saves.saver.file_system));
  }
  if (graph->parts.saver && saves && !of_scaffold) { take_retention(*graph->parts.saver, options); }
  if (options.saves.saver.shards == 1 && graph->parts.saver && graph->parts.saver->is_sharded && saves) {
    options.saves.saver.shards = variables_of(*graph).shards;
  }
  stepwell::detail::complete(options, of_scaffold, has_summaries);
}

std::string summary_name_of(const graph_state& graph, const graph_options& of_graph) {
  const auto& name = of_graph.operations.summary_op;
  return name.empty() ? graph.only_name_in("summary_op").value_or(std::string()) : name;
}

summary_saver_hook<graph_summary> graph_summaries(training_options options, std::string name) {
  if (name.empty()) { options.summary_dir.clear(); }
  return stepwell::detail::default_hooks::summaries(options, graph_summary{std::move(name)});
}

void graph_summary::write(summary::writer& out, const tensor& value, std::int64_t step) const {
  const auto wall = stepwell::detail::wall_seconds(out.time()->wall_now());
  for (const auto& encoded : value.strings()) {
    const auto bytes = encode_event_of(wall, step, encoded);
    const auto message = std::as_bytes(std::span(bytes));
    if (has_metadata(encoded)) {  // the writer writes the metadata of a tag only once, like Python's
      if (auto happened = format::decode_event(message)) {
        out.add_event(std::move(happened).value());
        continue;
      }
    }
    out.add_event_bytes(message);
  }
}

}  // namespace tensorflow::detail

}  // namespace stepwell
