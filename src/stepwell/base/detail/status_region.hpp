// SPDX-License-Identifier: Apache-2.0
//
// Private: lines at the bottom of a terminal that are drawn over themselves, such as progress bars, and text that is printed above them.
#pragma once

#include "stepwell/base/detail/locks.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell::detail {

/// The lines of one terminal. The cursor is at the end of the last line, so that nothing is lost if other code prints.
/// @threads Any.
class status_region {
public:
  using output = std::function<void(std::string_view)>;

  /// `write` writes to the terminal. It must not use this object.
  explicit status_region(output write) : write_(std::move(write)) {}
  status_region(const status_region&) = delete;
  status_region& operator=(const status_region&) = delete;

  /// Returns the region of standard error. All sessions and the log of the process share it. At the exit of the process, and before
  /// `std::terminate` writes its message, the line of the cursor is ended.
  [[nodiscard]] static const std::shared_ptr<status_region>& of_stderr();

  /// Adds an empty line below the others, which is not drawn until it has a text. Returns its number.
  [[nodiscard]] std::uint64_t add();
  /// Draws all lines, with a new text for one of them. The text must not contain line feeds, and must be shorter than the terminal is wide.
  void set(std::uint64_t line, std::string text);
  /// Removes a line, and leaves its text above the others.
  void remove(std::uint64_t line);

  /// Writes `text`, which consists of whole lines, above the lines of the region.
  void print(std::string_view text);
  /// Calls `write` while no line is drawn. `write` prints whole lines on the same terminal.
  void print_by(const std::function<void()>& write);

private:
  struct row {
    std::uint64_t number;
    std::string text;
  };

  [[nodiscard]] std::string erased() const STEPWELL_HOLDS(mutex_);
  [[nodiscard]] std::string redrawn() const STEPWELL_HOLDS(mutex_);
  void draw_with(std::string_view above) STEPWELL_HOLDS(mutex_);

  const output write_;
  checked_mutex mutex_;
  std::vector<row> rows_ STEPWELL_GUARDED_BY(mutex_);
  std::size_t drawn_ STEPWELL_GUARDED_BY(mutex_) = 0;  // number of lines on the terminal
  std::uint64_t next_ STEPWELL_GUARDED_BY(mutex_) = 1;
};

/// One line of a region. The destructor removes it, and leaves its text above the others.
class status_line {
public:
  explicit status_line(std::shared_ptr<status_region> region) : region_(std::move(region)), number_(region_->add()) {}
  status_line(const status_line&) = delete;
  status_line& operator=(const status_line&) = delete;
  ~status_line() { region_->remove(number_); }

  void set(std::string text) { region_->set(number_, std::move(text)); }

private:
  std::shared_ptr<status_region> region_;
  std::uint64_t number_;
};

}  // namespace stepwell::detail
