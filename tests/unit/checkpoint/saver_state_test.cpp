// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/checkpoint/detail/saver_state.hpp>

#include <string>

using stepwell::detail::saver_phase;

namespace {

/// Returns one character for each phase: `x` if a saver may go there from `from`.
std::string allowed_from(saver_phase from) {
  std::string row;
  for (auto to = saver_phase::open; to <= saver_phase::released; to = saver_phase(int(to) + 1)) {
    row += stepwell::detail::is_allowed(from, to) ? 'x' : '.';
  }
  return row;
}

}  // namespace

TEST_CASE("a closed saver never accepts snapshots again, and a directory is released once", "[saver]") {
  CHECK(allowed_from(saver_phase::open) == ".xxx..");
  CHECK(allowed_from(saver_phase::late) == "x.xx..");
  CHECK(allowed_from(saver_phase::closing) == "...xx.");
  CHECK(allowed_from(saver_phase::detached) == "....x.");
  CHECK(allowed_from(saver_phase::releasing) == ".....x");
  CHECK(allowed_from(saver_phase::released) == "......");
}

TEST_CASE("a saver is late from a drain that reached its deadline to one that did not, unless it is closed", "[saver]") {
  stepwell::detail::saver_state state;
  state.note_drain(true);
  CHECK(state.phase() == saver_phase::open);
  state.note_drain(false);
  state.note_drain(false);
  CHECK(state.phase() == saver_phase::late);
  CHECK_FALSE(state.is_closed());
  state.note_drain(true);
  CHECK(state.phase() == saver_phase::open);
  state.to(saver_phase::closing);
  state.note_drain(false);
  CHECK(state.phase() == saver_phase::closing);
  CHECK(state.is_closed());
}
