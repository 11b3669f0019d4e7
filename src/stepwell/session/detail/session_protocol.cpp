// SPDX-License-Identifier: Apache-2.0
#include "stepwell/session/detail/session_protocol.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/session/detail/session_engine.hpp"
#include "stepwell/session/detail/session_scripts.hpp"

#include <array>
#include <cassert>
#include <cstddef>
#include <initializer_list>

namespace stepwell::detail {

namespace {

using enum session_phase;

constexpr std::size_t phase_count = static_cast<std::size_t>(abandoned) + 1;

constexpr std::uint32_t set_of(std::initializer_list<session_phase> phases) {
  std::uint32_t set = 0;
  for (const auto phase : phases) { set |= 1U << static_cast<unsigned>(phase); }
  return set;
}

struct row {
  std::string_view name;
  std::uint32_t next;  // the phases that may follow
};

// docs/design/session-protocol.md shows this table; a test compares them.
constexpr std::array<row, phase_count> table{{
    {"created", set_of({begun, start_failed, abandoned})},
    {"begun", set_of({creating, abandoned})},
    {"creating", set_of({ready, begun, backing_off, failed_midway, lost, start_failed})},
    {"ready", set_of({stepping, at_boundary, saving, failed, failed_midway, ending, abandoned})},
    {"stepping", set_of({ready, failed, failed_midway, abandoned})},
    {"at_boundary", set_of({ready, failed})},
    {"saving", set_of({ready, failed, failed_midway})},
    {"failed", set_of({ready, stepping, saving, failed, failed_midway, leaving, ending, abandoned})},
    {"failed_midway", set_of({ready, stepping, saving, failed_midway, leaving, ending, abandoned})},
    {"leaving", set_of({backing_off, lost})},
    {"backing_off", set_of({creating, ending, abandoned})},
    {"lost", set_of({leaving, start_failed, ending, abandoned})},
    {"start_failed", set_of({abandoned})},
    {"ending", set_of({finishing, abandoned})},
    {"finishing", set_of({closed})},
    {"closed", set_of({})},
    {"abandoned", set_of({})},
}};

const row& row_of(session_phase phase) noexcept { return table[static_cast<std::size_t>(phase)]; }

}  // namespace

std::string_view name_of(session_phase phase) noexcept { return row_of(phase).name; }

bool is_allowed(session_phase from, session_phase to) noexcept { return (row_of(from).next >> static_cast<unsigned>(to) & 1U) != 0; }

void session_state::to(session_phase next) noexcept {
  assert(is_allowed(phase(), next));
  if (on_transition) { on_transition(phase(), next); }
  phase_.store(next, std::memory_order_release);
  if (next == ready) { was_ready_.store(true, std::memory_order_relaxed); }
}

session_gate& moved_from_gate() {
  struct gate_of_nothing final : session_gate {
    gate_of_nothing() : session_gate(moved_from()) {}
  };
  static gate_of_nothing gate;
  return gate;
}

void throw_moved_from() { throw failed_precondition_error("this session was moved from; use the session object to which it was moved"); }

template class session_protocol<session_engine>;

}  // namespace stepwell::detail
