// SPDX-License-Identifier: Apache-2.0
//
// Prints the values of one tensor, with brackets that show its shape.
#include "tool/commands.hpp"
#include "tool/elements.hpp"
#include "tool/json.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/format/detail/coding.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

namespace stepwell::tool {
namespace {

/// Prints elements one by one, with brackets around each dimension.
class bracket_printer {
public:
  bracket_printer(std::ostream& out, const tensor_shape& shape) : out_(out) {
    std::uint64_t size = 1;
    for (auto at = shape.rbegin(); at != shape.rend(); ++at) { sizes_.push_back(size *= static_cast<std::uint64_t>(*at)); }
  }

  void add(const std::string& text) {
    const auto opened = boundaries();
    if (count_ != 0) { out_ << (opened == 0 ? ", " : ",\n" + std::string(sizes_.size() - opened, ' ')); }
    out_ << std::string(opened, '[') << text;
    ++count_;
    out_ << std::string(boundaries(), ']');
  }

private:
  /// Returns the number of brackets that open or close before the next element.
  [[nodiscard]] std::size_t boundaries() const {
    std::size_t found = 0;
    for (const auto size : sizes_) { found += count_ % size == 0; }
    return found;
  }

  std::ostream& out_;
  std::vector<std::uint64_t> sizes_;  // elements within each pair of brackets, innermost first
  std::uint64_t count_ = 0;
};

using element_visitor = std::function<void(const std::string& text)>;

/// Calls `visit` with the texts of the first `most` elements. Checks the checksum of the whole tensor in any case.
void visit_elements(const checkpoint_reader& reader, const checkpoint_entry& entry, std::uint64_t most, const element_visitor& visit) {
  std::uint64_t shown = 0;
  const auto show_piece = [&](std::span<const std::byte> bytes) {
    visit_dtype(entry.dtype, [&]<class T>(std::type_identity<T>) {
      for (std::size_t i = 0; i < bytes.size() / sizeof(T) && shown < most; ++i, ++shown) { visit(element_text(element_at<T>(bytes, i))); }
    });
  };
  if (entry.dtype != dtype::string && !entry.is_partitioned) {
    for (const auto piece : reader.pieces(entry.name)) {
      show_piece(piece);
      if (shown >= most) { return reader.verify(entry.name); }  // takes no time for the holes of a sparse file
    }
    return;
  }
  const auto whole = reader.read(entry.name);
  show_piece(whole.bytes());
  for (const auto& element : whole.strings()) {
    if (shown++ >= most) { break; }
    visit(element);
  }
}

/// Returns the element as JSON: a number, or a string if JSON has no form for it.
std::string element_json(const std::string& text, dtype type) {
  if (type == dtype::string || type == dtype::complex64 || type == dtype::complex128) { return json_text(text); }
  return text.find('n') == std::string::npos ? text : json_text(text == "-nan" ? "nan" : text);  // "nan" or "inf"
}

/// Like `visit_elements`, but returns the failure instead of throwing it, so that the caller can complete its output.
std::optional<status> try_visit_elements(const checkpoint_reader& reader, const checkpoint_entry& entry, std::uint64_t most,
                                         const element_visitor& visit) {
  try {
    visit_elements(reader, entry, most, visit);
    return std::nullopt;
  } catch (const error& failure) { return failure.cause(); }
}

/// Reports a failure after the output.
exit_code report(const std::optional<status>& failure, console& to) {
  if (!failure) { return exit_code::good; }
  to.out.flush();
  print_error(to, failure->to_string());
  return exit_code_of(failure->code);
}

/// Returns the base64 of RFC 4648, padded.
std::string base64_of(std::string_view bytes) {
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const auto group = bytes.substr(at, 3);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i) { bits = bits << 8 | (i < group.size() ? static_cast<unsigned char>(group[i]) : 0u); }
    for (std::size_t i = 0; i < 4; ++i) { text += i <= group.size() ? letters[bits >> (18 - 6 * i) & 63u] : '='; }
  }
  return text;
}

exit_code print_as_json(const checkpoint_reader& reader, const checkpoint_entry& entry, std::uint64_t most, console& to) {
  json_document document(to.out);
  document.add("name", entry.name);
  document.add("dtype", dtype_text(entry.dtype));
  document.add("shape", entry.shape);
  document.begin_list("values");
  std::vector<std::string> strings;
  const auto failure = try_visit_elements(reader, entry, most, [&](const std::string& text) {
    document.add_element(element_json(text, entry.dtype));
    if (entry.dtype == dtype::string) { strings.push_back(text); }
  });
  document.end_list();
  if (!std::ranges::all_of(strings, format::is_utf8)) { document.add_list("values_base64", strings, base64_of); }  // JSON cannot hold them
  if (failure) { document.add("error", failure->to_string()); }
  document.end();
  return report(failure, to);
}

exit_code print_as_text(const checkpoint_reader& reader, const checkpoint_entry& entry, std::uint64_t most, console& to) {
  to.out << paint(to, ink::cyan, printable(to, entry.name)) << "  " << dtype_text(entry.dtype) << ' ' << to_string(entry.shape) << '\n';
  const auto count = static_cast<std::uint64_t>(element_count(entry.shape));
  if (count == 0) { to.out << "[]"; }
  bracket_printer brackets(to.out, entry.shape);
  const auto failure = try_visit_elements(reader, entry, most, [&](const std::string& text) {
    brackets.add(entry.dtype == dtype::string ? '"' + printable(to, text) + '"' : text);
  });
  to.out << '\n';
  if (count > most && !failure) { to.out << fmt::format("... and {} more; --limit 0 shows all\n", count - most); }
  return report(failure, to);
}

}  // namespace

exit_code print_tensor(const inspect_options& options, const checkpoint_reader& reader, console& to) {
  const auto* entry = reader.find(options.print);
  if (entry == nullptr) {
    throw not_found_error(fmt::format("the checkpoint has no tensor \"{}\"; `stepwell inspect` lists them", options.print),
                          reader.prefix());
  }
  const auto most = options.limit == 0 ? UINT64_MAX : options.limit;
  return options.json ? print_as_json(reader, *entry, most, to) : print_as_text(reader, *entry, most, to);
}

}  // namespace stepwell::tool
