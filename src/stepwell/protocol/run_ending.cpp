// SPDX-License-Identifier: Apache-2.0
#include "stepwell/protocol/run_ending.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/format/checkpoint/detail/ending_file.hpp"
#include "stepwell/io/atomic_file.hpp"
#include "stepwell/io/detail/read_file.hpp"
#include "stepwell/io/file_system.hpp"

#include <array>

namespace stepwell {
namespace {

constexpr std::uint64_t max_bytes = 1 << 20;

std::string path_in(const std::string& directory) { return io::join_path(directory, format::ending_file_name); }

/// Returns the value of `all` with the name `name`.
template<class Enum, std::size_t N>
std::optional<Enum> named(const std::array<Enum, N>& all, std::string_view name) {
  for (const auto value : all) {
    if (to_string(value) == name) { return value; }
  }
  return std::nullopt;
}

constexpr std::array all_endings{session_ending::finished, session_ending::interrupted, session_ending::failed};

}  // namespace

std::optional<run_ending> run_ended(io::file_system& files, const std::string& directory) {
  const auto path = path_in(directory);
  const auto text = io::read_text_file(files, path, max_bytes);
  if (!text) {
    if (text.error().code == errc::not_found) { return std::nullopt; }
    throw_status(text.error());
  }
  auto read = format::decode_ending_file(*text);
  if (!read) { throw data_loss_error(read.error().message, path); }
  const auto how = named(all_endings, read->how);
  if (!how) {
    throw data_loss_error("the ending file has an unknown value of `how`; a later version of stepwell may have written it", path);
  }
  const auto cause = named(detail::all_stop_causes, read->cause).value_or(stop_cause::none);  // `none`: a later version knows more causes
  return run_ending{.how = *how, .why = {cause, std::move(read->text)}, .global_step = read->global_step};
}

std::optional<run_ending> run_ended(const std::string& directory) { return run_ended(*io::posix_file_system(), directory); }

namespace detail {

session_ending ending_after(stop_cause cause) noexcept {
  switch (cause) {
    case stop_cause::error:
    case stop_cause::nan: return session_ending::failed;
    case stop_cause::signal:
    case stop_cause::stop_token:
    case stop_cause::deadline: return session_ending::interrupted;
    default: return session_ending::finished;
  }
}

void write_ending_file(io::file_system& files, const std::string& directory, const run_ending& ending) {
  value_or_throw(io::write_file_atomically(files, path_in(directory),
                                           format::encode(format::ending_file{.how = std::string(to_string(ending.how)),
                                                                              .cause = std::string(to_string(ending.why.cause)),
                                                                              .text = ending.why.text,
                                                                              .global_step = ending.global_step})));
}

void remove_ending_file(io::file_system& files, const std::string& directory) {
  auto removed = files.remove(path_in(directory));
  if (!removed && removed.error().code == errc::not_found) { return; }
  value_or_throw(std::move(removed));
  value_or_throw(files.sync_directory(directory));
}

}  // namespace detail
}  // namespace stepwell
