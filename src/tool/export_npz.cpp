// SPDX-License-Identifier: Apache-2.0
#include "tool/export_npz.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/io/atomic_file.hpp"
#include "tool/elements.hpp"
#include "tool/json_writer.hpp"
#include "tool/target.hpp"
#include "tool/text.hpp"
#include "tool/zip_writer.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <bit>
#include <functional>
#include <optional>
#include <string_view>

namespace stepwell::tool {
namespace {

using byte_visitor = std::function<void(std::span<const std::byte>)>;

constexpr std::uint64_t most_padded_bytes = std::uint64_t{1} << 30;  // limit for strings padded to the longest

/// Returns NumPy's code for the type, or an empty text if NumPy lacks it.
std::string_view numpy_type(dtype type) {
  switch (type) {
    case dtype::float32:
    case dtype::bfloat16: return "f4";
    case dtype::float64: return "f8";
    case dtype::half: return "f2";
    case dtype::int8:
    case dtype::qint8: return "i1";
    case dtype::int16:
    case dtype::qint16: return "i2";
    case dtype::int32:
    case dtype::qint32: return "i4";
    case dtype::int64: return "i8";
    case dtype::uint8:
    case dtype::quint8: return "u1";
    case dtype::uint16:
    case dtype::quint16: return "u2";
    case dtype::uint32: return "u4";
    case dtype::uint64: return "u8";
    case dtype::boolean: return "b1";
    case dtype::complex64: return "c8";
    case dtype::complex128: return "c16";
    default: return stepwell::detail::is_narrow_number(type) ? "u1" : "";  // the stored byte of each element
  }
}

/// Returns the header of an .npy file, version 1.0, or 2.0 if it is long.
std::string npy_header(std::string_view descr, const tensor_shape& shape) {
  std::string sizes;
  for (const auto size : shape) { sizes += fmt::format("{}, ", size); }
  if (shape.size() > 1) { sizes.resize(sizes.size() - 2); }
  if (shape.size() == 1) { sizes.resize(sizes.size() - 1); }
  auto text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, sizes);
  const bool is_long = text.size() > 60000;
  const auto begin = std::size_t{is_long ? 12u : 10u};
  text.append(63 - (begin + text.size()) % 64, ' ').push_back('\n');
  std::string header("\x93NUMPY");
  header.push_back(is_long ? '\2' : '\1');
  header.push_back('\0');
  for (std::size_t i = 0; i < begin - 8; ++i) { header.push_back(static_cast<char>(text.size() >> (8 * i))); }
  return header + text;
}

/// The layout of one array, or the reason why the tensor is skipped.
struct array_plan {
  std::string header;
  std::uint64_t size = 0;  ///< Size of all elements in bytes.
  std::size_t width = 0;   ///< Size of each string in bytes.
  std::optional<std::string> refusal = {};
};

array_plan plan_strings(const checkpoint_reader& reader, const checkpoint_entry& entry) {
  if (entry.is_object_graph) { return {.header = {}, .refusal = "TensorFlow's object graph, not a variable"}; }
  const auto held = reader.read(entry.name);
  array_plan made{.header = {}, .width = 1};
  for (const auto& one : held.strings()) {
    if (one.ends_with('\0')) { return {.header = {}, .refusal = "a string ends in a zero byte, which NumPy would drop"}; }
    made.width = std::max(made.width, one.size());
  }
  made.size = made.width * held.strings().size();
  if (made.size > std::max(most_padded_bytes, entry.size_bytes * 2)) {
    return {.header = {}, .refusal = "padded to its longest string, it would need " + size_text(made.size)};
  }
  made.header = npy_header(fmt::format("|S{}", made.width), entry.shape);
  return made;
}

array_plan plan(const checkpoint_reader& reader, const checkpoint_entry& entry) {
  if (entry.dtype == dtype::string) { return plan_strings(reader, entry); }
  const auto type = numpy_type(entry.dtype);
  if (type.empty()) { return {.header = {}, .refusal = "NumPy has no array of " + dtype_text(entry.dtype)}; }
  const bool is_single = type.ends_with('1');
  constexpr char order = std::endian::native == std::endian::little ? '<' : '>';
  const bool is_wider = entry.dtype == dtype::bfloat16;
  return {.header = npy_header(fmt::format("{}{}", is_single ? '|' : order, type), entry.shape),
          .size = entry.size_bytes * (is_wider ? 2 : 1)};
}

/// Calls `visit` with the elements in the form that NumPy reads.
void visit_array(const checkpoint_reader& reader, const checkpoint_entry& entry, const array_plan& planned, const byte_visitor& visit) {
  if (entry.dtype == dtype::string) {
    const auto held = reader.read(entry.name);
    for (auto one : held.strings()) {
      one.resize(planned.width);
      visit(std::as_bytes(std::span(one)));
    }
    return;
  }
  std::vector<float> widened;
  const auto show = [&](std::span<const std::byte> piece) {
    if (entry.dtype != dtype::bfloat16) { return visit(piece); }
    widened.resize(piece.size() / sizeof(stored_number<dtype::bfloat16>));
    for (std::size_t i = 0; i < widened.size(); ++i) { widened[i] = to_float(element_at<stored_number<dtype::bfloat16>>(piece, i)); }
    visit(std::as_bytes(std::span(widened)));
  };
  if (entry.is_partitioned) { return show(reader.read(entry.name).bytes()); }
  for (const auto piece : reader.pieces(entry.name)) { show(piece); }
}

/// The exported and the skipped tensors.
struct export_report {
  std::vector<std::string> written;
  std::vector<std::pair<std::string, std::string>> left_out;  ///< With the reason.
  std::uint64_t bytes = 0;
};

class npz_writer {
public:
  npz_writer(const checkpoint_reader& reader, io::atomic_file target) : reader_(reader), zip_(std::move(target)) {}

  void add(const checkpoint_entry& entry) {
    const auto planned = plan(reader_, entry);
    if (planned.refusal) {
      report_.left_out.emplace_back(entry.name, *planned.refusal);
      return;
    }
    auto crc = crc32_of(std::as_bytes(std::span(planned.header)));
    visit_array(reader_, entry, planned, [&](std::span<const std::byte> bytes) { crc = crc32_of(bytes, crc); });
    zip_.begin(entry.name + ".npy", planned.header.size() + planned.size, crc);
    zip_.append(std::as_bytes(std::span(planned.header)));
    visit_array(reader_, entry, planned, [&](std::span<const std::byte> bytes) { zip_.append(bytes); });
    report_.written.push_back(entry.name);
    report_.bytes += planned.size;
  }
  [[nodiscard]] export_report finish() {
    zip_.finish();
    return std::move(report_);
  }

private:
  const checkpoint_reader& reader_;
  zip_writer zip_;
  export_report report_;
};

void print_report(const export_report& report, const export_options& options, console& to) {
  for (const auto& [name, why] : report.left_out) {
    if (!options.json) { to.err << "stepwell: left out " << printable(name) << ": " << why << '\n'; }
  }
  if (!options.json) {
    to.out << "wrote " << printable(options.npz) << ": " << count_text(report.written.size(), "array") << ", " << size_text(report.bytes)
           << '\n';
    return;
  }
  json_writer json(to.out);
  json.begin_object();
  json.member("file", options.npz);
  json.member("bytes", report.bytes);
  json.key("written");
  write_array(json, report.written);
  json.key("left_out");
  json.begin_object();
  for (const auto& [name, why] : report.left_out) { json.member(name, why); }
  json.end_object();
  json.end_object();
  to.out << '\n';
}

}  // namespace

outcome export_npz(const export_options& options, console& to) {
  const checkpoint_reader reader(require_checkpoint(to, options.target), to.files);
  for (const auto& name : options.tensors) {
    if (!reader.contains(name)) { throw not_found_error(fmt::format("the checkpoint has no tensor \"{}\"", name), reader.prefix()); }
  }
  npz_writer writer(reader, value_or_throw(io::atomic_file::create(*to.files, options.npz)));
  for (const auto& entry : reader.entries()) {
    const bool is_wanted = options.tensors.empty() || std::ranges::find(options.tensors, entry.name) != options.tensors.end();
    if (is_wanted) { writer.add(entry); }
  }
  print_report(writer.finish(), options, to);
  return outcome::good;
}

}  // namespace stepwell::tool
