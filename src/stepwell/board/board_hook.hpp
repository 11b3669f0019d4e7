// SPDX-License-Identifier: Apache-2.0
//
// A hook that serves the board: a page in a browser that shows the run, compares it with others, and can stop it or make a checkpoint.
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/hooks/detail/optional_value.hpp"
#include "stepwell/hooks/detail/watched_value.hpp"
#include "stepwell/protocol/fetch.hpp"
#include "stepwell/protocol/hook.hpp"
#include "stepwell/protocol/run_args.hpp"
#include "stepwell/protocol/run_context.hpp"
#include "stepwell/protocol/run_options.hpp"
#include "stepwell/protocol/watched_values.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell {

/// Options of `board_hook` and of a board for a directory. Every option has a default.
struct board_options {
  /// The port. If it is in use, a free port is chosen, with a warning. 0: a free port.
  std::uint16_t port = 6007;
  /// The IP address on which the board listens. If it is not that of the loopback device, other machines reach the board, and the token is
  /// needed to read, too. Then use a network that you trust, a proxy, or a certificate.
  std::string address = "127.0.0.1";
  /// More host names by which browsers may reach the board, such as "train.example:8443". A name without a port is accepted with every
  /// port.
  std::vector<std::string> hosts = {};
  /// The token that actions need. Empty: 128 random bits.
  std::string token = {};
  /// The files of a certificate with its chain and of its private key, both PEM. With them, the board speaks HTTPS only. The component needs
  /// OpenSSL for this (`STEPWELL_BOARD_TLS`).
  std::string certificate_file = {};
  std::string private_key_file = {};
  seconds_value update_secs = 0.5;  ///< Interval at which the board reads the session.
  /// The directory of the runs that the page compares. Empty: the parent directory of the session's event files.
  std::string runs_directory = {};
  /// Function that receives the URL with the token when the board can be opened. Null: the URL is written to standard output.
  std::function<void(const std::string& url)> on_ready = nullptr;
};

namespace board {

/// The part of `board_hook` that does not depend on a session.
/// @threads The session's thread. A thread of its own serves the clients.
class session_board {
public:
  /// @errors `invalid_argument_error` for invalid options.
  explicit session_board(board_options options);
  session_board(session_board&&) noexcept;
  session_board& operator=(session_board&&) = delete;
  /// Ends the server. Waits until its thread has ended, but not for clients.
  ~session_board();

  /// Starts the server at the first call. Call it again after each recovery.
  /// @errors `unavailable_error` if the address cannot be used.
  void start(const session_requests& session, std::int64_t step);
  /// Returns true if the run that begins should fetch the watched values, and be followed by `look`.
  [[nodiscard]] bool is_due(std::int64_t step) const noexcept { return timer_.should_trigger_for_step(step) || has_more_; }
  /// Begins to record the run that will end at `step`, if a measurement or a trace is due and no other hook traces this run. Returns true
  /// if the run is recorded.
  [[nodiscard]] bool begin_run(const session_requests& session, std::int64_t step);
  /// Shows the session after a step to the clients.
  void look(const session_requests& session, std::int64_t step);
  void note_failure(const session_requests& session, const std::exception_ptr& failure);
  void end(const session_requests& session, std::int64_t step);

  /// Returns the URL, with the token. Empty before `start`.
  [[nodiscard]] std::string url() const;

private:
  struct state;
  std::shared_ptr<state> state_;
  second_or_step_timer timer_;
  bool is_traced_ = false;  // a client has requested a trace, and it is not complete
  bool has_more_ = false;   // the next run is looked at, too: it is traced, or ends the measurement of this one
};

}  // namespace board

/// Serves the board on a thread of its own, from the creation of the session until the session is destroyed: `board_hook{{.port = 6007}}`.
/// The page shows everything that hooks watch (see `monitored_session::watched`), the curves of the event files of this run and of the
/// runs in its parent directory, checkpoints, log lines, and where the time of a step goes. It can request a checkpoint, a stop, and a
/// trace of some steps. Values given to the hook are watched, too: `board_hook{{}, tag("loss", &result::loss)}`.
///
/// The server does not use the session's executor. Otherwise, a step that hangs or takes long would block the page, which should display
/// such a step.
/// @cost A run that is not measured: one relaxed load and two comparisons. Once in `update_secs`, a run is measured: it fetches the watched
///       values and records a few spans.
template<class... Watched>
class board_hook {
  using pack_type = fetch_pack<detail::fetch_of<Watched>...>;

public:
  static constexpr auto phase = hook_phase::observe;

  explicit board_hook(board_options options = {}, Watched... watched)
      : board_(std::move(options)), names_{detail::name_of(watched, "loss")...}, watched_(stepwell::fetch(detail::untagged(watched)...)) {}

  void after_create_session(auto& session, auto& /*threads*/) {
    publisher_.start(session.watched(), names_);
    board_.start(session, session.global_step());
  }

  std::optional<run_args<pack_type, feed_pack<>, run_options>> before_run(auto& context) {
    is_due_ = board_.is_due(context.global_step() + 1);
    if (!is_due_) [[likely]] { return std::nullopt; }
    const auto level = board_.begin_run(context, context.global_step() + 1) ? trace_level::full : trace_level::none;
    return run_args{.fetch = pack_type(watched_), .options = run_options{.trace_level = level}};
  }

  void after_run(auto& context, const auto& values) {
    if (is_due_) [[unlikely]] { look(context, values, std::index_sequence_for<Watched...>{}); }
  }
  void on_error(auto& context, const std::exception_ptr& failure) { board_.note_failure(context, failure); }
  void end(auto& session) { board_.end(session, session.global_step()); }

  /// Returns the URL of the page, with the token. Empty before the creation of the session.
  [[nodiscard]] std::string url() const { return board_.url(); }

private:
  template<std::size_t... I>
  void look(auto& context, [[maybe_unused]] const auto& values, std::index_sequence<I...>) {
    publisher_.publish(std::array<std::optional<double>, sizeof...(I)>{detail::as_number(values.template get<I>())...},
                       context.global_step());
    board_.look(context, context.global_step());
  }

  board::session_board board_;
  std::vector<std::string> names_;
  pack_type watched_;
  value_publisher publisher_;
  bool is_due_ = false;
};

template<class... Watched>
board_hook(board_options, Watched...) -> board_hook<Watched...>;

/// A server of the board for a directory of runs, without a session. It reads an event file when a page first needs it, and then the events
/// that are appended to the file.
class directory_board {
public:
  /// Starts the server on a thread of its own. `options.runs_directory` is the directory. If it does not exist, its runs appear as soon as it
  /// is made.
  /// @errors `invalid_argument_error` if the path is that of a file, and for other invalid options. `unavailable_error` if the address cannot
  /// be used.
  explicit directory_board(board_options options);
  directory_board(directory_board&&) noexcept;
  directory_board& operator=(directory_board&&) = delete;
  ~directory_board();

  [[nodiscard]] std::string url() const;

private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace stepwell
