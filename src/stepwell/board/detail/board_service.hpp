// SPDX-License-Identifier: Apache-2.0
//
// The answers of the board, as openapi.yaml describes them. Independent of sockets and of the type of a session.
#pragma once

#include "stepwell/board/detail/live_state.hpp"
#include "stepwell/board/detail/run_history.hpp"
#include "stepwell/board/http.hpp"
#include "stepwell/protocol/session_signals.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace stepwell::board {

/// What the service shows.
struct service_options {
  std::string title;
  std::string directory;  ///< As the user gave it.
  bool needs_token_to_read = false;
  std::shared_ptr<live_state> live = nullptr;  ///< Null: a directory is shown, without a session.
  std::string checkpoint_directory = {};       ///< Of the session. Empty: it saves no checkpoints.
  std::string live_directory = {};             ///< The directory of the session's event files. Empty: it has none.
  std::shared_ptr<session_signals> signals = nullptr;
  std::shared_ptr<clock> time = system_clock();
};

/// The answers to all requests of the board.
/// @threads The server's thread.
class board_service : public std::enable_shared_from_this<board_service> {
public:
  board_service(service_options options, access_rules rules, run_directory runs);
  ~board_service();

  [[nodiscard]] answer answer_to(const request& asked);

  /// Adds the events for the changes since the last call. Called by each stream before it looks for events.
  void pump();
  /// Returns the events after `last` as text, and sets `last` to the newest one.
  [[nodiscard]] std::string events_text(std::uint64_t& last);

private:
  class routes;
  friend class routes;
  struct state;
  std::unique_ptr<state> state_;
};

/// The page and its Content-Security-Policy. Generated from page/.
extern const std::string_view page_text;
extern const std::string_view page_policy;
/// The file openapi.yaml.
extern const std::string_view interface_text;

}  // namespace stepwell::board
