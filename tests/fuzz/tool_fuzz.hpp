// SPDX-License-Identifier: Apache-2.0
//
// Functions of the fuzz targets: splitting the input, and running commands on files in memory.
#pragma once

#include "support/memory_files.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/base/log.hpp>
#include <tool/output.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::test {

/// The fuzzer's input, which is split from the front.
class fuzz_bytes {
public:
  fuzz_bytes(const std::uint8_t* data, std::size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

  [[nodiscard]] bool empty() const noexcept { return rest_.empty(); }
  [[nodiscard]] unsigned byte() { return rest_.empty() ? 0 : static_cast<unsigned char>(take(1).front()); }
  /// Returns a piece, preceded by its length in two bytes. Returns the remaining bytes if there are fewer.
  [[nodiscard]] std::string_view piece() {
    const std::size_t low = byte();
    return take(low + 256 * byte());
  }
  [[nodiscard]] std::string_view rest() { return take(rest_.size()); }

private:
  std::string_view take(std::size_t count) {
    const auto taken = rest_.substr(0, count);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  std::string_view rest_;
};

/// Returns true if `text` contains a control character other than a line feed.
inline bool steers_terminal(std::string_view text) {
  unsigned char before = 0;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if ((byte < 0x20 && byte != '\n') || byte == 0x7f || (before == 0xc2 && byte >= 0x80 && byte < 0xa0)) { return true; }
    before = byte;
  }
  return false;
}

using command = std::function<tool::exit_code(tool::console&)>;

/// Runs the commands on files in memory; they may throw `stepwell::error`. Aborts the program if a command fails
/// without a message or prints terminal control codes.
inline void run_all(const std::shared_ptr<memory_files>& files, const std::vector<command>& commands) {
  set_log_level(log_level::error);  // thousands of warnings are expected
  for (const auto& run : commands) {
    std::ostringstream out;
    std::ostringstream err;
    tool::console to{.out = out, .err = err, .files = files};
    try {
      const auto how = run(to);
      if (how != tool::exit_code::good && how != tool::exit_code::differs && err.view().empty()) { std::abort(); }
    } catch (const error&) {
      continue;  // the command line prints this error
    }
    if (steers_terminal(out.view()) || steers_terminal(err.view())) { std::abort(); }
  }
}

}  // namespace stepwell::test
