// SPDX-License-Identifier: Apache-2.0
//
// `stepwell compare`: last and best values of several runs, and the hyper-parameters that differ.
#include "tool/commands.hpp"

#include "stepwell/base/error.hpp"
#include "tool/event_stream.hpp"
#include "tool/event_values.hpp"
#include "tool/json.hpp"
#include "tool/repeated_steps.hpp"
#include "tool/target.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <variant>

namespace stepwell::tool {
namespace {

constexpr std::size_t most_tags = 10'000;  // of one run

struct point {
  std::int64_t step = 0;
  double value = 0;
};

/// The values of one tag in one run.
struct tag_values {
  std::uint64_t count = 0;
  point last = {};
  std::optional<point> least = {};  ///< Empty if no value is finite.
  std::optional<point> greatest = {};

  void add(std::int64_t step, double value) {
    ++count;
    last = {step, value};
    if (!std::isfinite(value)) { return; }
    if (!least || value < least->value) { least = last; }
    if (!greatest || value > greatest->value) { greatest = last; }
  }
  [[nodiscard]] const std::optional<point>& best(bool is_higher_better) const noexcept { return is_higher_better ? greatest : least; }
};

struct run_values {
  std::string name;
  std::map<std::string, tag_values, std::less<>> tags = {};
  std::map<std::string, std::string> settings = {};
  exit_code how = exit_code::good;
};

/// Returns true if `tag` is one of the requested tags.
bool is_wanted(const compare_options& options, const std::string& tag) {
  return options.tags.empty() || std::ranges::any_of(options.tags, [&](const auto& pattern) { return matches_tag(pattern, tag); });
}

run_values read_run(const std::string& target, const compare_options& options, console& to) {
  run_values run{.name = target};
  const auto files = require_event_files(to, target);
  const repeated_steps repeated(files, to);
  for (std::size_t i = 0; i < files.size(); ++i) {
    event_stream stream(*to.files, files[i]);
    const auto how = each_event(stream, to, [&](const format::event& happened) {
      const auto* values = std::get_if<format::summary>(&happened.what);
      if (values == nullptr || repeated.is_obsolete(i, stream.records(), happened)) { return; }
      for (const auto& value : values->values) {
        for (auto& [name, setting] : settings_of(value)) { run.settings[name] = setting; }
        const auto number = scalar_of(value);
        if (!number || !is_wanted(options, value.tag)) { continue; }
        if (run.tags.size() < most_tags || run.tags.contains(value.tag)) { run.tags[value.tag].add(happened.step, *number); }
      }
    });
    run.how = worse(run.how, how);
  }
  return run;
}

/// Returns true if the greatest value of `tag` is the best: a word of `tag` is the name of such a metric ("eval/top5_accuracy"), or `tag` is a
/// rate ("global_step/sec").
bool is_named_like_score(std::string_view tag) {
  if (tag.ends_with("/sec")) { return true; }
  constexpr std::array<std::string_view, 16> names = {"accuracy", "acc",    "auc",  "precision", "recall", "f1",  "r2",   "score",
                                                      "reward",   "return", "bleu", "rouge",     "map",    "iou", "dice", "psnr"};
  std::string word;
  const auto is_name = [&] { return std::ranges::find(names, word) != names.end(); };
  for (const char letter : tag) {
    if (std::isalnum(static_cast<unsigned char>(letter)) != 0) {
      word.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(letter))));
    } else {
      if (is_name()) { return true; }
      word.clear();
    }
  }
  return is_name();
}

/// One tag, with its values in each run that has it.
struct compared_tag {
  std::string tag;
  bool is_higher_better = false;
  std::vector<const tag_values*> runs = {};  ///< In the order of the runs; null if a run does not have the tag.

  /// Returns the best value of all runs, if there is one.
  [[nodiscard]] std::optional<double> best() const {
    std::optional<double> found;
    for (const auto* values : runs) {
      const auto own = values != nullptr ? values->best(is_higher_better) : std::nullopt;
      if (own && (!found || (is_higher_better ? own->value > *found : own->value < *found))) { found = own->value; }
    }
    return found;
  }
};

struct compared_setting {
  std::string name;
  std::vector<std::optional<std::string>> runs = {};  ///< In the order of the runs.
};

std::vector<compared_tag> compared_tags(const std::vector<run_values>& runs, const compare_options& options) {
  std::set<std::string> tags;
  for (const auto& run : runs) {
    for (const auto& [tag, values] : run.tags) { tags.insert(tag); }
  }
  std::vector<compared_tag> all;
  for (const auto& tag : tags) {
    const bool is_chosen = std::ranges::any_of(options.higher_is_better, [&](const auto& pattern) { return matches_tag(pattern, tag); });
    compared_tag made{.tag = tag, .is_higher_better = is_chosen || is_named_like_score(tag)};
    for (const auto& run : runs) {
      const auto found = run.tags.find(tag);
      made.runs.push_back(found != run.tags.end() ? &found->second : nullptr);
    }
    all.push_back(std::move(made));
  }
  return all;
}

std::vector<compared_setting> differing_settings(const std::vector<run_values>& runs) {
  std::set<std::string> names;
  for (const auto& run : runs) {
    for (const auto& [name, setting] : run.settings) { names.insert(name); }
  }
  std::vector<compared_setting> all;
  for (const auto& name : names) {
    compared_setting made{.name = name};
    for (const auto& run : runs) {
      const auto found = run.settings.find(name);
      made.runs.push_back(found != run.settings.end() ? std::optional(found->second) : std::nullopt);
    }
    const bool is_same = std::ranges::all_of(made.runs, [&](const auto& one) { return one == made.runs.front(); });
    if (!is_same) { all.push_back(std::move(made)); }
  }
  return all;
}

void print_tags(const std::vector<compared_tag>& tags, const std::vector<run_values>& runs, console& to) {
  text_table table({"TAG", "RUN", ">LAST", ">STEP", ">BEST", ">STEP", ""});
  for (const auto& one : tags) {
    const auto best = one.best();
    bool is_first = true;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      std::vector<cell> row{{is_first ? printable(one.tag) : "", ink::cyan}, printable(runs[i].name)};
      is_first = false;
      if (const auto* values = one.runs[i]; values == nullptr) {
        row.insert(row.end(), {"-", "-", "-", "-", ""});
      } else {
        const auto own = values->best(one.is_higher_better);
        const bool is_best = own && best && own->value == *best;
        row.insert(row.end(), {number_text(values->last.value),
                               std::to_string(values->last.step),
                               {own ? number_text(own->value) : "-", is_best ? ink::green : ink::plain},
                               own ? std::to_string(own->step) : "-",
                               std::string(one.is_higher_better ? "max" : "min") + (is_best ? " *" : "")});
      }
      table.add(std::move(row));
    }
  }
  table.print(to);
  to.out << "\n* the best of the runs; max and min say which value of a run is its best\n";
}

void print_settings(const std::vector<compared_setting>& settings, const std::vector<run_values>& runs, console& to) {
  const bool has_any = std::ranges::any_of(runs, [](const auto& run) { return !run.settings.empty(); });
  if (!has_any) { return; }
  if (settings.empty()) {
    to.out << "\nthe hyper-parameters are equal\n";
    return;
  }
  std::vector<std::string> headings{"HYPER-PARAMETER"};
  for (const auto& run : runs) { headings.push_back(printable(run.name)); }
  text_table table(std::move(headings));
  for (const auto& one : settings) {
    std::vector<cell> row{{one.name, ink::cyan}};
    for (const auto& setting : one.runs) { row.emplace_back(setting.value_or("-")); }
    table.add(std::move(row));
  }
  to.out << '\n';
  table.print(to);
}

json point_json(const point& of) { return {{"step", of.step}, {"value", json_number(of.value)}}; }

void print_json(const std::vector<compared_tag>& tags, const std::vector<compared_setting>& settings, const std::vector<run_values>& runs,
                console& to) {
  json_document document(to.out);
  document.add_list("runs", runs, [](const auto& run) { return run.name; });
  document.add_list("tags", tags, [](const compared_tag& one) {
    return json{{"tag", one.tag},
                {"best", one.is_higher_better ? "max" : "min"},
                {"runs", json_list(one.runs, [&](const tag_values* values) {
                   if (values == nullptr) { return json(); }
                   json made{{"count", values->count}, {"last", point_json(values->last)}};
                   if (const auto& best = values->best(one.is_higher_better)) { made["best"] = point_json(*best); }
                   return made;
                 })}};
  });
  document.add_list("hparams", settings, [](const compared_setting& one) {
    return json{{"name", one.name}, {"runs", json_list(one.runs, [](const auto& setting) { return setting ? json(*setting) : json(); })}};
  });
  document.end();
}

}  // namespace

exit_code compare(const compare_options& options, console& to) {
  std::vector<run_values> runs;
  exit_code how = exit_code::good;
  for (const auto& target : options.targets) {
    runs.push_back(read_run(target, options, to));
    how = worse(how, runs.back().how);
  }
  const auto tags = compared_tags(runs, options);
  for (const auto& pattern : options.tags) {
    if (std::ranges::any_of(tags, [&](const auto& one) { return matches_tag(pattern, one.tag); })) { continue; }
    throw not_found_error(fmt::format("no run has scalars of {}", printable(pattern)), options.targets.front());
  }
  const auto settings = differing_settings(runs);
  if (options.json) {
    print_json(tags, settings, runs, to);
  } else {
    if (!tags.empty()) { print_tags(tags, runs, to); }
    print_settings(settings, runs, to);
  }
  return how;
}

}  // namespace stepwell::tool
