// SPDX-License-Identifier: Apache-2.0
#include "stepwell/creation/init_from_weights.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/io/file_system.hpp"
#include "stepwell/protocol/state_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

namespace stepwell {
namespace {

using name_by_name = std::map<std::string, std::string, std::less<>>;

bool is_session_name(std::string_view name) noexcept { return name == global_step_name || name.starts_with(reserved_prefix); }

std::string with_replaced(std::string_view name, char from, char to) {
  std::string made(name);
  std::ranges::replace(made, from, to);
  return made;
}

/// Returns the name of the variable of an array, by the rules. Empty if the rules do not select the array.
std::string name_of_variable(const weight_names& names, std::string_view array) {
  if (!array.starts_with(names.prefix_in_file)) { return {}; }
  array.remove_prefix(names.prefix_in_file.size());
  return names.prefix + (names.dots_to_slashes ? with_replaced(array, '.', '/') : std::string(array));
}

/// Returns the name that the array of a variable probably has, by the rules, for a message.
std::string probable_array(const weight_names& names, std::string_view variable) {
  variable.remove_prefix(names.prefix.size());
  return names.prefix_in_file + (names.dots_to_slashes ? with_replaced(variable, '/', '.') : std::string(variable));
}

/// Returns the names of the arrays that have the name of a variable, by this name.
name_by_name map_arrays(const weight_names& names, const checkpoint_reader& source) {
  name_by_name arrays;
  for (const auto& [theirs, ours] : names.pairs) {
    if (!source.contains(theirs)) { throw not_found_error(fmt::format("the file has no array \"{}\"", theirs), source.prefix()); }
    arrays.emplace(ours, theirs);
  }
  const auto is_paired = [&](std::string_view array) {
    return std::ranges::find(names.pairs, array, &checkpoint_name_map::value_type::first) != names.pairs.end();
  };
  for (const auto& entry : source.entries()) {
    auto ours = is_paired(entry.name) ? std::string() : name_of_variable(names, entry.name);
    if (ours.empty()) { continue; }
    const auto [known, is_new] = arrays.emplace(std::move(ours), entry.name);
    const bool is_pair = std::ranges::find(names.pairs, known->first, &checkpoint_name_map::value_type::second) != names.pairs.end();
    if (!is_new && !is_pair) {
      throw invalid_argument_error(
          fmt::format("the arrays \"{}\" and \"{}\" both have the name of the variable \"{}\"", known->second, entry.name, known->first),
          source.prefix());
    }
  }
  return arrays;
}

/// Returns the variables that the rules select, and the names of their arrays.
std::pair<variable_list, restore_options> select(const weight_names& names, const name_by_name& arrays, const variable_list& variables) {
  std::pair<variable_list, restore_options> chosen;
  for (const auto& variable : variables) {
    const std::string_view name = variable.name();
    const auto found = arrays.find(name);
    if (is_session_name(name) || (found == arrays.end() && !name.starts_with(names.prefix))) { continue; }
    chosen.first.push_back(variable);
    chosen.second.names.emplace(name, found != arrays.end() ? found->second : probable_array(names, name));
  }
  return chosen;
}

/// Returns advice if the names of the missing arrays have another prefix in the file, such as "module." or "_orig_mod.". Otherwise returns an
/// empty text.
std::string prefix_advice(const weight_names& names, const checkpoint_reader& source, const restore_options& how) {
  constexpr std::size_t most_looked_at = 20;
  std::size_t missing = 0;
  std::map<std::string_view, std::size_t> found;  // by prefix: the number of missing arrays that the file has with it
  for (const auto& [variable, array] : how.names) {
    if (source.contains(array) || !array.starts_with(names.prefix_in_file)) { continue; }
    const auto rest = std::string_view(array).substr(names.prefix_in_file.size());
    for (const auto& entry : source.entries()) {
      const std::string_view name = entry.name;
      if (name.size() > rest.size() && name.ends_with(rest)) { ++found[name.substr(0, name.size() - rest.size())]; }
    }
    if (++missing == most_looked_at) { break; }
  }
  const auto best = std::ranges::max_element(found, {}, [](const auto& one) { return one.second; });
  const auto is_best = [&](const auto& one) { return one.second == best->second; };
  if (best == found.end() || best->second < missing || std::ranges::count_if(found, is_best) > 1) { return {}; }
  return fmt::format("In the file, the names of the missing arrays begin with \"{0}\": set weight_names::prefix_in_file to \"{0}\".",
                     best->first);
}

void check_pairs(const weight_names& names, const variable_list& variables) {
  for (const auto& [theirs, ours] : names.pairs) {
    if (std::ranges::any_of(variables, [&](const variable_ref& variable) { return variable.name() == ours; })) { continue; }
    throw invalid_argument_error(fmt::format("the model has no variable named \"{}\", for the array \"{}\"", ours, theirs));
  }
}

std::string_view name_of(checkpoint_format format) noexcept {
  switch (format) {
    case checkpoint_format::tensorflow: return "a checkpoint of TensorFlow's format";
    case checkpoint_format::safetensors: return "a file of safetensors";
    case checkpoint_format::npy: return "an .npy file";
    case checkpoint_format::npz: return "an .npz archive";
    case checkpoint_format::state_dict: return "a file of torch.save";
  }
  return "unknown";
}

void log_result(const checkpoint_reader& source, const weight_names& names, const restore_options& how, const restore_report& report) {
  log_info(fmt::format("initialised from {}: {}", source.prefix(), fmt::join(report.restored, ", ")));
  if (!report.missing.empty()) {
    const auto advice = prefix_advice(names, source, how);
    log_warning(fmt::format("{} does not hold these variables, they keep their values: {}{}{}", source.prefix(),
                            fmt::join(report.missing, ", "), advice.empty() ? "" : ". ", advice));
  }
  std::vector<std::string_view> others;
  for (const auto& name : report.unused) {
    if (name.starts_with(names.prefix_in_file)) { others.emplace_back(name); }
  }
  if (!others.empty()) { log_warning(fmt::format("{} also holds arrays of no variable: {}", source.prefix(), fmt::join(others, ", "))); }
}

}  // namespace

init_from_weights::init_from_weights(const std::string& file, weight_names names, init_from_checkpoint_options options,
                                     std::optional<checkpoint_format> expected)
    : from_(value_or_throw(io::absolute_path(file))), names_(std::move(names)), options_(std::move(options)), expected_(expected) {
  for (const auto& [theirs, ours] : names_.pairs) {
    if (theirs.empty() || ours.empty()) { throw invalid_argument_error("init_from_weights: a name of a pair is empty"); }
    if (is_session_name(ours)) { throw invalid_argument_error(fmt::format("init_from_weights: \"{}\" is reserved for the session", ours)); }
    const auto first = std::ranges::find(names_.pairs, ours, &checkpoint_name_map::value_type::second);
    if (first->first != theirs) {
      throw invalid_argument_error(fmt::format("init_from_weights: the arrays \"{}\" and \"{}\" are both paired with the variable \"{}\"",
                                               first->first, theirs, ours));
    }
  }
}

restore_report init_from_weights::apply(const variable_list& variables) const {
  check_pairs(names_, variables);
  const checkpoint_reader source(from_, options_.file_system);
  if (expected_ && source.format() != *expected_) {
    throw invalid_argument_error(fmt::format("this is {}, not {}", name_of(source.format()), name_of(*expected_)), from_);
  }
  auto [ours, how] = select(names_, map_arrays(names_, source), variables);
  how.allow_missing = options_.allow_missing;
  for (const auto& [name, array] : how.names) {
    const auto* entry = source.find(array);
    if (entry != nullptr && !entry->unsupported.empty()) { source.verify(array); }  // throws the reason
  }
  try {
    auto report = restore(ours, source, how);
    log_result(source, names_, how, report);
    return report;
  } catch (const not_found_error& failure) {
    auto cause = failure.cause();
    if (const auto advice = prefix_advice(names_, source, how); !advice.empty()) { cause.message += "\n" + advice; }
    throw_status(std::move(cause));
  }
}

}  // namespace stepwell
