// SPDX-License-Identifier: Apache-2.0
#include "stepwell/summary/detail/text_log.hpp"

#include "stepwell/base/log.hpp"
#include "stepwell/io/detail/file_lock.hpp"
#include "stepwell/io/path.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace stepwell::summary {
namespace {

result<std::string> text_at(io::file& file, std::uint64_t offset, std::size_t size) {
  std::string text(size, '\0');
  auto count = file.read_at(offset, std::as_writable_bytes(std::span(text)));
  if (!count) { return std::move(count).error(); }
  text.resize(*count);
  return text;
}

/// A sink that keeps the lock of its file until all writing, also in the background, has ended.
class locked_sink final : public io::byte_sink {
public:
  locked_sink(std::unique_ptr<io::file_lock> lock, std::unique_ptr<io::byte_sink> target)
      : lock_(std::move(lock)), target_(std::move(target)) {}

  result<void> write(std::span<const std::byte> bytes) override { return target_->write(bytes); }
  result<void> sync() override { return target_->sync(); }
  result<void> close() override { return target_->close(); }

private:
  std::unique_ptr<io::file_lock> lock_;  // released last
  std::unique_ptr<io::byte_sink> target_;
};

/// Returns the number of bytes up to the end of the last complete line.
result<std::uint64_t> whole_lines(io::file& file, std::uint64_t size) {
  constexpr std::uint64_t piece = 4096;
  constexpr std::uint64_t longest_line = std::uint64_t{64} << 20;
  for (std::uint64_t end = size; end > 0;) {
    if (size - end > longest_line) {
      return status(errc::data_loss, "the last 64 MiB of the file contain no end of a line; move it away, or choose another name",
                    file.path());
    }
    const auto begin = end - std::min(end, piece);
    const auto text = text_at(file, begin, static_cast<std::size_t>(end - begin));
    if (!text) { return text.error(); }
    if (const auto last = text->rfind('\n'); last != std::string::npos) { return begin + last + 1; }
    end = begin;
  }
  return std::uint64_t{0};
}

/// Removes an incomplete line at the end. Returns the remaining size.
result<std::uint64_t> mended(io::file& file, std::uint64_t size) {
  auto whole = whole_lines(file, size);
  if (!whole || *whole == size) { return whole; }
  if (auto cut = file.truncate(*whole); !cut) { return std::move(cut).error(); }
  log_warning(
      fmt::format("{}: removed an incomplete last line of {} bytes; the process that wrote it was killed", file.path(), size - *whole));
  return whole;
}

}  // namespace

result<text_log> open_text_log(io::file_system& files, const std::string& path, std::string_view beginning) {
  const auto directory = io::parent_directory(path);
  if (auto made = files.create_directories(directory); !made) { return std::move(made).error(); }
  auto lock = files.lock(path + ".lock");
  if (!lock) { return std::move(lock).error(); }
  auto file = files.open(path, io::open_mode::append);
  if (!file) { return std::move(file).error(); }
  const auto size = (*file)->size();
  if (!size) { return size.error(); }
  const auto found = text_at(**file, 0, static_cast<std::size_t>(std::min<std::uint64_t>(*size, beginning.size())));
  if (!found) { return found.error(); }
  if (*found != beginning.substr(0, found->size())) {
    return status(errc::invalid_argument,
                  fmt::format("the existing file does not begin with \"{}\"; choose another name, or move the file away",
                              beginning.substr(0, beginning.find('\n'))),
                  path);
  }
  const auto whole = mended(**file, *size);
  if (!whole) { return whole.error(); }
  if (*size == 0) {
    if (auto synced = files.sync_directory(directory); !synced) { return std::move(synced).error(); }
  }
  auto target = io::sink_into(std::move(file).value(), *whole);
  return text_log{std::make_unique<locked_sink>(std::move(lock).value(), std::move(target)), *whole == 0};
}

}  // namespace stepwell::summary
