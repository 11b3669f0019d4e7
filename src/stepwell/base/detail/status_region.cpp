// SPDX-License-Identifier: Apache-2.0
#include "stepwell/base/detail/status_region.hpp"

#include "stepwell/base/detail/locks.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>

namespace stepwell::detail {
namespace {

void write_to_stderr(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

const std::shared_ptr<status_region>& status_region::of_stderr() {
  static constexpr auto end_line = []() STEPWELL_UNCHECKED_LOCKS {  // the process ends: a thread may hold the lock for ever
    const auto& region = *of_stderr();
    if (region.drawn_ != 0) { write_to_stderr("\n"); }
  };
  static std::terminate_handler terminate_before = nullptr;
  // Never destroyed: threads may log while static objects are destroyed.
  static const auto* const instance = [] {
    std::atexit(end_line);
    // An uncaught exception calls std::terminate. The lines are then still drawn, because the stack need not be unwound.
    terminate_before = std::set_terminate([] {
      end_line();
      if (terminate_before != nullptr) { terminate_before(); }
      std::abort();
    });
    return new std::shared_ptr<status_region>(std::make_shared<status_region>(write_to_stderr));
  }();
  return *instance;
}

std::uint64_t status_region::add() {
  const mutex_lock lock(mutex_);
  rows_.push_back({next_, {}});
  return next_++;
}

void status_region::set(std::uint64_t line, std::string text) {
  const mutex_lock lock(mutex_);
  const auto found = std::ranges::find(rows_, line, &row::number);
  if (found == rows_.end()) { return; }
  found->text = std::move(text);
  draw_with({});
}

void status_region::remove(std::uint64_t line) {
  const mutex_lock lock(mutex_);
  const auto found = std::ranges::find(rows_, line, &row::number);
  if (found == rows_.end()) { return; }
  const auto last = std::exchange(found->text, {});
  rows_.erase(found);
  if (!last.empty()) { draw_with(last + '\n'); }
}

void status_region::print(std::string_view text) {
  const mutex_lock lock(mutex_);
  draw_with(text);
}

void status_region::print_by(const std::function<void()>& write) {
  const mutex_lock lock(mutex_);
  if (drawn_ != 0) { write_(erased()); }
  drawn_ = 0;
  write();
  if (const auto lines = redrawn(); !lines.empty()) { draw_with({}); }
}

/// Returns the control codes that erase the lines and move the cursor to the begin of the first one.
std::string status_region::erased() const {
  std::string codes;
  if (drawn_ == 0) { return codes; }
  codes = "\r";
  for (std::size_t i = 1; i < drawn_; ++i) { codes += "\x1b[A"; }
  return codes + (drawn_ == 1 ? "\x1b[K" : "\x1b[J");
}

std::string status_region::redrawn() const {
  std::string lines;
  for (const auto& row : rows_) {
    if (row.text.empty()) { continue; }
    lines += lines.empty() ? "" : "\n";
    lines += row.text;
  }
  return lines;
}

/// Writes everything in one piece, so that the terminal does not flicker.
void status_region::draw_with(std::string_view above) {
  auto text = erased();
  text += above;
  text += redrawn();
  drawn_ = static_cast<std::size_t>(std::ranges::count_if(rows_, [](const row& one) { return !one.text.empty(); }));
  if (!text.empty()) { write_(text); }
}

}  // namespace stepwell::detail
