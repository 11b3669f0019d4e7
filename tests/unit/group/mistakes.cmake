# SPDX-License-Identifier: Apache-2.0
#
# Copies of the sources of groups in which one mistake at a time can be switched on: `active_mistake` selects it. They show that random
# schedules find mistakes in the protocol. A copy without an active mistake is the original.
#   MISTAKE_SOURCES   the copies
#   MISTAKE_HEADERS   the folder of mistakes.hpp, which lists the mistakes

set(MISTAKE_HEADERS ${CMAKE_CURRENT_BINARY_DIR}/group_mistakes)
set(MISTAKE_SOURCES)
set(mistake_names)

# mistakes_in(FILE NAME ORIGINAL MISTAKE...): writes a copy of FILE. Each ORIGINAL occurs once. In MISTAKE, `NAME?` is true if the mistake is
# switched on. If ORIGINAL is not there, the test does not find the mistake, and fails.
function(mistakes_in file)
  set(source ${PROJECT_SOURCE_DIR}/${file})
  file(READ ${source} text)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  math(EXPR last "${ARGC} - 1")
  foreach(at RANGE 1 ${last} 3)
    math(EXPR original_at "${at} + 1")
    math(EXPR mistake_at "${at} + 2")
    set(name "${ARGV${at}}")
    set(original "${ARGV${original_at}}")
    set(mistake "${ARGV${mistake_at}}")
    string(FIND "${text}" "${original}" first)
    string(FIND "${text}" "${original}" final REVERSE)
    if(first EQUAL -1 OR NOT first EQUAL final)
      message(WARNING "${file} must contain this text once, for the mistake ${name} in tests/unit/group/mistakes.cmake: ${original}")
    endif()
    string(REPLACE "IS_ON" "bool{::stepwell::test::active_mistake == ::stepwell::test::mistake::${name}}" mistake "${mistake}")
    string(REPLACE "${original}" "${mistake}" text "${text}")
    list(APPEND mistake_names ${name})
  endforeach()
  cmake_path(GET file FILENAME name)
  file(CONFIGURE OUTPUT ${MISTAKE_HEADERS}/${name} CONTENT "#include \"mistakes.hpp\"\n@text@" @ONLY)
  set(mistake_names ${mistake_names} PARENT_SCOPE)
  set(MISTAKE_SOURCES ${MISTAKE_SOURCES} ${MISTAKE_HEADERS}/${name} PARENT_SCOPE)
endfunction()

mistakes_in(src/stepwell/group/detail/group_store.cpp
  a_former_member_stays_a_member
  [[if (mine->identity != self_.identity) {]]
  [[if (!IS_ON && mine->identity != self_.identity) {]]

  the_generation_does_not_increase
  [[std::max(made.generation, process.number + 1)]]
  [[std::max(made.generation, process.number + (IS_ON ? 0 : 1))]]

  only_the_chief_counts_generations
  [[for (const auto& [rank, process] : joined) {]]
  [[for (auto [rank, process] : joined) {
      if (IS_ON && rank != 0) { process.number = 0; }]]

  the_patience_is_skipped
  [[how_.time.now() - since >= how_.patience]]
  [[(IS_ON || how_.time.now() - since >= how_.patience)]]

  the_minimum_is_ignored
  [[is_enough = count >= how_.min_size]]
  [[is_enough = IS_ON || count >= how_.min_size]]

  the_first_formation_shrinks
  [[const bool may_shrink = is_after_loss]]
  [[const bool may_shrink = (IS_ON || is_after_loss)]]

  nobody_trains_without_the_lost_process
  [[if (is_complete || may_shrink)]]
  [[if (is_complete || (may_shrink && !IS_ON))]]

  an_ended_process_is_awaited
  [[cause > 0)]]
  [[!IS_ON && cause > 0)]]

  the_lost_generation_is_taken_again
  [[if (formed.generation <= how_.last_generation)]]
  [[if (!IS_ON && formed.generation <= how_.last_generation)]]

  all_formations_have_one_name
  [[newest.number + 1]]
  [[(IS_ON ? 0 : newest.number) + 1]]

  a_former_chief_is_not_rejected
  [[check();
      if (is_complete]]
  [[if (!IS_ON) { check(); }
      if (is_complete]]

  the_end_of_the_training_is_overlooked
  [[check();  // rank 0 may have ended]]
  [[if (!IS_ON) { check(); }]]

  a_lost_store_ends_the_formation
  [[is_chief_there = false;]]
  [[if (IS_ON) { throw; }
        is_chief_there = false;]])

mistakes_in(src/stepwell/group/detail/formation_wait.cpp
  the_time_limit_is_ignored
  [[if (now >= how_.until) {]]
  [[if (!IS_ON && now >= how_.until) {]])

mistakes_in(src/stepwell/group/group.cpp
  the_vote_is_ignored
  [[if (starts_with_nan(type, elements))]]
  [[if (!IS_ON && starts_with_nan(type, elements))]]

  the_vote_of_integers_is_ignored
  [[add(type, with_lane);]]
  [[add(type, with_lane);
  if (IS_ON) { std::ranges::fill(std::span(with_lane).last(size_of(type)), std::byte{}); }]]

  nobody_tells_that_it_leaves
  [[if (size() == 1 || !collective_ || std::exchange]]
  [[if (IS_ON || size() == 1 || !collective_ || std::exchange]]

  nobody_announces_its_end
  [[engine_->announce_end(cause);]]
  [[if (!IS_ON) { engine_->announce_end(cause); }]]

  the_cause_is_not_sent
  [[static_cast<void>(values_of_all(cause));]]
  [[if (!IS_ON) { static_cast<void>(values_of_all(cause)); }]]

  leaving_before_the_first_sum_looks_like_a_sum
  [[values_of_all(-cause)]]
  [[values_of_all(IS_ON ? cause : -cause)]]

  a_discarded_step_counts
  [[throw out_of_range_error(fmt::format("rank {} of the group has ended the training", rank));]]
  [[if (!IS_ON) { throw out_of_range_error(fmt::format("rank {} of the group has ended the training", rank)); }]]

  the_vote_of_a_lost_generation_counts
  [[voted_step_.reset();]]
  [[if (!IS_ON) { voted_step_.reset(); }]]

  the_elements_of_a_lost_generation_count
  [[payload_ = {};]]
  [[if (!IS_ON) { payload_ = {}; }]])

mistakes_in(tests/support/group_schedule.cpp
  a_former_chief_saves
  [[if (writer != highest_) { return false; }]]
  [[if (writer != highest_ && !IS_ON) { return false; }]]

  the_session_does_not_restore
  [[step_ = saved_ = shared.step;]]
  [[if (IS_ON && step_ > 0) { return; }
    step_ = saved_ = shared.step;]])

list(JOIN mistake_names ",\n  " enumerators)
list(TRANSFORM mistake_names REPLACE "(.+)" "{mistake::\\1, \"\\1\"}" OUTPUT_VARIABLE mistake_list)
list(JOIN mistake_list ",\n    " mistake_list)
file(CONFIGURE OUTPUT ${MISTAKE_HEADERS}/mistakes.hpp @ONLY CONTENT
"#pragma once
#include <optional>
#include <utility>
namespace stepwell::test {
enum class mistake {
  none,
  @enumerators@
};
inline mistake active_mistake = mistake::none;
inline constexpr std::pair<mistake, const char*> mistakes[] = {
    @mistake_list@};
}
")
