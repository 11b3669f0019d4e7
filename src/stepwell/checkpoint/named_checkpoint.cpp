// SPDX-License-Identifier: Apache-2.0
#include "stepwell/checkpoint/named_checkpoint.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/checkpoint/detail/leftovers.hpp"
#include "stepwell/checkpoint/detail/state_file.hpp"
#include "stepwell/format/checkpoint/bundle.hpp"
#include "stepwell/io/file_system.hpp"
#include "stepwell/io/path.hpp"

#include <utility>

namespace stepwell {
namespace {

std::shared_ptr<io::file_system> or_real(std::shared_ptr<io::file_system> files) {
  return files ? std::move(files) : io::posix_file_system();
}

}  // namespace

bool checkpoint_exists(const std::string& prefix, std::shared_ptr<io::file_system> files) {
  return value_or_throw(or_real(std::move(files))->exists(format::index_name(prefix)));
}

std::vector<clock::wall_time> get_checkpoint_mtimes(std::span<const std::string> prefixes, std::shared_ptr<io::file_system> files) {
  files = or_real(std::move(files));
  std::vector<clock::wall_time> times;
  for (const auto& prefix : prefixes) {
    const auto index = files->stat(format::index_name(prefix));
    if (index) {
      times.push_back(index->modified);
    } else if (index.error().code != errc::not_found) {
      throw_status(index.error());
    }
  }
  return times;
}

void remove_checkpoint(const std::string& prefix, std::shared_ptr<io::file_system> files) {
  files = or_real(std::move(files));
  const auto directory = io::parent_directory(prefix);
  const auto removed = files->remove(format::index_name(prefix));
  if (!removed && removed.error().code != errc::not_found) { throw_status(removed.error()); }
  if (removed) { value_or_throw(files->sync_directory(directory)); }  // so that the index cannot reappear after its data is removed
  detail::remove_data_files(*files, directory, detail::names_in(*files, directory), io::base_name(prefix), 0);
  const auto graph = files->remove(prefix + ".meta");
  if (!graph && graph.error().code != errc::not_found) { log_warning(graph.error().to_string()); }
}

}  // namespace stepwell
