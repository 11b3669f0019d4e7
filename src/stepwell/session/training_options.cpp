// SPDX-License-Identifier: Apache-2.0
#include "stepwell/session/training_options.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/group/group.hpp"
#include "stepwell/io/file_system.hpp"

#include <fmt/format.h>

#include <string_view>
#include <vector>

namespace stepwell {

training_options::operator session_setup() const {
  const auto refuse = [](std::string_view option, std::string_view instead) {
    throw invalid_argument_error(fmt::format("monitored_session: {} is given, but {}", option, instead));
  };
  for (const auto& given : {detail::given_for_checkpoints(*this), detail::given_for_events(*this)}) {
    if (!given.empty()) { refuse(given.front(), "this session has no default hooks; give it a hook, or use monitored_training_session"); }
  }
  if (!master.empty()) { refuse("master", "this option is for monitored_training_session; give a session creator with a target"); }
  if (!is_chief) { refuse("is_chief = false", "this option is for monitored_training_session; give a worker_session_creator"); }
  return {.options = *this};
}

namespace detail {

namespace {

/// Appends the given options of `all`, which are members of the option `owner`.
void append_given(std::vector<std::string>& names, std::string_view owner, const std::vector<named_option>& all) {
  for (const auto& [name, is_given] : all) {
    if (is_given) { names.push_back(fmt::format("{}.{}", owner, name)); }
  }
}

}  // namespace

std::vector<std::string> given_for_checkpoints(const training_options& options) {
  std::vector<std::string> names;
  append_given(names, "saves", named_options(options.saves));
  if (!options.checkpoint_dir.empty()) { std::erase(names, "saves.saver.basename"); }  // restores read it, too
  return names;
}

std::vector<std::string> given_for_events(const training_options& options) {
  std::vector<std::string> names;
  if (!options.metrics.empty()) { names.emplace_back("metrics"); }
  append_given(names, "summaries", named_options(options.summaries));
  append_given(names, "step_counter", named_options(options.step_counter));
  return names;
}

void resolve_role(training_options& options) {
  if (!options.group) { return; }
  if (!options.master.empty()) {
    throw invalid_argument_error(
        "training_options: both group and master are given; in a group, rank 0 is the chief, and there is no master");
  }
  options.is_chief = options.group->is_chief();
}

void resolve_directories(training_options& options) {
  if (options.summary_dir.empty()) { options.summary_dir = options.checkpoint_dir; }
  for (auto* directory : {&options.checkpoint_dir, &options.summary_dir}) {
    *directory = options.is_chief ? value_or_throw(io::absolute_path(*directory)) : std::string();
  }
}

summary::writer_options event_options(const training_options& options, summary::writer_options events) {
  const auto& saver = options.saves.saver;
  if (saver.file_system) { events.file_system = saver.file_system; }
  if (saver.pool) { events.threads = saver.pool; }
  if (options.clock) { events.clock = options.clock; }
  events.metrics.insert(events.metrics.end(), options.metrics.begin(), options.metrics.end());
  return events;
}

session_target target_of(const training_options& options) { return {options.master, options.is_chief, options.config}; }

}  // namespace detail
}  // namespace stepwell
