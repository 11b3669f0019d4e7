// SPDX-License-Identifier: Apache-2.0
#include "stepwell/creation/session_creation.hpp"

#include "stepwell/base/log.hpp"
#include "stepwell/checkpoint/restore.hpp"
#include "stepwell/creation/detail/restore_state.hpp"

#include <exception>
#include <utility>

namespace stepwell {

void initial_state::keep(const variable_list& variables, std::int64_t step) {
  snapshot_pool one(snapshot_size(variables), 1);
  copy_.emplace(snapshot::capture(one.acquire(), variables, step));
}

bool initial_state::put_back(const variable_list& variables) const {
  if (!copy_) { return false; }
  stepwell::restore(variables, *copy_);
  return true;
}

void checkpoint_search::look_ahead(const std::function<bool(const std::exception_ptr&)>& may_pass) {
  try {
    found_ = find_ ? find_() : std::nullopt;
  } catch (...) {
    failure_ = std::current_exception();
    if (!may_pass(failure_)) { throw; }
  }
  is_ahead_ = true;
}

std::optional<checkpoint_reader> checkpoint_search::look() {
  if (!std::exchange(is_ahead_, false)) { return find_ ? find_() : std::nullopt; }
  if (auto failure = std::exchange(failure_, nullptr)) { std::rethrow_exception(failure); }
  return std::exchange(found_, std::nullopt);
}

namespace {
variable_list joined(variable_list all, variable_list more) {
  for (auto& variable : more) { all.push_back(std::move(variable)); }
  return all;
}
}  // namespace

void session_creation::restore(const variable_list& model, const checkpoint_reader& found) {
  restore_state(found, model, hooks_(), positions_);
  control_.set_restored_from(found.prefix());
}

void session_creation::keep_initial_state(const variable_list& model, std::int64_t step) { initial_.keep(joined(model, hooks_()), step); }

bool session_creation::put_back_initial_state(const variable_list& model) {
  if (!initial_.put_back(joined(model, hooks_()))) { return false; }
  log_info("no checkpoint found; the initial state of the session is restored");
  return true;
}

}  // namespace stepwell
