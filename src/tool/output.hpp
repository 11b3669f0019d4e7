// SPDX-License-Identifier: Apache-2.0
//
// The environment of a command, and the text that it prints: errors, numbers, names and tables.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/tensor.hpp"
#include "stepwell/io/file_system.hpp"
#include "tool/exit_code.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell::tool {

/// The environment of a command.
struct console {
  std::ostream& out;
  std::ostream& err;
  int width = 80;        ///< Columns of the terminal.
  bool colours = false;  ///< True if `out` supports colours.
  bool ascii = false;    ///< True if only ASCII characters may be printed, except as JSON and CSV.
  std::shared_ptr<io::file_system> files = io::posix_file_system();
  std::shared_ptr<stepwell::clock> time = system_clock();
  std::stop_token stop = {};  ///< Ends commands that would run forever.
};

/// Colours and styles of text.
enum class ink { plain, bold, dim, red, green, yellow, blue, magenta, cyan };

/// Returns `text` between the control codes of a colour, or unchanged if `to` has no colours.
[[nodiscard]] std::string paint(const console& to, ink colour, std::string_view text);

/// Writes a line with `what`, made printable, to the error stream.
void print_error(console& to, std::string_view what);

/// Returns text of a file in a form that can be printed: control bytes and invalid UTF-8 are escaped ("\x1b"), so that a name cannot
/// control the terminal. Escaping twice changes nothing. Use the other overload for text that is printed to a console.
[[nodiscard]] std::string printable(std::string_view text);

/// Like the other overload. If `to` is restricted to ASCII, other bytes are escaped, too.
[[nodiscard]] std::string printable(const console& to, std::string_view text);

/// Returns the number of columns of `text`. It counts code points, which is exact except for wide and combining characters.
[[nodiscard]] std::size_t columns_of(std::string_view text) noexcept;

/// Returns a size such as "17 B" or "1.2 MiB".
[[nodiscard]] std::string size_text(std::uint64_t bytes);

/// Returns "1 file" or "2 files".
[[nodiscard]] std::string count_text(std::uint64_t count, std::string_view noun);

/// Returns the number with at most six digits: "0.123457", "1.2e+09", "nan".
[[nodiscard]] std::string number_text(double value);

/// Returns "2026-11-22 05:34:04" for seconds since 1970, in UTC; "-" if the year is not one of 0 to 9999.
[[nodiscard]] std::string time_text(double seconds);

/// Returns a duration such as "1.5 s", "2 min 3 s", "3 h 20 min", or "2 d 4 h".
[[nodiscard]] std::string duration_text(double seconds);

/// Like `to_string`, but returns "dtype 99" for an unknown number.
[[nodiscard]] std::string dtype_text(dtype type);

/// One cell. Its text must be printable. If the console is restricted to ASCII, the table escapes other bytes.
struct cell {
  cell(std::string text_, ink colour_ = ink::plain) : text(std::move(text_)), colour(colour_) {}
  cell(const char* text_) : text(text_) {}
  std::string text;
  ink colour = ink::plain;
};

/// A table with a heading.
class text_table {
public:
  /// Creates a table. A heading that begins with '>' makes a right-aligned column of numbers.
  explicit text_table(std::vector<std::string> headings);

  void add(std::vector<cell> row) { rows_.push_back(std::move(row)); }
  [[nodiscard]] bool empty() const noexcept { return rows_.empty(); }
  void print(console& to) const;

private:
  [[nodiscard]] std::vector<std::size_t> widths() const;
  void print_rows(console& to) const;
  void print_row(console& to, const std::vector<cell>& row, const std::vector<std::size_t>& widths) const;

  std::vector<cell> headings_;
  std::vector<bool> is_right_;
  std::vector<std::vector<cell>> rows_;
};

}  // namespace stepwell::tool
