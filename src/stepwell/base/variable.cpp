// SPDX-License-Identifier: Apache-2.0
#include "stepwell/base/variable.hpp"

#include "stepwell/base/detail/default_float_mode.hpp"
#include "stepwell/base/detail/printable.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <locale>
#include <sstream>

namespace stepwell {
namespace detail {

bool is_row_major(const tensor_shape& shape, const tensor_shape& strides) {
  if (shape.size() != strides.size()) { return false; }
  if (std::ranges::find(shape, 0) != shape.end()) { return true; }  // a tensor without elements has every order
  std::int64_t expected = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] > 1 && strides[i] != expected) { return false; }
    expected *= shape[i];
  }
  return true;
}

void throw_not_row_major() {
  throw invalid_argument_error("a variable must be contiguous in row-major order; copy it into a row-major tensor");
}

void throw_named(const std::string& name, const error& failure) {
  throw_status(status(failure.cause().code, "variable \"" + name + "\": " + failure.cause().message));
}

std::string text_of_state(function_ref<void(std::ostream&)> write) {
  const default_float_mode mode;
  std::ostringstream out;
  out.imbue(std::locale::classic());
  write(out);
  return std::move(out).str();
}

void read_state(std::string_view text, std::string_view type, function_ref<void(std::istream&)> read) {
  const default_float_mode mode;
  std::istringstream in{std::string(text)};
  in.imbue(std::locale::classic());
  read(in);
  if (!in.fail() && (in >> std::ws).eof()) { return; }
  constexpr std::size_t shown = 40;
  throw invalid_argument_error("the restored text is not a state of the type " + std::string(type) +
                               "; was it saved by an engine or distribution of another type? The text begins with \"" +
                               printable(text.substr(0, shown)) + "\"");
}

void throw_not_reproduced(std::string_view type) {
  throw invalid_argument_error(
      "operator>> of the type " + std::string(type) +
      " does not reproduce the state that operator<< wrote; save the parameters instead, as a variable of numbers");
}

void throw_rejected(const std::exception& failure) {
  throw invalid_argument_error("the function that writes the variable rejected the restored value: " + std::string(failure.what()));
}

}  // namespace detail

namespace {
void flatten_into(variable_list& flat, const std::string& prefix, const std::vector<variable_ref>& nested, bool is_early) {
  for (const auto& entry : nested) {
    if (entry.below().empty() && entry.dtype() != dtype::invalid) {
      flat.push_back(entry.renamed(prefix + entry.name()));
      if (is_early) { flat.back() = std::move(flat.back()).early(); }
    } else {
      flatten_into(flat, prefix + entry.name() + "/", entry.below(), is_early || entry.is_early());
    }
  }
}
}  // namespace

variable_ref::variable_ref(std::string name, std::vector<variable_ref> below) : name_(std::move(name)), below_(std::move(below)) {}

variable_ref::variable_ref(std::string name, std::string& value) : variable_ref(std::move(name), {&value, 1}, {}) {}

variable_ref::variable_ref(std::string name, std::vector<std::string>& elements)
    : variable_ref(std::move(name), elements, {std::ssize(elements)}) {}

variable_ref::variable_ref(std::string name, std::span<std::string> elements, tensor_shape shape)
    : name_(std::move(name)), view_{dtype::string, std::move(shape), {}}, strings_(elements) {
  if (element_count(view_.shape) != std::ssize(elements)) {
    throw invalid_argument_error("variable \"" + name_ + "\": its shape " + to_string(view_.shape) + " does not have " +
                                 std::to_string(elements.size()) + " elements");
  }
}

variable_ref::variable_ref(std::string name, std::shared_ptr<device_elements> elements)
    : name_(std::move(name)), device_(std::move(elements)), view_(device_->description()) {}

template<class Action>
auto variable_ref::on_device(Action action) const {
  try {
    return action(*device_);
  } catch (const error& failure) { detail::throw_named(name_, failure); }
}

std::span<const std::byte> variable_ref::host_bytes() const {
  auto bytes = view_.bytes;
  if (device_) {
    on_device([&](device_elements& elements) { bytes = elements.host_bytes(); });
  }
  return bytes;
}

std::shared_ptr<device_copy> variable_ref::start_copy_to(std::span<std::byte> to) const {
  if (!device_) { return nullptr; }
  assert(to.size() == size_bytes());
  return on_device([&](device_elements& elements) { return elements.start_copy_to(to); });
}

std::shared_ptr<std::byte> variable_ref::host_memory(std::size_t size) const {
  if (!device_) { return nullptr; }
  return on_device([&](device_elements& elements) { return elements.host_memory(size); });
}

std::shared_ptr<device_elements> variable_ref::make_average() const {
  if (!device_) { return nullptr; }
  return on_device([](device_elements& elements) { return elements.make_average(); });
}

void variable_ref::require_device() const {
  if (device_) { return; }
  throw failed_precondition_error("variable \"" + name_ +
                                  "\" was on a device when its average was made, and is in host memory now; move the "
                                  "model before the hook is made");
}

void variable_ref::add_to_average(device_elements& average, double weight) const {
  require_device();
  on_device([&](device_elements& elements) { elements.add_to_average(average, weight); });
}

void variable_ref::exchange_with_average(device_elements& average) const {
  require_device();
  on_device([&](device_elements& elements) { elements.exchange_with_average(average); });
}

void variable_ref::copy_to(std::span<std::byte> to) const {
  assert(to.size() == size_bytes());
  if (device_) {
    return on_device([&](device_elements& elements) { elements.copy_to(to); });
  }
  if (!to.empty()) { std::memcpy(to.data(), view_.bytes.data(), to.size()); }
}

void variable_ref::copy_from(std::span<const std::byte> from) const {
  assert(from.size() == size_bytes());
  if (device_) {
    return on_device([&](device_elements& elements) { elements.copy_from(from); });
  }
  if (!from.empty()) { std::memcpy(writable_bytes().data(), from.data(), from.size()); }
}

void variable_ref::copy_to(std::span<std::string> to) const {
  assert(holds_strings() && std::ssize(to) == element_count(shape()));
  if (device_) {
    return on_device([&](device_elements& elements) { elements.copy_strings_to(to); });
  }
  std::ranges::copy(strings_, to.begin());
}

void variable_ref::copy_from(std::span<const std::string> from) const {
  assert(holds_strings() && std::ssize(from) == element_count(shape()));
  if (device_) {
    return on_device([&](device_elements& elements) { elements.copy_strings_from(from); });
  }
  std::ranges::copy(from, strings_.begin());
}

variable_ref::variable_ref(const variable_ref&) = default;
variable_ref::variable_ref(variable_ref&&) noexcept = default;
variable_ref& variable_ref::operator=(const variable_ref&) = default;
variable_ref& variable_ref::operator=(variable_ref&&) noexcept = default;
variable_ref::~variable_ref() = default;

variable_ref variable_ref::renamed(std::string name) const {
  variable_ref copy = *this;
  copy.name_ = std::move(name);
  return copy;
}

variable_ref variable_ref::optional() const {
  variable_ref copy = *this;
  copy.is_optional_ = true;
  return copy;
}

variable_ref variable_ref::early() const& { return variable_ref(*this).early(); }
variable_ref variable_ref::early() && {
  is_early_ = true;
  return std::move(*this);
}

variable_list variables(std::initializer_list<variable_ref> entries) {
  variable_list flat;
  flatten_into(flat, "", entries, false);
  return flat;
}

}  // namespace stepwell
