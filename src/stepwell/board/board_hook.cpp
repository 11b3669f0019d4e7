// SPDX-License-Identifier: Apache-2.0
#include "stepwell/board/board_hook.hpp"

#include "stepwell/base/clock.hpp"
#include "stepwell/base/detail/default_float_mode.hpp"
#include "stepwell/base/detail/failure_kind.hpp"
#include "stepwell/base/detail/failure_text.hpp"
#include "stepwell/base/detail/thread.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/base/trace.hpp"
#include "stepwell/board/detail/board_service.hpp"
#include "stepwell/board/http_server.hpp"
#include "stepwell/group/group.hpp"
#include "stepwell/io/file_system.hpp"
#include "stepwell/protocol/detail/boundary_work.hpp"

#include <boost/asio/post.hpp>
#include <boost/system/system_error.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <future>
#include <iterator>
#include <map>
#include <string_view>

namespace stepwell {
namespace board {
namespace {

constexpr int depth_beside_run = 1;  // directories beside that of the session
constexpr int depth_of_directory = 6;
constexpr std::size_t measured_steps = 20;
constexpr std::size_t most_board_connections = 256;
constexpr std::size_t most_board_streams = 128;

void check(const board_options& options) {
  detail::refuse_negative("update_secs", options.update_secs);
  static_cast<void>(is_loopback(options.address));
}

/// A server with its thread.
class running_server {
public:
  /// @errors `unavailable_error` if the address cannot be used.
  running_server(const board_options& options, std::string token, answering answers)
      : scheme_(options.certificate_file.empty() ? "http" : "https"), token_(std::move(token)), address_(options.address) {
    server_options how{.address = options.address,
                       .port = options.port,
                       .max_connections = most_board_connections,
                       .max_streams = most_board_streams,
                       .certificate_file = options.certificate_file,
                       .private_key_file = options.private_key_file};
    try {
      open(how, answers);
    } catch (const boost::system::system_error& failure) {
      if (failure.code() != boost::asio::error::address_in_use || how.port == 0) { throw_unusable(how, failure); }
      log_warning(fmt::format("board: port {} is in use; a free port is chosen", how.port));
      how.port = 0;
      open(how, answers);
    }
    server_->start();
    thread_ = value_or_throw(detail::start_thread("board", [this] {
      const detail::default_float_mode mode;  // not that of the thread that trains
      set_thread_name("board");
      loop_.run();
      has_ended_.set_value();
    }));
    const auto url = this->url();
    if (options.on_ready) {
      options.on_ready(url);
    } else {
      print_line("board: " + url);
    }
  }
  running_server(const running_server&) = delete;
  running_server& operator=(const running_server&) = delete;
  ~running_server() {
    if (!thread_.joinable()) { return; }
    boost::asio::post(loop_, [this] { server_->stop(); });
    constexpr std::chrono::milliseconds longest_wait{300};  // for slow clients
    if (has_ended_.get_future().wait_for(longest_wait) != std::future_status::ready) { loop_.stop(); }
    thread_.join();
  }

  [[nodiscard]] std::string url() const {
    const bool is_v6 = address_.find(':') != std::string::npos;
    return fmt::format("{}://{}:{}/#token={}", scheme_, is_v6 ? "[" + address_ + "]" : address_, server_->port(), token_);
  }

private:
  void open(const server_options& how, const answering& answers) {
    try {
      server_ = std::make_unique<http_server>(loop_, how, answers);
    } catch (const boost::system::system_error& failure) {
      if (failure.code() == boost::asio::error::address_in_use && how.port != 0) { throw; }
      throw_unusable(how, failure);
    }
  }
  [[noreturn]] static void throw_unusable(const server_options& how, const boost::system::system_error& failure) {
    throw unavailable_error(fmt::format("board: cannot listen on {} port {}: {}", how.address, how.port, failure.code().message()));
  }

  boost::asio::io_context loop_{1};
  std::unique_ptr<http_server> server_;
  std::string_view scheme_;
  std::string token_;
  std::string address_;
  std::promise<void> has_ended_;
  detail::owned_thread thread_;
};

/// Measures the parts of a step from the spans of its trace.
class step_meter final : public boundary_work {
public:
  explicit step_meter(std::shared_ptr<clock> time) : time_(std::move(time)), recorder_(std::make_shared<trace_recorder>(time_)) {}

  [[nodiscard]] const std::shared_ptr<trace_recorder>& recorder() const noexcept { return recorder_; }
  void begin() {
    is_open_ = true;
    began_ = time_->now();
  }

  /// Called at the end of the boundary after a traced run.
  void end_trace() override {
    if (!std::exchange(is_open_, false)) { return; }
    const auto observed = recorder_->take();
    ended_ = time_->now();
    sample one;
    const auto seconds = [](clock::duration length) { return std::chrono::duration<double>(length).count(); };
    double known = 0;
    bool has_run = false;  // a run that failed before may have none
    for (const auto& span : observed.spans) {
      if (span.category != "session") { continue; }
      const auto length = seconds(span.end - span.begin);
      const std::string_view name = span.name;
      constexpr std::string_view hook = "hook ";
      constexpr std::string_view own = "hook board_hook<";
      if (name == "run") {
        one.model += length;
        has_run = true;
      } else if (name == "boundary") {
        one.io += length;
      } else if (name.starts_with(own)) {
        // The board itself works in measured runs only, so its time is no part of an ordinary step.
      } else if (name.starts_with(hook)) {
        one.hooks[std::string(name.substr(hook.size(), name.find_first_of("< ", hook.size()) - hook.size()))] += length;
      } else {
        continue;
      }
      known += length;
    }
    one.other = std::max(0.0, seconds(*ended_ - began_) - known);
    kept_ = observed;
    if (has_run) { samples_.push_back(std::move(one)); }
    if (samples_.size() > measured_steps) { samples_.erase(samples_.begin()); }
  }

  /// Called when the next run begins: the time since the boundary is the wait for data, and the body of the loop.
  void note_next_run() {
    if (!ended_) { return; }
    if (!samples_.empty()) { samples_.back().data = std::chrono::duration<double>(time_->now() - *ended_).count(); }
    ended_.reset();
  }

  /// Returns the spans of the last traced run, once.
  [[nodiscard]] std::optional<run_metadata> take_spans() { return std::exchange(kept_, std::nullopt); }

  [[nodiscard]] std::optional<board::step_time> means() const {
    if (samples_.empty()) { return std::nullopt; }
    board::step_time all{.samples = samples_.size()};
    std::map<std::string, double> hooks;
    const double part = 1 / static_cast<double>(samples_.size());
    for (const auto& one : samples_) {
      all.model += part * one.model;
      all.data += part * one.data;
      all.io += part * one.io;
      all.other += part * one.other;
      for (const auto& [name, seconds] : one.hooks) { hooks[name] += part * seconds; }
    }
    all.hooks.assign(hooks.begin(), hooks.end());
    std::ranges::sort(all.hooks, std::ranges::greater(), &std::pair<std::string, double>::second);
    return all;
  }

private:
  struct sample {
    double model = 0;
    double data = 0;
    double io = 0;
    double other = 0;
    std::map<std::string, double> hooks;
  };

  std::shared_ptr<clock> time_;
  std::shared_ptr<trace_recorder> recorder_;
  bool is_open_ = false;
  clock::time_point began_;
  std::optional<clock::time_point> ended_;
  std::optional<run_metadata> kept_;
  std::vector<sample> samples_;
};

}  // namespace

struct session_board::state {
  explicit state(board_options given) : options(std::move(given)) {}

  board_options options;
  std::shared_ptr<clock> time;
  std::shared_ptr<live_state> live = std::make_shared<live_state>();
  std::shared_ptr<step_meter> meter;
  session_view view;
  std::string last_failure;
  std::int64_t rollbacks = 0;
  struct save_counts {
    std::int64_t saves;
    std::int64_t failed;
    std::int64_t skipped;
    std::int64_t in_flight;
    std::int64_t step;
  };
  save_counts at_last_look{};
  // of pending checkpoints: the counts of the look before the request, and the first step after it
  std::map<std::uint64_t, save_counts> requested;
  std::map<std::uint64_t, run_metadata> tracing;  // of pending traces
  std::unique_ptr<log_listener> listener;
  std::unique_ptr<running_server> server;  // last: its thread uses the other members

  /// Makes what the page shows of the session.
  void show(const session_requests& session, std::int64_t step) {
    at_last_look = counts();
    view.time = detail::wall_seconds(time->wall_now());
    view.step = step;
    view.last_step = session.last_step();
    if (session.stop_requested()) {
      view.stopping_because = session.signals()->why().text;
      view.phase = "stopping";
    }
    if (const auto epoch = session.epoch()) { view.epoch = epoch; }
    view.restored_from = session.restored_from();
    view.watched = session.watched()->read();
    view.stop_conditions = session.stop_conditions();
    for (auto& one : view.stop_conditions) {
      if (one.end) { one.reached = one.limit - std::chrono::duration<double>(*one.end - time->now()).count(); }
    }
    if (const auto& group = session.group(); group && group->is_formed()) {
      view.group = group_place{group->rank(), group->size(), group->generation(), group->launched(), group->members()};
    }
    view.notes = session.shown();
    view.metrics = session.metrics();
    view.step_time = meter->means();
    live->set(view);
  }

  [[nodiscard]] save_counts counts() const {
    const auto& m = view.metrics;
    const auto in_flight = (m.under_way.writing_bytes > 0 ? 1 : 0) + (m.under_way.waiting_bytes > 0 ? 1 : 0);
    return {m.saves, m.saves_failed, m.saves_skipped, in_flight, view.step};
  }

  void advance_checkpoint(action_record& action, std::int64_t step) {
    const auto now = counts();
    const auto [known, is_new] = requested.try_emplace(action.id, at_last_look);
    if (is_new) { known->second.step = step; }  // the save may be made at the boundary after this step
    const auto before = known->second;
    const auto finish = [&](std::string how, std::string text) {
      action.state = std::move(how);
      action.text = std::move(text);
      action.step = step;
      requested.erase(action.id);
    };
    if (now.failed > before.failed) { return finish("failed", "the save failed; see the log"); }
    if (now.skipped > before.skipped) { return finish("failed", "the save was skipped, because the disk is too slow"); }
    if (!view.metrics.under_way.empty()) {
      action.text = "saving";
    } else if (now.saves > before.saves + before.in_flight) {
      finish("done", "the checkpoint is durable");
    } else if (step > before.step + 2) {
      finish("done", now.saves > before.saves ? "the checkpoint is durable" : "the state was saved already");
    }
  }

  /// Returns the trace if it is complete.
  std::optional<run_metadata> advance_trace(action_record& action, std::int64_t step, std::optional<run_metadata>& spans) {
    const auto [found, is_new] = tracing.try_emplace(action.id);
    if (is_new || !spans) { return std::nullopt; }  // spans of an earlier step do not belong to the trace
    auto& all = found->second;
    if (all.spans.empty()) {
      all = std::move(*spans);
    } else {
      std::ranges::move(spans->spans, std::back_inserter(all.spans));
      all.lost += spans->lost;
    }
    if (--action.steps > 0) { return std::nullopt; }
    action.state = "done";
    action.has_trace = true;
    action.step = step;
    action.text = "the trace is complete";
    auto complete = std::move(all);
    tracing.erase(found);
    return complete;
  }

  /// Looks at the requests of clients. Returns true if a trace is not complete.
  bool advance_actions(const session_requests& session, std::int64_t step) {
    auto spans = meter->take_spans();
    bool is_traced = false;
    live->each_pending(detail::wall_seconds(time->wall_now()), [&](action_record& action) -> std::optional<run_metadata> {
      if (action.action == "checkpoint") { advance_checkpoint(action, step); }
      if (action.action == "stop" && session.stop_requested()) {
        action.state = "done";
        action.step = step;
        action.text = "the session stops after step " + std::to_string(step);
      }
      if (action.action != "trace") { return std::nullopt; }
      auto trace = advance_trace(action, step, spans);
      is_traced = is_traced || action.state == "pending";
      return trace;
    });
    return is_traced;
  }

  /// Finishes all requests, because the session ends.
  void end_actions(std::int64_t step) {
    live->each_pending(detail::wall_seconds(time->wall_now()), [&](action_record& action) -> std::optional<run_metadata> {
      const bool is_stop = action.action == "stop";
      action.state = is_stop ? "done" : "failed";
      action.step = step;
      action.text = is_stop ? "the session stopped after step " + std::to_string(step) : "the session ended before";
      return std::nullopt;
    });
  }

  /// Notes a recovery, which has created the session again.
  void note_recovery(std::int64_t step) {
    const bool is_rollback = std::exchange(rollbacks, view.metrics.rollbacks) != view.metrics.rollbacks;
    live->add_mark({is_rollback ? "rollback" : "recovery", step, detail::wall_seconds(time->wall_now()),
                    (is_rollback ? "rolled back: " : "recovered: ") + last_failure});
  }

  void open(const session_requests& session) {
    const auto& events = session.event_directory();
    auto root = options.runs_directory;
    if (root.empty() && !events.empty()) { root = io::parent_directory(value_or_throw(io::absolute_path(events))); }
    const auto title = !session.name().empty() ? session.name() : !events.empty() ? io::base_name(events) : std::string("session");
    const auto token = options.token.empty() ? random_token() : options.token;
    const auto service = std::make_shared<board_service>(
        service_options{.title = title,
                        .directory = events,
                        .needs_token_to_read = !is_loopback(options.address),
                        .live = live,
                        .checkpoint_directory = session.directory(),
                        .live_directory = events,
                        .signals = session.signals(),
                        .time = time},
        access_rules(options.hosts, token), run_directory(io::posix_file_system(), root, root.empty() ? -1 : depth_beside_run));
    listener = std::make_unique<log_listener>([live = live, time = time](log_level level, std::string_view text) {
      live->add_log(detail::wall_seconds(time->wall_now()), level, text);
    });
    server = std::make_unique<running_server>(options, token, [service](const request& asked) { return service->answer_to(asked); });
  }
};

session_board::session_board(board_options options) {
  check(options);
  state_ = std::make_shared<state>(std::move(options));
}
session_board::session_board(session_board&&) noexcept = default;
session_board::~session_board() = default;

void session_board::start(const session_requests& session, std::int64_t step) {
  auto& of = *state_;
  const bool is_first = of.server == nullptr;
  if (is_first) {
    of.time = session.time();
    of.meter = std::make_shared<step_meter>(of.time);
    of.view.started = detail::wall_seconds(of.time->wall_now());
    of.view.first_step = step;
  }
  timer_ = second_or_step_timer({.every_secs = of.options.update_secs.duration()}, of.time);
  timer_.update_last_triggered_step(step);
  session.add_work(of.meter);
  of.view.phase = "running";
  of.view.steps_per_second.reset();
  of.show(session, step);
  if (is_first) {
    of.open(session);
  } else {
    of.note_recovery(step);
  }
}

bool session_board::begin_run(const session_requests& session, std::int64_t step) {
  auto& of = *state_;
  of.meter->note_next_run();
  has_more_ = is_traced_;
  if (!is_traced_ && !timer_.should_trigger_for_step(step)) { return false; }
  if (session.trace()) { return false; }  // another hook traces this run
  has_more_ = true;
  session.trace_into(of.meter->recorder());
  of.meter->begin();
  return true;
}

void session_board::look(const session_requests& session, std::int64_t step) {
  auto& of = *state_;
  if (timer_.should_trigger_for_step(step)) {
    const auto elapsed = timer_.update_last_triggered_step(step);
    if (elapsed && elapsed->steps > 0 && elapsed->seconds.count() > 0) {
      const double rate = static_cast<double>(elapsed->steps) / elapsed->seconds.count();
      of.view.steps_per_second = of.view.steps_per_second ? 0.7 * *of.view.steps_per_second + 0.3 * rate : rate;
    }
    of.show(session, step);
  }
  is_traced_ = of.live->has_pending() && of.advance_actions(session, step);
  has_more_ = has_more_ || is_traced_;
}

void session_board::note_failure(const session_requests& session, const std::exception_ptr& failure) {
  auto& of = *state_;
  if (!of.time) { return; }
  // The session passes null if it is left by an exception that it does not know.
  of.last_failure = failure ? detail::text_of(failure) : "an exception outside the session";
  of.view.phase = detail::is_transient(detail::kind_of(failure)) ? "recovering" : "failed";
  of.view.metrics = session.metrics();
  if (of.server) { of.live->set(of.view); }
}

void session_board::end(const session_requests& session, std::int64_t step) {
  auto& of = *state_;
  if (!of.time) { return; }
  of.show(session, step);
  of.end_actions(step);
  of.view.phase = "ended";
  of.live->set(of.view);
  of.live->add_event("end", R"({"phase":"ended"})");
}

std::string session_board::url() const { return state_->server ? state_->server->url() : std::string(); }

}  // namespace board

struct directory_board::state {
  explicit state(const board_options& options)
      : token(options.token.empty() ? board::random_token() : options.token),
        service(std::make_shared<board::board_service>(
            board::service_options{.title = io::base_name(value_or_throw(io::absolute_path(options.runs_directory))),
                                   .directory = options.runs_directory,
                                   .needs_token_to_read = !board::is_loopback(options.address)},
            board::access_rules(options.hosts, token),
            board::run_directory(io::posix_file_system(), options.runs_directory, board::depth_of_directory))),
        server(options, token, [service = service](const board::request& asked) { return service->answer_to(asked); }) {}

  std::string token;
  std::shared_ptr<board::board_service> service;
  board::running_server server;
};

directory_board::directory_board(board_options options) {
  board::check(options);
  const auto info = io::posix_file_system()->stat(options.runs_directory);
  if (info && !info->is_directory) { throw invalid_argument_error("the directory of the board is a file: " + options.runs_directory); }
  if (!info) { log_warning("board: there is no directory " + options.runs_directory + " yet; its runs appear when it is made"); }
  state_ = std::make_unique<state>(options);
}
directory_board::directory_board(directory_board&&) noexcept = default;
directory_board::~directory_board() = default;

std::string directory_board::url() const { return state_->server.url(); }

}  // namespace stepwell
