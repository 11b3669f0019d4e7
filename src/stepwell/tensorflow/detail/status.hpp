// SPDX-License-Identifier: Apache-2.0
//
// The status of a call into TensorFlow, and its conversion to an exception.
#pragma once

#include "stepwell/base/error.hpp"

#include <string>
#include <string_view>

namespace stepwell::tensorflow::detail {

namespace c {
struct status;
}

/// A status object of the library.
class call_status {
public:
  call_status();
  call_status(const call_status&) = delete;
  call_status& operator=(const call_status&) = delete;
  ~call_status();

  [[nodiscard]] c::status* get() const noexcept { return status_; }
  [[nodiscard]] bool ok() const noexcept;
  [[nodiscard]] errc code() const noexcept;
  [[nodiscard]] std::string message() const;

  /// Throws the failure, if any, as the exception of its code. The message is "`tried` `on`: TensorFlow's text".
  void check(std::string_view tried, std::string_view on = {}) const {
    if (!ok()) [[unlikely]] { fail(tried, on); }
  }
  /// Throws the failure. `more`, if it is not empty, ends the message.
  [[noreturn]] void fail(std::string_view tried, std::string_view on, std::string_view more = {}) const;

private:
  c::status* status_;
};

}  // namespace stepwell::tensorflow::detail
