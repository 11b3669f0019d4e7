// SPDX-License-Identifier: Apache-2.0
//
// Compares two checkpoints. Both are read in parallel, piece by piece.
#include "tool/commands.hpp"
#include "tool/elements.hpp"
#include "tool/json.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/checkpoint/detail/stored_checkpoint.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace stepwell::tool {
namespace {

/// The difference between the values of two tensors that have the same dtype and shape.
struct value_difference {
  std::uint64_t count = 0;             ///< Elements whose bits differ and, with a tolerance, whose distance exceeds it.
  double greatest = 0;                 ///< The greatest distance; infinite for strings, and if exactly one of two values is NaN.
  std::optional<std::uint64_t> first;  ///< The row-major index of the first different element.
};

/// Returns the distance of two values: 0 if both are NaN, or if they are equal.
template<class T>
double distance(T a, T b) {
  double apart = 0;
  if constexpr (is_complex_element<T>) {
    apart = static_cast<double>(std::abs(a - b));
  } else if constexpr (std::is_integral_v<T> && sizeof(T) == 8) {
    apart = static_cast<double>(a < b ? static_cast<std::uint64_t>(b) - static_cast<std::uint64_t>(a)
                                      : static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
  } else {
    const double left = to_double(a);
    const double right = to_double(b);
    if (left == right || (std::isnan(left) && std::isnan(right))) { return 0; }
    apart = std::abs(left - right);
  }
  return std::isnan(apart) ? std::numeric_limits<double>::infinity() : apart;
}

class value_comparison {
public:
  explicit value_comparison(double tolerance) : tolerance_(tolerance) {}

  void add(dtype type, std::span<const std::byte> a, std::span<const std::byte> b) {
    const bool is_same = a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0;
    visit_dtype(type, [&]<class T>(std::type_identity<T>) {
      const auto count = a.size() / sizeof(T);
      for (std::size_t i = 0; !is_same && i < count; ++i) {
        if (std::memcmp(&a[i * sizeof(T)], &b[i * sizeof(T)], sizeof(T)) != 0) {
          note(at_ + i, distance(element_at<T>(a, i), element_at<T>(b, i)));
        }
      }
      at_ += count;
    });
  }
  void note(std::uint64_t at, double apart) {
    if (tolerance_ > 0 && apart <= tolerance_) { return; }
    if (!found_.first) { found_.first = at; }
    ++found_.count;
    found_.greatest = std::max(found_.greatest, apart);
  }
  [[nodiscard]] const value_difference& found() const noexcept { return found_; }

private:
  double tolerance_;
  std::uint64_t at_ = 0;
  value_difference found_;
};

value_difference compare_values(const checkpoint_reader& a, const checkpoint_reader& b, const checkpoint_entry& left,
                                const checkpoint_entry& right, double tolerance) {
  value_comparison compared(tolerance);
  if (left.dtype == dtype::string || left.is_partitioned || right.is_partitioned) {
    const auto one = a.read(left.name);
    const auto other = b.read(right.name);
    for (std::size_t i = 0; i < one.strings().size(); ++i) {
      if (one.strings()[i] != other.strings()[i]) { compared.note(i, std::numeric_limits<double>::infinity()); }
    }
    compared.add(left.dtype, one.bytes(), other.bytes());
    return compared.found();
  }
  const auto ours = a.pieces(left.name);  // the tensors have equal sizes, and so do their pieces
  const auto theirs = b.pieces(right.name);
  auto other = theirs.begin();
  for (const auto piece : ours) {
    compared.add(left.dtype, piece, *other);
    ++other;
  }
  static_cast<void>(other == theirs.end());  // reaches the end, where the checksum is compared
  return compared.found();
}

/// One tensor that differs between the checkpoints.
struct difference {
  std::string name;
  std::string what;  ///< "only in a", "only in b", "dtype", "shape", "values", "damaged", "not read"
  std::string a;
  std::string b;
  std::optional<value_difference> values = {};
};

std::string described(const checkpoint_entry& entry) { return dtype_text(entry.dtype) + " " + to_string(entry.shape); }

std::optional<difference> compare(const checkpoint_reader& a, const checkpoint_reader& b, const checkpoint_entry& left,
                                  const checkpoint_entry& right, double tolerance) {
  const auto differs = [&](std::string what) {
    return difference{std::string(left.name), std::move(what), described(left), described(right)};
  };
  if (left.dtype != right.dtype) { return differs("dtype"); }
  if (left.shape != right.shape) { return differs("shape"); }
  try {
    const auto values = compare_values(a, b, left, right, tolerance);
    if (values.count == 0) { return std::nullopt; }
    auto made = differs("values");
    made.values = values;
    return made;
  } catch (const data_loss_error& damage) {
    return difference{std::string(left.name), "damaged", printable(damage.what()), ""};
  } catch (const unimplemented_error& unread) { return difference{std::string(left.name), "not read", printable(unread.what()), ""}; }
}

/// Returns all differences. Ignores the notes of savers, which describe the history of saves, and not the state.
std::vector<difference> differences_of(const checkpoint_reader& a, const checkpoint_reader& b, double tolerance) {
  std::vector<difference> found;
  for (const auto& left : a.entries()) {
    if (detail::is_saver_note(left.name)) { continue; }
    const auto* right = b.find(left.name);
    if (right == nullptr) {
      found.push_back({std::string(left.name), "only in a", described(left), "-"});
    } else if (auto one = compare(a, b, left, *right, tolerance)) {
      found.push_back(std::move(*one));
    }
  }
  for (const auto& right : b.entries()) {
    if (!a.contains(right.name) && !detail::is_saver_note(right.name)) {
      found.push_back({std::string(right.name), "only in b", "-", described(right)});
    }
  }
  std::ranges::sort(found, {}, &difference::name);
  return found;
}

void print_as_text(const std::vector<difference>& found, const checkpoint_reader& a, const checkpoint_reader& b, console& to) {
  to.out << "a: " << printable(to, a.prefix()) << "\nb: " << printable(to, b.prefix()) << "\n\n";
  if (found.empty()) {
    to.out << "the same: " << count_text(a.entries().size(), "tensor") << '\n';
    return;
  }
  text_table table({"NAME", "DIFFERS IN", "A", "B", ">ELEMENTS", ">MAX |A-B|", ">FIRST AT"});
  for (const auto& one : found) {
    const auto& values = one.values;
    table.add({{printable(one.name), ink::cyan},
               {one.what, ink::yellow},
               one.a,
               one.b,
               values ? std::to_string(values->count) : "",
               values ? number_text(values->greatest) : "",
               values ? std::to_string(*values->first) : ""});
  }
  table.print(to);
}

void print_as_json(const std::vector<difference>& found, const checkpoint_reader& a, const checkpoint_reader& b, console& to) {
  json_document document(to.out);
  document.add("a", a.prefix());
  document.add("b", b.prefix());
  document.add_list("differences", found, [](const difference& one) {
    json made{{"name", one.name}, {"what", one.what}, {"a", one.a}, {"b", one.b}};
    if (one.values) {
      made["elements"] = one.values->count;
      made["max_abs"] = json_number(one.values->greatest);
      made["first"] = *one.values->first;
    }
    return made;
  });
  document.end();
}

}  // namespace

exit_code diff_checkpoints(const inspect_options& options, const checkpoint_reader& left, const checkpoint_reader& right, console& to) {
  const auto found = differences_of(left, right, options.tolerance);
  options.json ? print_as_json(found, left, right, to) : print_as_text(found, left, right, to);
  exit_code how = exit_code::good;
  for (const auto& one : found) {
    const bool is_damaged = one.what == "damaged";
    const bool is_unread = one.what == "not read";
    if (is_damaged || is_unread) { print_error(to, one.a); }
    how = worse(how, is_damaged ? exit_code::damaged : is_unread ? exit_code::unsupported : exit_code::differs);
  }
  return how;
}

}  // namespace stepwell::tool
