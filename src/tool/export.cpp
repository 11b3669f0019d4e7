// SPDX-License-Identifier: Apache-2.0
//
// `stepwell export`: an archive of NumPy's arrays, written by libarchive; one file for each array; or a file of safetensors.
#include "tool/commands.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/format/checkpoint/detail/bundle.hpp"
#include "stepwell/format/detail/coding.hpp"
#include "stepwell/format/weights/detail/safetensors.hpp"
#include "stepwell/io/atomic_file.hpp"
#include "stepwell/io/file_system.hpp"
#include "tool/elements.hpp"
#include "tool/json.hpp"
#include "tool/target.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>
#include <locale.h>
#include <sys/stat.h>
#include <algorithm>
#include <bit>
#include <filesystem>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace stepwell::tool {
namespace {

using byte_visitor = std::function<void(std::span<const std::byte>)>;

constexpr std::uint64_t most_padded_bytes = std::uint64_t{1} << 30;  // limit for strings padded to the longest

/// Returns NumPy's code for the type, or an empty text if NumPy lacks it.
std::string numpy_type(dtype type) {
  std::string code;
  visit_dtype(type, [&]<class T>(std::type_identity<T>) {
    const auto sized = [](char kind) { return fmt::format("{}{}", kind, sizeof(T)); };
    if constexpr (std::is_same_v<T, bool>) {
      code = "b1";
    } else if constexpr (std::is_integral_v<T>) {
      code = sized(std::is_signed_v<T> ? 'i' : 'u');
    } else if constexpr (is_complex_element<T>) {
      code = sized('c');
    } else if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, stored_number<dtype::half>>) {
      code = sized('f');
    } else {
      code = std::is_same_v<T, stored_number<dtype::bfloat16>> ? "f4" : "u1";  // u1: the stored byte of each element
    }
  });
  return code;
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

/// Calls `visit` with the elements of a tensor of numbers.
void visit_numbers(const checkpoint_reader& reader, const checkpoint_entry& entry, const byte_visitor& visit) {
  if (entry.is_partitioned) { return visit(reader.read(entry.name).bytes()); }
  std::vector<std::byte> zeros;
  for (const auto piece : reader.sparse_pieces(entry.name)) {
    visit(piece.bytes);
    if (piece.zeros > 0) { zeros.resize(std::size_t{1} << 20); }
    for (auto left = piece.zeros; left > 0; left -= std::min<std::uint64_t>(left, zeros.size())) {
      visit(std::span(zeros).first(static_cast<std::size_t>(std::min<std::uint64_t>(left, zeros.size()))));
    }
  }
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
  visit_numbers(reader, entry, [&](std::span<const std::byte> piece) {
    if (entry.dtype != dtype::bfloat16) { return visit(piece); }
    widened.resize(piece.size() / sizeof(stored_number<dtype::bfloat16>));
    for (std::size_t i = 0; i < widened.size(); ++i) { widened[i] = to_float(element_at<stored_number<dtype::bfloat16>>(piece, i)); }
    visit(std::as_bytes(std::span(widened)));
  });
}

/// Writes a ZIP archive of uncompressed files, of any size and number, into an atomic_file: the archive appears when it is complete. All times
/// are the ZIP epoch, so that equal files give equal archives.
/// @errors Failures of the file system.
class zip_archive {
public:
  explicit zip_archive(io::atomic_file target) : target_(std::move(target)), archive_(archive_write_new(), &archive_write_free) {
    if (!archive_) { throw std::bad_alloc(); }
    check(archive_write_set_format_zip(archive_.get()));
    check(archive_write_zip_set_compression_store(archive_.get()));
    check(archive_write_set_bytes_per_block(archive_.get(), 1 << 20));
    check(archive_write_set_bytes_in_last_block(archive_.get(), 1));  // without padding
    check(archive_write_open(archive_.get(), this, nullptr, &write_block, nullptr));
  }
  zip_archive(const zip_archive&) = delete;
  zip_archive& operator=(const zip_archive&) = delete;
  ~zip_archive() { is_discarded_ = true; }  // without finish(), libarchive writes the directory when it is freed

  /// Begins a file. Exactly `size` bytes must be appended afterwards.
  void begin(const std::string& name, std::uint64_t size) {
    const std::unique_ptr<archive_entry, decltype(&archive_entry_free)> entry(archive_entry_new(), &archive_entry_free);
    if (!entry) { throw std::bad_alloc(); }
    archive_entry_set_pathname(entry.get(), name.c_str());
    archive_entry_set_size(entry.get(), static_cast<la_int64_t>(size));
    archive_entry_set_filetype(entry.get(), S_IFREG);
    archive_entry_set_perm(entry.get(), 0644);
    const thread_locale while_writing(format::is_utf8(name) ? "C.UTF-8" : "C");
    check(archive_write_header(archive_.get(), entry.get()));
  }
  void append(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {  // libarchive takes at most 2 GiB at once, and nothing beyond the size of the file
      const auto written = archive_write_data(archive_.get(), bytes.data(), bytes.size());
      check(written == 0 ? ARCHIVE_FATAL : written);
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
  }
  /// Writes the directory, and gives the archive its final name.
  void finish() {
    check(archive_write_close(archive_.get()));
    value_or_throw(target_.publish());
  }

private:
  /// The locale of this thread during the lifetime. libarchive marks names as UTF-8 if the locale has this encoding.
  class thread_locale {
  public:
    explicit thread_locale(const char* name) : made_(newlocale(LC_CTYPE_MASK, name, locale_t{})) {
      if (made_ != locale_t{}) { before_ = uselocale(made_); }
    }
    thread_locale(const thread_locale&) = delete;
    thread_locale& operator=(const thread_locale&) = delete;
    ~thread_locale() {
      if (made_ == locale_t{}) { return; }
      uselocale(before_);
      freelocale(made_);
    }

  private:
    locale_t made_;
    locale_t before_{};
  };
  /// Appends a block unless a block before it failed. Reports failures to check() and not to libarchive, which never frees its buffers after
  /// one.
  static la_ssize_t write_block(archive*, void* self, const void* bytes, std::size_t size) {
    auto& made = *static_cast<zip_archive*>(self);
    if (!made.is_discarded_ && !made.failure_) {
      auto written = made.target_.append({static_cast<const std::byte*>(bytes), size});
      if (!written) { made.failure_ = std::move(written).error(); }
    }
    return static_cast<la_ssize_t>(size);
  }
  void check(la_ssize_t code) const {
    if (failure_) { throw_status(*failure_); }
    if (code >= ARCHIVE_OK) { return; }
    const char* reason = archive_error_string(archive_.get());
    throw internal_error(fmt::format("libarchive: {}", reason != nullptr ? reason : "failure without a reason"), target_.final_path());
  }

  io::atomic_file target_;
  std::optional<status> failure_;  // of the file system
  bool is_discarded_ = false;
  std::unique_ptr<archive, decltype(&archive_write_free)> archive_;
};

/// The reason why the name of a tensor cannot be the name of a member of an archive, or of a file below a directory.
std::optional<std::string> zip_refusal(std::string_view name) {
  if (name.size() <= 65000 && name.find('\0') == std::string_view::npos) { return std::nullopt; }
  return "its name is too long for a ZIP archive, or has a zero byte";
}
std::optional<std::string> path_refusal(std::string_view name) {
  constexpr std::size_t longest_name = 200;  // of a file; leaves space for the name under which it is written
  const auto is_bad = [](std::string_view part) { return part.empty() || part == "." || part == ".." || part.size() > longest_name; };
  bool is_path = name.size() <= 2000 && name.find('\0') == std::string_view::npos;
  for (std::size_t begin = 0; is_path && begin <= name.size();) {
    const auto end = std::min(name.find('/', begin), name.size());
    is_path = !is_bad(name.substr(begin, end - begin));
    begin = end + 1;
  }
  if (is_path) { return std::nullopt; }
  return "its name is not the path of a file below the directory";
}

/// The exported and the skipped tensors.
struct export_report {
  std::vector<std::string> written;
  std::vector<std::pair<std::string, std::string>> left_out;  ///< With the reason.
  std::uint64_t bytes = 0;
};

/// Passes the bytes of the .npy file of a tensor to `append`, after `begin(size)`. `refusal` is a reason to skip the tensor.
template<class Begin, class Append>
void add_tensor(const checkpoint_reader& reader, const checkpoint_entry& entry, std::optional<std::string> refusal, export_report& report,
                Begin begin, Append append) {
  if (!entry.unsupported.empty()) { refusal = entry.unsupported; }
  const auto planned = refusal ? array_plan{.header = {}, .refusal = std::move(refusal)} : plan(reader, entry);
  if (planned.refusal) {
    report.left_out.emplace_back(entry.name, *planned.refusal);
    return;
  }
  begin(planned.header.size() + planned.size);
  append(std::as_bytes(std::span(planned.header)));
  visit_array(reader, entry, planned, append);
  report.written.emplace_back(entry.name);
  report.bytes += planned.size;
}

void write_archive(const checkpoint_reader& reader, const std::vector<checkpoint_entry>& entries, const export_options& options,
                   console& to, export_report& report) {
  zip_archive zip(value_or_throw(io::atomic_file::create(*to.files, options.npz)));
  for (const auto& entry : entries) {
    add_tensor(
        reader, entry, zip_refusal(entry.name), report, [&](std::uint64_t size) { zip.begin(std::string(entry.name) + ".npy", size); },
        [&](std::span<const std::byte> bytes) { zip.append(bytes); });
  }
  zip.finish();
}

/// Writes one file for each tensor. Each file appears when it is complete.
void write_files(const checkpoint_reader& reader, const std::vector<checkpoint_entry>& entries, const export_options& options, console& to,
                 export_report& report) {
  value_or_throw(to.files->create_directories(options.npy));
  for (const auto& entry : entries) {
    std::optional<io::atomic_file> file;
    const auto begin = [&](std::uint64_t /*size*/) {
      const auto path = io::join_path(options.npy, std::string(entry.name) + ".npy");
      value_or_throw(to.files->create_directories(io::parent_directory(path)));
      file.emplace(value_or_throw(io::atomic_file::create(*to.files, path)));
    };
    add_tensor(reader, entry, path_refusal(entry.name), report, begin,
               [&](std::span<const std::byte> bytes) { value_or_throw(file->append(bytes)); });
    if (file) { value_or_throw(file->publish()); }
  }
}

/// The reason why a file of safetensors cannot hold a tensor.
std::optional<std::string> safetensors_refusal(const checkpoint_entry& entry) {
  if (!entry.unsupported.empty()) { return std::string(entry.unsupported); }
  if (entry.is_object_graph) { return "TensorFlow's object graph, not a variable"; }
  if (format::safetensors_type(entry.dtype).empty()) { return "safetensors has no type for " + dtype_text(entry.dtype); }
  if (!format::is_utf8(entry.name) || entry.name == "__metadata__") { return "safetensors cannot hold its name"; }
  return std::nullopt;
}

/// Writes one file of safetensors, with the widest elements first, as its Python package does, so that all elements are aligned.
void write_safetensors(const checkpoint_reader& reader, const std::vector<checkpoint_entry>& entries, const export_options& options,
                       console& to, export_report& report) {
  std::vector<checkpoint_entry> wanted;
  for (const auto& entry : entries) {
    if (auto refusal = safetensors_refusal(entry)) {
      report.left_out.emplace_back(entry.name, std::move(*refusal));
    } else {
      wanted.push_back(entry);
    }
  }
  std::ranges::stable_sort(wanted, std::greater(), [](const auto& entry) { return size_of(entry.dtype); });
  std::vector<format::safetensors_array> arrays;
  for (const auto& entry : wanted) { arrays.push_back({entry.name, entry.dtype, entry.shape}); }
  std::vector<std::pair<std::string, std::string>> metadata{{"format", "pt"}};  // required by some programs; it does not change the arrays
  if (const auto step = reader.step()) { metadata.emplace_back("step", fmt::format("{}", *step)); }
  const auto header = value_or_throw(format::encode_safetensors_header(arrays, metadata));
  auto file = value_or_throw(io::atomic_file::create(*to.files, options.safetensors));
  value_or_throw(file.append(std::as_bytes(std::span(header))));
  for (const auto& entry : wanted) {
    visit_numbers(reader, entry, [&](std::span<const std::byte> bytes) { value_or_throw(file.append(bytes)); });
    report.written.emplace_back(entry.name);
    report.bytes += entry.size_bytes;
  }
  value_or_throw(file.publish());
}

void print_report(const export_report& report, const export_options& options, console& to) {
  const auto& target = !options.npz.empty() ? options.npz : !options.npy.empty() ? options.npy : options.safetensors;
  if (!options.json) {
    for (const auto& [name, why] : report.left_out) { print_error(to, fmt::format("left out {}: {}", name, why)); }
    to.out << "wrote " << printable(to, target) << ": " << count_text(report.written.size(), "array") << ", " << size_text(report.bytes)
           << '\n';
    return;
  }
  json_document document(to.out);
  document.add(options.npy.empty() ? "file" : "directory", target);
  document.add("bytes", report.bytes);
  document.add_list("written", report.written);
  document.add("left_out", json_members(report.left_out));
  document.end();
}

/// @errors `invalid_argument_error` if `file` exists and is a device, a pipe or a link, or is one of the files of the checkpoint.
void check_output(const checkpoint_reader& reader, const std::string& file, const console& to) {
  std::error_code unknown;
  const auto kind = std::filesystem::symlink_status(file, unknown).type();
  if (kind != std::filesystem::file_type::regular && kind != std::filesystem::file_type::not_found &&
      kind != std::filesystem::file_type::none) {
    throw invalid_argument_error("this is not a regular file; give the name of a regular file, or of a new one", file);
  }
  const auto target = to.files->canonical(file);
  if (!target) { return; }  // a new file
  auto own = reader.data_files();
  own.insert(own.end(), {reader.prefix(), format::index_name(reader.prefix())});
  for (const auto& one : own) {
    if (const auto path = to.files->canonical(one); path && *path == *target) {
      throw invalid_argument_error("this is a file of the checkpoint that is exported; give another name", file);
    }
  }
}

}  // namespace

exit_code export_arrays(const export_options& options, console& to) {
  if (!options.npz.empty() + !options.npy.empty() + !options.safetensors.empty() != 1) {
    throw invalid_argument_error("give one of --npz FILE, --npy DIRECTORY and --safetensors FILE");
  }
  const auto reader = open_checkpoint(to, options.target);
  for (const auto& name : options.tensors) {
    if (!reader.contains(name)) { throw not_found_error(fmt::format("the checkpoint has no tensor \"{}\"", name), reader.prefix()); }
  }
  if (options.npy.empty()) { check_output(reader, options.npz.empty() ? options.safetensors : options.npz, to); }
  std::vector<checkpoint_entry> wanted;
  for (const auto& entry : reader.entries()) {
    if (options.tensors.empty() || std::ranges::find(options.tensors, entry.name) != options.tensors.end()) { wanted.push_back(entry); }
  }
  export_report report;
  const auto write = !options.npz.empty() ? write_archive : !options.npy.empty() ? write_files : write_safetensors;
  write(reader, wanted, options, to, report);
  print_report(report, options, to);
  return exit_code::good;
}

}  // namespace stepwell::tool
