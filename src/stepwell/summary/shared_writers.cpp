// SPDX-License-Identifier: Apache-2.0
//
// One writer for each directory, shared by the hooks of a session and the sessions of a process.
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/summary/detail/writer_core.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

namespace stepwell::summary {
namespace {

// A directory in a file system.
using place = std::pair<const io::file_system*, std::string>;

struct registry {
  std::mutex mutex;
  std::map<place, std::weak_ptr<writer>> writers;
};

registry& known_writers() {
  static registry* const instance = new registry;  // never destroyed, because static destructors may request writers
  return *instance;
}

}  // namespace

std::shared_ptr<writer> writer::shared(const std::string& directory) { return shared(directory, writer_options()); }

std::shared_ptr<writer> writer::shared(const std::string& directory, writer_options options) {
  value_or_throw(options.files->create_directories(directory));
  const place where(options.files.get(), value_or_throw(options.files->canonical(directory)));
  auto& all = known_writers();
  const std::lock_guard lock(all.mutex);
  auto known = all.writers[where].lock();
  if (known && !known->is_closed()) {
    const auto& served = known->core_->metrics();
    const auto is_served = [&](const auto& metric) { return std::ranges::find(served, metric) != served.end(); };
    if (!std::ranges::all_of(options.metrics, is_served)) {
      log_warning(
          fmt::format("{}: a metric file was given for this directory after its event file was opened; nothing is written to it. Give it "
                      "to the first writer of the directory, such as a hook that is created before the session",
                      where.second));
    }
    return known;
  }
  known = std::make_shared<writer>(where.second, std::move(options));
  std::erase_if(all.writers, [](const auto& entry) { return entry.second.expired(); });
  all.writers[where] = known;
  return known;
}

}  // namespace stepwell::summary
