// SPDX-License-Identifier: Apache-2.0
#include "tool/commands.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/checkpoint/detail/beside_writer.hpp"
#include "stepwell/checkpoint/detail/checkpoint_directory.hpp"
#include "stepwell/checkpoint/find_checkpoints.hpp"
#include "stepwell/io/detail/lock_content.hpp"
#include "stepwell/io/fenced_directory.hpp"
#include "stepwell/io/file_system.hpp"
#include "stepwell/protocol/run_ending.hpp"
#include "tool/json.hpp"
#include "tool/target.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <memory>
#include <set>
#include <string_view>

namespace stepwell::tool {
namespace {

using detail::checkpoint_directory;
using detail::directory_access;

/// Returns the pins as the library accepts them: a directory stands for its newest checkpoint.
std::vector<std::string> pins_of(const prune_options& options, const console& to) {
  auto pins = options.pinned;
  for (auto& pin : pins) {
    if (!pin.empty() && is_directory(to, pin)) { pin = require_checkpoint(to, pin); }
  }
  return pins;
}

/// The decision about one checkpoint.
struct verdict {
  std::string name;
  std::int64_t step = 0;
  double time = 0;
  std::uint64_t bytes = 0;
  std::string_view what;  ///< "keep", "delete", or "forget": kept permanently, but no longer listed.
  std::string_view why;
};

struct decision {
  std::vector<verdict> verdicts;
  std::vector<std::string> leftovers;
  std::uint64_t freed = 0;  ///< Bytes.
};

saver_options rules_of(const prune_options& options, const console& to) {
  saver_options rules;
  rules.basename = options.basename;
  rules.max_to_keep = options.max_to_keep;
  if (options.keep_every_n_hours) { rules.keep_every_n_hours = *options.keep_every_n_hours; }
  rules.pinned = pins_of(options, to);
  rules.file_system = to.files;
  rules.clock = to.time;
  check_saver_options(rules);
  return rules;
}

decision decide(const checkpoint_directory& directory, const prune_options& options, const console& to) {
  const auto plan = directory.plan();
  const bool is_of_session = !options.yes && is_in_use(to, options.directory);  // its files in progress are no leftovers
  decision made{.verdicts = {}, .leftovers = is_of_session ? std::vector<std::string>() : directory.leftovers()};
  const auto names_of = [](const auto& list) {
    std::set<std::string_view> names;
    for (const auto& one : list) { names.insert(one.name); }
    return names;
  };
  const auto deleted = names_of(plan.deleted);
  const auto listed = names_of(plan.listed);
  checkpoint_sizes sizes(to);
  for (const auto& one : directory.listed()) {
    const auto prefix = one.name.starts_with('/') ? one.name : io::join_path(options.directory, one.name);
    const auto bytes = sizes.of(prefix);
    if (!bytes) { continue; }  // deleted in the meantime
    verdict seen{one.name, one.step, one.time, *bytes, "keep", ""};
    if (deleted.contains(one.name)) {
      seen.what = "delete";
      made.freed += seen.bytes;
    } else if (!listed.contains(one.name)) {
      seen.what = "forget";
      seen.why = one.is_ours ? "kept by --keep-every-n-hours" : "not written by a saver of stepwell";
    } else if (one.is_protected) {
      seen.why = "pinned, or the newest complete one";
    }
    made.verdicts.push_back(seen);
  }
  return made;
}

void print_as_text(const decision& made, const prune_options& options, console& to) {
  text_table table({"CHECKPOINT", ">STEP", "WRITTEN (UTC)", ">SIZE", "WHAT", "WHY"});
  for (const auto& one : made.verdicts) {
    table.add({{printable(one.name), ink::cyan},
               std::to_string(one.step),
               time_text(one.time),
               size_text(one.bytes),
               {std::string(one.what), one.what == "delete" ? ink::red : ink::green},
               {std::string(one.why), ink::dim}});
  }
  table.print(to);
  for (const auto& name : made.leftovers) {
    to.out << printable(to, name) << ": left by a killed save, " << (options.yes ? "deleted" : "would be deleted") << '\n';
  }
  const auto count = static_cast<std::uint64_t>(std::ranges::count(made.verdicts, "delete", &verdict::what));
  to.out << '\n' << count_text(count, "checkpoint") << ", " << size_text(made.freed) << (options.yes ? " deleted\n" : " would be deleted");
  if (!options.yes) { to.out << (count == 0 && made.leftovers.empty() ? "\n" : "; nothing is deleted without --yes\n"); }
}

void print_as_json(const decision& made, const prune_options& options, console& to) {
  json_document document(to.out);
  document.add("done", options.yes);
  document.add("freed_bytes", made.freed);
  document.add_list("checkpoints", made.verdicts, [](const verdict& one) {
    return json{{"name", one.name}, {"step", one.step}, {"time", json_number(one.time)}, {"bytes", one.bytes}, {"what", one.what}};
  });
  document.add_list("leftovers", made.leftovers);
  document.end();
}

/// Returns the file system through which checkpoints are deleted. If the directory has a fence, this command becomes its newest writer.
/// @errors `failed_precondition_error` if a session may still use the fence: it would not be able to save any more.
std::shared_ptr<io::file_system> files_for_changes(const prune_options& options, const console& to) {
  if (!io::detail::fence_owner(*to.files, options.directory)) { return to.files; }
  const auto holder = holder_of(to, options.directory);
  if (holder && !holder->is_gone && !run_ended(*to.files, options.directory)) {
    throw failed_precondition_error(
        fmt::format("the process {} on host {} may be training in this directory, since {}; it could not save any more after a change. Run "
                    "this command after the end of that process{}",
                    holder->pid, printable(holder->host), printable(holder->since), holder->is_here ? "" : ", on that host"),
        options.directory);
  }
  return std::make_shared<io::fenced_directory>(options.directory, to.files);
}

/// Throws `not_found_error` if the directory has checkpoints, but none with the chosen basename.
void require_basename(const prune_options& options, const console& to) {
  const auto all = indexes_in(to, options.directory);
  if (all.empty() || !list_checkpoints(options.directory, options.basename, to.files).empty()) { return; }
  throw not_found_error(fmt::format("there is no checkpoint {}-STEP in this directory, only {} and {} more; choose them with --basename",
                                    options.basename, io::base_name(all.back()), all.size() - 1),
                        options.directory);
}

}  // namespace

exit_code prune(const prune_options& options, console& to) {
  require_directory(to, options.directory);
  auto rules = rules_of(options, to);
  require_basename(options, to);
  const auto planned = detail::read_beside_writer(options.directory, [&]() -> std::optional<decision> {
    checkpoint_directory looked(options.directory, rules, directory_access::look);  // an error here leaves the directory unchanged
    if (!looked.restore_newest()) { throw not_found_error("there is no checkpoint in this directory", options.directory); }
    auto made = decide(looked, options, to);
    return made.verdicts.empty() ? std::nullopt : std::optional(std::move(made));
  });
  if (!options.yes) {
    options.json ? print_as_json(planned, options, to) : print_as_text(planned, options, to);
    return exit_code::good;
  }
  rules.file_system = files_for_changes(options, to);
  checkpoint_directory held(options.directory, rules);
  static_cast<void>(held.restore_newest());  // protects the newest checkpoint from deletion
  const auto made = decide(held, options, to);
  held.prune();
  held.close();
  options.json ? print_as_json(made, options, to) : print_as_text(made, options, to);
  return exit_code::good;
}

}  // namespace stepwell::tool
