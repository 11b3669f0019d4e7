// SPDX-License-Identifier: Apache-2.0
#include "tool/repeated_steps.hpp"

#include "stepwell/base/error.hpp"
#include "tool/event_stream.hpp"

#include <algorithm>
#include <utility>
#include <variant>

namespace stepwell::tool {

repeated_steps::repeated_steps(const std::vector<std::string>& files, const console& to) {
  for (std::size_t i = 0; i < files.size(); ++i) {
    event_stream stream(*to.files, files[i], large_records::silent);
    const auto add = [&](const format::event& happened) {
      const auto* log = std::get_if<format::session_log>(&happened.what);
      if (log != nullptr && log->status == format::session_status::start) { starts_.push_back({i, stream.records(), happened.step}); }
    };
    each_event_and_damage(stream, add, [](const std::string&) {});  // the next reader reports the damage
  }
  auto least = INT64_MAX;
  for (auto one = starts_.rbegin(); one != starts_.rend(); ++one) { least = one->least_step = std::min(least, one->least_step); }
}

bool repeated_steps::is_obsolete(std::size_t file, std::uint64_t record, const format::event& happened) const {
  if (!std::holds_alternative<format::summary>(happened.what)) { return false; }
  const auto later =
      std::ranges::upper_bound(starts_, std::pair(file, record), {}, [](const start& one) { return std::pair(one.file, one.record); });
  return later != starts_.end() && happened.step >= later->least_step;
}

}  // namespace stepwell::tool
