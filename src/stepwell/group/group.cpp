// SPDX-License-Identifier: Apache-2.0
#include "stepwell/group/group.hpp"

#include "stepwell/base/detail/failure_text.hpp"
#include "stepwell/base/detail/visit_dtype.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/kernel/detail/crc32c.hpp"
#include "stepwell/kernel/detail/statistics.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace stepwell {

namespace {

/// The bits of the infinity of a type that can carry the vote by a NaN; 0 for other types.
constexpr std::uint64_t infinity_of(dtype type) noexcept {
  switch (type) {
    case dtype::float32: return 0x7f80'0000;
    case dtype::float64: return 0x7ff0'0000'0000'0000;
    case dtype::half: return 0x7c00;
    case dtype::bfloat16: return 0x7f80;
    default: return 0;
  }
}

/// The two types of nearly all models are tested here, because a call of a kernel takes 1 % of the time of a small sum.
bool starts_with_nan(dtype type, std::span<const std::byte> elements) {
  switch (type) {
    case dtype::float32: return std::isnan(detail::element_at<float>(elements, 0));
    case dtype::float64: return std::isnan(detail::element_at<double>(elements, 0));
    default: return kernel::any_nan(elements_view{type, elements.first(size_of(type))});
  }
}

void write_nan(dtype type, std::span<std::byte> elements) noexcept {
  const auto infinity = infinity_of(type);
  const auto nan = infinity | infinity >> 1U;
  std::memcpy(elements.data(), &nan, size_of(type));
}

}  // namespace

group::group(std::unique_ptr<engine> with, group_options options)
    : engine_(std::move(with)), options_(options), place_(place{engine_->rank(), engine_->size()}) {
  if (options_.min_size < 0 || options_.min_size > engine_->size()) {
    throw invalid_argument_error(
        fmt::format("group: min_size is {}; it must be between 0 and the size of the group, {}", options_.min_size, engine_->size()));
  }
  detail::refuse_negative("group: patience_secs", options_.patience_secs);
  detail::refuse_negative("group: parts", options_.parts);
  if (options_.min_size == 0) { options_.min_size = engine_->size(); }
}

group::~group() = default;

// ---- operations

[[gnu::always_inline]] inline void group::check_formed(std::string_view what) const {
  if (!collective_) [[unlikely]] { throw_unformed(what); }
}

void group::throw_unformed(std::string_view what) {
  throw failed_precondition_error(
      fmt::format("cannot {}: the group is not formed; a session forms it (training_options::group), and its steps use it", what));
}

/// Checks that the group is formed, and that no hook is called before the step.
void group::check_usable(std::string_view what) const {
  check_formed(what);
  if (session_.running_step) { static_cast<void>(session_.running_step()); }
}

/// Calls `operation` of the collective. A failure ends the collective.
template<class Operation>
[[gnu::always_inline]] inline void group::guarded(std::string_view what, Operation operation) {
  try {
    operation(*collective_);
  } catch (...) {
    end_after_failure(what);
    throw;
  }
}

/// Ends the collective because of the exception that is being handled.
void group::end_after_failure(std::string_view what) {
  const auto why = detail::text_of(std::current_exception());
  log_info(fmt::format("could not {} in generation {} of the group: {}", what, generation(), why));
  abandon(why);
}

[[gnu::always_inline]] inline void group::add(dtype type, std::span<std::byte> elements) {
  guarded("sum", [&](collective& all) { all.sum(type, elements); });
}

void group::sum_elements(dtype type, std::span<std::byte> elements) {
  if (size() == 1) { return; }
  check_formed("sum");
  const auto step = session_.running_step ? session_.running_step() : std::nullopt;
  if (!step || (step == voted_step_ && !has_ended_)) { return add(type, elements); }
  sum_with_vote(type, elements);
  voted_step_ = step;
}

bool group::sum_on_gpu(dtype type, std::span<std::byte> elements) {
  if (size() == 1) { return true; }
  check_formed("sum");
  if (!collective_->adds_on_gpu()) { return false; }
  sum_elements(dtype::int64, {});  // carries the vote, which the host must read
  guarded("sum", [&](collective& all) { all.sum_on_gpu(type, elements); });
  return true;
}

void group::broadcast_bytes(std::span<std::byte> bytes) {
  if (size() == 1) { return; }
  check_usable("broadcast");
  guarded("broadcast", [&](collective& all) { all.broadcast(bytes); });
}

std::vector<std::int64_t> group::values_of_all(std::int64_t mine) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(size()));
  all[static_cast<std::size_t>(rank())] = mine;
  add(dtype::int64, std::as_writable_bytes(std::span(all)));
  return all;
}

/// Returns the bytes of `variables` in all processes, one after the other. Adding integers of which all but one are zero changes no bit.
std::vector<std::byte> group::bytes_of_all(const variable_list& variables) {
  check_usable("merge");
  std::size_t bytes = 0;
  for (const auto& variable : variables) {
    if (variable.holds_strings()) {
      throw invalid_argument_error(
          fmt::format("group: the variable \"{}\" of the metric holds strings; only metrics whose variables are numbers can be merged",
                      variable.name()));
    }
    bytes += variable.size_bytes();
  }
  const auto each = (bytes + sizeof(std::int64_t) - 1) / sizeof(std::int64_t) * sizeof(std::int64_t);
  std::vector<std::byte> all(each * static_cast<std::size_t>(size()));
  auto mine = std::span(all).subspan(each * static_cast<std::size_t>(rank()), each);
  for (const auto& variable : variables) {
    variable.copy_to(mine.first(variable.size_bytes()));
    mine = mine.subspan(variable.size_bytes());
  }
  add(dtype::int64, all);
  return all;
}

void group::assign(const variable_list& variables, std::span<const std::byte> bytes) {
  for (const auto& variable : variables) {
    variable.copy_from(bytes.first(variable.size_bytes()));
    bytes = bytes.subspan(variable.size_bytes());
  }
}

void group::compare(std::string_view what, std::string_view text) {
  if (size() == 1) { return; }
  const auto all = values_of_all(kernel::crc32c(std::as_bytes(std::span(text))));
  std::vector<int> others;
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (all[i] != all[0]) { others.push_back(collective_->members()[i]); }
  }
  if (others.empty()) { return; }
  const auto mine = fmt::format("; this is rank {}, with: {}", engine_->rank(), text);
  throw failed_precondition_error(
      fmt::format("the {} of rank 0 and of rank {} of the group differ; all processes must run the same program "
                  "with the same model and data{}",
                  what, fmt::join(others, ", "), mine));
}

void group::share(std::vector<std::byte>& bytes) {
  if (size() == 1) { return; }
  auto length = static_cast<std::int64_t>(bytes.size());
  broadcast(length);
  detail::with_memory("could not receive the state of the group", {}, [&] { bytes.resize(static_cast<std::size_t>(length)); });
  broadcast_bytes(bytes);
}

// ---- the vote: the first sum of each step contains whether a process has ended the training

/// A process that has ended the training adds a NaN to the first element. Only if the sum is NaN there, one more sum is needed to see whether
/// a process has ended, or the model has a NaN. An integer has an additional element instead.
[[gnu::always_inline]] inline void group::sum_with_vote(dtype type, std::span<std::byte> elements) {
  if (const payload mine{type, elements.size()}; has_ended_ || payload_ != mine) [[unlikely]] { check_first_sum(mine); }
  if (infinity_of(type) == 0 || elements.empty()) { return sum_with_lane(type, elements); }
  add(type, elements);
  if (starts_with_nan(type, elements)) [[unlikely]] { discard_step_if_ended(values_of_all(0)); }
}

/// Checks the first sum of a step whose payload is new, and that this process has not ended the training.
void group::check_first_sum(payload mine) {
  if (has_ended_) { throw out_of_range_error("the training of the group has ended"); }
  if (infinity_of(mine.type) == 0 && mine.type != dtype::int64) {
    throw invalid_argument_error(
        fmt::format("group: the first sum of a step has the type {}; it must be a floating-point type or int64", to_string(mine.type)));
  }
  if (payload_ == payload()) { compare_payloads(mine); }
  if (payload_ != mine) {
    throw invalid_argument_error(
        fmt::format("group: the first sum of this step has {} bytes of type {}, that of an earlier step has {} bytes of type {}; it must "
                    "be the same in all steps",
                    mine.bytes, to_string(mine.type), payload_.bytes, to_string(payload_.type)));
  }
}

/// Adds integers with an additional element for the vote.
void group::sum_with_lane(dtype type, std::span<std::byte> elements) {
  if (elements.empty()) { return discard_step_if_ended(values_of_all(0)); }
  std::vector<std::byte> with_lane(elements.begin(), elements.end());
  with_lane.resize(elements.size() + size_of(type));
  add(type, with_lane);
  if (std::ranges::any_of(std::span(with_lane).last(size_of(type)), [](auto one) { return one != std::byte{}; })) {
    discard_step_if_ended(values_of_all(0));
  }
  std::copy_n(with_lane.begin(), elements.size(), elements.begin());
}

/// Checks that all processes add the same elements in the first sum of a step. A process that has ended gives its cause as a negative number.
void group::compare_payloads(const payload& mine) {
  const auto code = static_cast<std::int64_t>(mine.bytes) * 64 + static_cast<std::int64_t>(mine.type);
  auto all = values_of_all(code);
  const auto differs = std::ranges::find_if(all, [&](auto one) { return one >= 0 && one != code; });
  if (differs != all.end()) {
    throw invalid_argument_error(fmt::format(
        "group: the first sum of a step has {} bytes of type {} in rank {}, and {} bytes of type {} in rank {}; all must add the same elements",
        mine.bytes, to_string(mine.type), engine_->rank(), *differs / 64, to_string(static_cast<dtype>(*differs % 64)),
        collective_->members()[static_cast<std::size_t>(differs - all.begin())]));
  }
  for (auto& one : all) { one = one < 0 ? -one : 0; }
  discard_step_if_ended(all);
  payload_ = mine;
}

void group::discard_step_if_ended(const std::vector<std::int64_t>& causes) {
  const auto first = std::ranges::find_if(causes, [](auto one) { return one != 0; });
  if (first == causes.end()) { return; }
  has_ended_ = true;
  announce_end(*first);  // rank 0 may lose the group in this sum, as in `leave`
  const auto rank = collective_->members()[static_cast<std::size_t>(first - causes.begin())];
  if (session_.stop) { session_.stop(rank, *first); }
  throw out_of_range_error(fmt::format("rank {} of the group has ended the training", rank));
}

/// Announces the end to rank 0, which perhaps loses the group in the last sum. It then does not wait for this process.
void group::announce_end(std::int64_t cause) {
  if (engine_->rank() == 0) { return; }
  try {
    engine_->announce_end(cause);
  } catch (const unavailable_error& failed) { log_info(fmt::format("could not announce the end of the training: {}", failed.what())); }
}

void group::leave(std::int64_t cause) {
  if (size() == 1 || !collective_ || std::exchange(has_ended_, true)) { return; }
  announce_end(cause);  // before the last sum, because rank 0 may end right after it
  if (payload_ == payload()) { return static_cast<void>(values_of_all(-cause)); }
  std::vector<std::byte> last(payload_.bytes + (payload_.type == dtype::int64 ? sizeof(std::int64_t) : 0));
  if (payload_.type == dtype::int64 && payload_.bytes > 0) { last[payload_.bytes] = std::byte{1}; }
  if (infinity_of(payload_.type) != 0 && !last.empty()) { write_nan(payload_.type, last); }
  if (payload_.bytes > 0) { add(payload_.type, last); }
  static_cast<void>(values_of_all(cause));
}

// ---- forming

void group::form(const forming& how, session_hooks session) {
  if (collective_ && owner_ != how.owner) {
    throw failed_precondition_error(
        "another session uses this group; close that session first, or make a group of its own for each session");
  }
  close();
  owner_ = how.owner;
  session_ = std::move(session);
  payload_ = {};
  voted_step_.reset();
  has_ended_ = false;
  const auto last = generation();
  if (is_lost_ && !engine_->can_form_again()) {
    throw failed_precondition_error(fmt::format(
        "{} cannot form the group again in this process; start all processes again, and they continue from the newest checkpoint",
        engine_->name()));
  }
  auto formed = engine_->form({.time = *how.time,
                               .stop = how.stop,
                               .until = how.until,
                               .min_size = options_.min_size,
                               .patience = detail::as_duration(options_.patience_secs),
                               .last_generation = last,
                               .is_recovery = is_lost_,
                               .check = how.check});
  collective_ = std::move(formed.processes);
  const auto& members = collective_->members();
  const auto mine = std::ranges::find(members, engine_->rank());
  place_ = place{static_cast<int>(mine - members.begin()), static_cast<int>(members.size())};
  generation_ = formed.generation;
  is_lost_ = false;
  if (engine_->size() == 1) { return; }
  log_info(fmt::format("{} of {} processes form generation {} of the group with {}; this is rank {}", members.size(), engine_->size(),
                       generation(), engine_->name(), engine_->rank()));
  if (formed.ended && session_.finish_without) { session_.finish_without(formed.ended->rank, formed.ended->cause); }
}

std::string group::description() const {
  return fmt::format("generation {} with the ranks {} of {}, connected by {}", generation(), fmt::join(collective_->members(), ", "),
                     engine_->size(), engine_->name());
}

void group::abandon(std::string_view why) noexcept {
  if (!collective_) { return; }
  is_lost_ = true;
  collective_->abandon(why);
  close();
}

void group::close() noexcept { collective_.reset(); }

}  // namespace stepwell
