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
};

/// The value of a tag that is the best one.
enum class direction { unknown, lower, higher };

std::string_view text_of(direction which) noexcept { return which == direction::higher ? "max" : which == direction::lower ? "min" : ""; }

/// Returns the best of the values. Empty if the direction is unknown, or no value is finite.
std::optional<point> best_of(const tag_values& values, direction which) {
  return which == direction::higher ? values.greatest : which == direction::lower ? values.least : std::nullopt;
}

struct run_values {
  std::string name;
  std::map<std::string, tag_values, std::less<>> tags = {};
  std::set<std::string> scalars = {};  ///< All tags, also those that are not compared.
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
        if (!number) { continue; }
        if (run.scalars.size() < most_tags) { run.scalars.insert(value.tag); }
        if (!is_wanted(options, value.tag)) { continue; }
        if (run.tags.size() < most_tags || run.tags.contains(value.tag)) { run.tags[value.tag].add(happened.step, *number); }
      }
    });
    run.how = worse(run.how, how);
  }
  return run;
}

/// Returns the words of a tag in lower case: "eval/top5_accuracy" has "eval", "top5" and "accuracy"; "meanReward" has "mean", "reward" and
/// "meanreward". Digits at the end of a word are optional.
std::set<std::string> words_of(std::string_view tag) {
  std::set<std::string> words;
  const auto add = [&](std::string& word) {
    words.insert(word);
    words.insert(word.substr(0, word.find_last_not_of("0123456789") + 1));
    word.clear();
  };
  const auto kind_at = [&](std::size_t i, int (*is_kind)(int)) {
    return i < tag.size() && is_kind(static_cast<unsigned char>(tag[i])) != 0;
  };
  std::string whole;
  std::string part;  // begins with a capital letter that follows a small letter or precedes one
  for (std::size_t i = 0; i < tag.size(); ++i) {
    const bool is_capital = kind_at(i, std::isupper);
    if (is_capital && i != 0 && (kind_at(i - 1, std::islower) || kind_at(i + 1, std::islower))) { add(part); }
    if (kind_at(i, std::isalnum)) {
      const auto letter = static_cast<char>(std::tolower(static_cast<unsigned char>(tag[i])));
      whole.push_back(letter);
      part.push_back(letter);
    } else {
      add(whole);
      add(part);
    }
  }
  add(whole);
  add(part);
  return words;
}

/// Returns the direction that the name of a tag states: `lower` if one of its words is the usual name of a loss or an error, otherwise
/// `higher` if a word is the usual name of a score, or the tag is a rate ("global_step/sec").
direction direction_in_name(std::string_view tag) {
  constexpr std::array<std::string_view, 21> losses = {"loss", "losses", "error", "errors", "err",  "perplexity", "ppl",
                                                       "mse",  "rmse",   "mae",   "mape",   "nll",  "wer",        "cer",
                                                       "xent", "kl",     "fid",   "regret", "cost", "eer",        "crossentropy"};
  constexpr std::array<std::string_view, 24> scores = {"accuracy", "acc",    "auc",    "auroc",   "precision", "recall",  "f1",   "r2",
                                                       "score",    "scores", "reward", "rewards", "return",    "returns", "bleu", "rouge",
                                                       "map",      "iou",    "miou",   "dice",    "psnr",      "ssim",    "ndcg", "mrr"};
  const auto words = words_of(tag);
  const auto has_one_of = [&](const auto& names) {
    return std::ranges::any_of(names, [&](std::string_view name) { return words.contains(std::string(name)); });
  };
  if (has_one_of(losses) || (words.contains("cross") && words.contains("entropy"))) { return direction::lower; }
  return tag.ends_with("/sec") || has_one_of(scores) ? direction::higher : direction::unknown;
}

bool is_chosen(const std::vector<std::string>& patterns, const std::string& tag) {
  return std::ranges::any_of(patterns, [&](const auto& pattern) { return matches_tag(pattern, tag); });
}

/// Returns the direction that the options state for a tag, otherwise that of its name.
direction direction_of(const std::string& tag, const compare_options& options) {
  const bool is_higher = is_chosen(options.higher_is_better, tag);
  const bool is_lower = is_chosen(options.lower_is_better, tag);
  if (is_higher && is_lower) {
    throw invalid_argument_error(fmt::format("--higher-is-better and --lower-is-better both match {}", printable(tag)));
  }
  return is_higher ? direction::higher : is_lower ? direction::lower : direction_in_name(tag);
}

/// One tag, with its values in each run that has it.
struct compared_tag {
  std::string tag;
  direction which = direction::unknown;
  std::vector<const tag_values*> runs = {};  ///< In the order of the runs; null if a run does not have the tag.

  /// Returns the best value of all runs, if there is one.
  [[nodiscard]] std::optional<double> best() const {
    std::optional<double> found;
    for (const auto* values : runs) {
      const auto own = values != nullptr ? best_of(*values, which) : std::nullopt;
      if (own && (!found || (which == direction::higher ? own->value > *found : own->value < *found))) { found = own->value; }
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
    compared_tag made{.tag = tag, .which = direction_of(tag, options)};
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
        const auto own = best_of(*values, one.which);
        const bool is_best = own && best && own->value == *best;
        row.insert(row.end(), {number_text(values->last.value),
                               std::to_string(values->last.step),
                               {own ? number_text(own->value) : "-", is_best ? ink::green : ink::plain},
                               own ? std::to_string(own->step) : "-",
                               std::string(text_of(one.which)) + (is_best ? " *" : "")});
      }
      table.add(std::move(row));
    }
  }
  table.print(to);
  const auto has = [&](bool is_known) {
    return std::ranges::any_of(tags, [&](const auto& one) { return (one.which != direction::unknown) == is_known; });
  };
  to.out << '\n';
  if (has(true)) { to.out << "* the best of the runs; max and min say which value of a run is its best\n"; }
  if (has(false)) { to.out << "- the name does not say which value is the best; --higher-is-better and --lower-is-better do\n"; }
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
                {"best", one.which != direction::unknown ? json(text_of(one.which)) : json()},
                {"runs", json_list(one.runs, [&](const tag_values* values) {
                   if (values == nullptr) { return json(); }
                   json made{{"count", values->count}, {"last", point_json(values->last)}};
                   if (const auto best = best_of(*values, one.which)) { made["best"] = point_json(*best); }
                   return made;
                 })}};
  });
  document.add_list("hparams", settings, [](const compared_setting& one) {
    return json{{"name", one.name}, {"runs", json_list(one.runs, [](const auto& setting) { return setting ? json(*setting) : json(); })}};
  });
  document.end();
}

/// Throws `not_found_error` if a pattern matches no scalar of any run.
void check_tags(const std::vector<std::string>& patterns, const std::vector<run_values>& runs, const compare_options& options) {
  std::set<std::string> all;
  for (const auto& run : runs) { all.insert(run.scalars.begin(), run.scalars.end()); }
  for (const auto& pattern : patterns) {
    if (std::ranges::any_of(all, [&](const auto& tag) { return matches_tag(pattern, tag); })) { continue; }
    throw not_found_error(fmt::format("no run has scalars of {}; tags with scalars: {}", pattern,
                                      all.empty() ? "none" : fmt::format("{}", fmt::join(all, ", "))),
                          options.targets.front());
  }
}

}  // namespace

exit_code compare(const compare_options& options, console& to) {
  std::vector<run_values> runs;
  exit_code how = exit_code::good;
  for (const auto& target : options.targets) {
    runs.push_back(read_run(target, options, to));
    how = worse(how, runs.back().how);
  }
  for (const auto* patterns : {&options.tags, &options.higher_is_better, &options.lower_is_better}) {
    check_tags(*patterns, runs, options);
  }
  const auto tags = compared_tags(runs, options);
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
