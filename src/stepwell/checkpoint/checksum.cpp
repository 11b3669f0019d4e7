// SPDX-License-Identifier: Apache-2.0
#include "stepwell/checkpoint/checksum.hpp"

#include "stepwell/kernel/detail/crc32c.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell {
namespace {

/// A checksum to which values are added. The size of a text is added before it, so that no two lists of texts are alike.
class running_checksum {
public:
  void add(std::span<const std::byte> bytes) { crc_ = kernel::crc32c(bytes, crc_); }
  template<class Number>
  void add_number(Number value) {
    add(std::as_bytes(std::span(&value, 1)));
  }
  void add_text(std::string_view text) {
    add_number(text.size());
    add(std::as_bytes(std::span(text)));
  }
  void add_elements(const variable_ref& variable) {
    if (variable.is_addressable()) { return add(variable.bytes()); }
    std::vector<std::byte> copy(variable.size_bytes());
    variable.copy_to(std::span(copy));
    add(copy);
  }
  void add_strings(const variable_ref& variable) {
    std::vector<std::string> copy(static_cast<std::size_t>(element_count(variable.shape())));
    variable.copy_to(std::span(copy));
    for (const auto& text : copy) { add_text(text); }
  }
  [[nodiscard]] std::uint32_t value() const noexcept { return crc_; }

private:
  std::uint32_t crc_ = 0;
};

}  // namespace

std::uint32_t checksum(const variable_list& variables) {
  running_checksum sum;
  for (const auto& variable : variables) {
    sum.add_text(variable.name());
    sum.add_number(static_cast<int>(variable.dtype()));
    sum.add_number(variable.shape().size());
    for (const auto size : variable.shape()) { sum.add_number(size); }
    if (variable.holds_strings()) {
      sum.add_strings(variable);
    } else {
      sum.add_elements(variable);
    }
  }
  return sum.value();
}

}  // namespace stepwell
