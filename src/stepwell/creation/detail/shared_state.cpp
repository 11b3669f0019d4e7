// SPDX-License-Identifier: Apache-2.0
#include "stepwell/creation/detail/shared_state.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/format/detail/coding.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Rank 0 sends one description of all variables, which contains the values of strings and of small variables, and then each large variable.
// The description: the step, the number of variables, and for each variable its name, dtype, shape and, unless it is large, its elements.
// Numbers are varints; a text is preceded by its length.

namespace stepwell::detail {

namespace {

constexpr std::size_t least_large = std::size_t{64} * 1024;

bool is_large(dtype type, std::size_t size) noexcept { return type != dtype::string && size >= least_large; }

void append_text(std::string& out, std::string_view text) {
  format::append_varint(out, text.size());
  out.append(text);
}

[[noreturn]] void throw_malformed() {
  throw data_loss_error("the state that rank 0 of the group sent cannot be read; all processes must run the same version of the program");
}

std::uint64_t take_number(std::string_view& in) {
  const auto number = format::take_varint(in);
  if (!number) { throw_malformed(); }
  return *number;
}

std::string_view take_text(std::string_view& in) {
  const auto size = take_number(in);
  if (size > in.size()) { throw_malformed(); }
  const auto text = in.substr(0, size);
  in.remove_prefix(size);
  return text;
}

std::string_view as_text(std::span<const std::byte> bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

void append_elements(std::string& out, const variable_ref& variable) {
  if (variable.holds_strings()) {
    std::vector<std::string> strings(static_cast<std::size_t>(element_count(variable.shape())));
    variable.copy_to(strings);
    for (const auto& text : strings) { append_text(out, text); }
  } else {
    std::vector<std::byte> bytes(variable.size_bytes());
    variable.copy_to(bytes);
    append_text(out, as_text(bytes));
  }
}

/// A variable of rank 0. Copying its elements receives them, unless they are in the description.
class received_variable final : public device_elements {
public:
  received_variable(group& from, std::string_view& description) : from_(from) {
    const auto type = take_number(description);
    if (type > static_cast<std::uint64_t>(dtype::float4_e2m1fn)) { throw_malformed(); }
    view_.dtype = static_cast<dtype>(type);
    if (view_.dtype != dtype::string && size_of(view_.dtype) == 0) { throw_malformed(); }
    const auto rank = take_number(description);
    if (rank > description.size()) { throw_malformed(); }
    std::uint64_t count = 1;
    for (std::uint64_t i = 0; i < rank; ++i) {
      const auto size = take_number(description);
      if (__builtin_mul_overflow(count, size, &count) || count > std::uint64_t{1} << 56) { throw_malformed(); }
      view_.shape.push_back(static_cast<std::int64_t>(size));
    }
    if (view_.dtype == dtype::string) {
      if (count > description.size()) { throw_malformed(); }  // each string takes at least one byte
      for (std::uint64_t i = 0; i < count; ++i) { strings_.emplace_back(take_text(description)); }
    } else if (!is_large(view_.dtype, count * size_of(view_.dtype))) {
      small_ = take_text(description);
      if (small_->size() != count * size_of(view_.dtype)) { throw_malformed(); }
    }
  }

  [[nodiscard]] tensor_view description() const override { return view_; }
  void copy_to(std::span<std::byte> to) const override {
    if (!small_) { return from_.broadcast_bytes(to); }
    if (!to.empty()) { std::memcpy(to.data(), small_->data(), to.size()); }
  }
  void copy_from(std::span<const std::byte> /*from*/) override { throw internal_error("a received variable cannot be written"); }
  void copy_strings_to(std::span<std::string> to) const override { std::ranges::copy(strings_, to.begin()); }

private:
  group& from_;
  tensor_view view_;
  std::optional<std::string_view> small_;
  std::vector<std::string> strings_;
};

}  // namespace

void send_state(group& to, const variable_list& variables, std::int64_t step) {
  std::string description;
  format::append_varint(description, static_cast<std::uint64_t>(step));
  format::append_varint(description, variables.size());
  for (const auto& variable : variables) {
    append_text(description, variable.name());
    format::append_varint(description, static_cast<std::uint64_t>(variable.dtype()));
    format::append_varint(description, variable.shape().size());
    for (const auto size : variable.shape()) { format::append_varint(description, static_cast<std::uint64_t>(size)); }
    if (!is_large(variable.dtype(), variable.size_bytes())) { append_elements(description, variable); }
  }
  const auto all = std::as_bytes(std::span(description));
  std::vector<std::byte> bytes(all.begin(), all.end());
  to.share(bytes);
  for (const auto& variable : variables) {
    if (!is_large(variable.dtype(), variable.size_bytes())) { continue; }
    if (variable.is_addressable()) {
      to.broadcast_bytes(variable.writable_bytes());
    } else {
      std::vector<std::byte> copy(variable.size_bytes());
      variable.copy_to(copy);
      to.broadcast_bytes(copy);
    }
  }
}

snapshot receive_state(group& from) {
  std::vector<std::byte> bytes;
  from.share(bytes);
  auto description = as_text(bytes);
  const auto step = static_cast<std::int64_t>(take_number(description));
  const auto count = take_number(description);
  if (count > description.size()) { throw_malformed(); }
  variable_list variables;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string name(take_text(description));
    variables.emplace_back(std::move(name), std::make_shared<received_variable>(from, description));
  }
  return snapshot::capture(snapshot_pool(0, 1).acquire(), variables, step);
}

std::string structure_of(const variable_list& variables) {
  std::string text;
  for (const auto& variable : variables) {
    text += fmt::format("{}{} {} {}", text.empty() ? "" : ", ", variable.name(), to_string(variable.dtype()), to_string(variable.shape()));
  }
  return text;
}

}  // namespace stepwell::detail
