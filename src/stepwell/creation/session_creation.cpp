// SPDX-License-Identifier: Apache-2.0
#include "stepwell/creation/session_creation.hpp"

#include "stepwell/base/detail/printable.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/checkpoint/find_checkpoints.hpp"
#include "stepwell/checkpoint/restore.hpp"
#include "stepwell/protocol/hook.hpp"
#include "stepwell/protocol/state_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cstring>
#include <iterator>
#include <vector>

namespace stepwell {
namespace {

constexpr std::string_view suffix = "/position";
constexpr std::string_view fingerprint_suffix = "/fingerprint";

const std::string& named(const std::string& name) {
  static const std::string otherwise = "default";
  return name.empty() ? otherwise : name;
}

/// Returns the entry `name` if it is one number of 64 bits.
std::optional<std::int64_t> number_in(const checkpoint_reader& source, const checkpoint_entry& entry) {
  if (entry.dtype != dtype::int64 || !entry.shape.empty()) { return std::nullopt; }
  return source.read(entry.name).as<std::int64_t>().front();
}

/// Returns true if the model or this library, and not the data, is the reason why a checkpoint cannot be restored.
bool is_mismatch(const error& failure) noexcept {
  return failure.kind() == errc::invalid_argument || failure.kind() == errc::not_found || failure.kind() == errc::unimplemented;
}

void check_version(const checkpoint_reader& source) {
  const auto* entry = source.find(version_name);
  if (entry == nullptr) { return; }  // written by TensorFlow, or without a session
  const auto version = number_in(source, *entry).value_or(0);
  if (version < 1 || version > state_version) {
    throw unimplemented_error(fmt::format("the tensors below {} have layout version {}; this library reads versions up to {}: "
                                          "restore them with the library version that wrote them, or a later one",
                                          reserved_prefix, version, state_version),
                              source.prefix());
  }
}

/// Returns the entry `name` if it is one string; otherwise an empty one.
std::string text_in(const checkpoint_reader& source, const std::string& name) {
  const auto* entry = source.find(name);
  if (entry == nullptr || entry->dtype != dtype::string || !entry->shape.empty()) { return {}; }
  const auto read = source.read(name);
  return std::string(read.strings().front());
}

struct saved_position {
  std::int64_t position;
  std::string fingerprint;
};

std::map<std::string, saved_position> positions_in(const checkpoint_reader& source) {
  std::map<std::string, saved_position> found;
  for (const auto& entry : source.entries()) {
    const auto name = detail::source_positions::source_name(entry.name);
    if (!name) { continue; }
    if (const auto position = number_in(source, entry)) {
      found[*name] = {*position, text_in(source, detail::source_positions::fingerprint_variable(*name))};
    }
  }
  return found;
}

/// Returns the stop with these texts, which a checkpoint contains.
stop_reason stop_with(std::string_view cause, std::string text) {
  for (const auto known : detail::all_stop_causes) {
    if (to_string(known) == cause) { return {known, std::move(text)}; }
  }
  return {stop_cause::requested, std::move(text)};  // a later version knows more causes
}

std::optional<stop_reason> stop_in(const checkpoint_reader& source) {
  if (source.find(stop_cause_name) == nullptr) { return std::nullopt; }
  return stop_with(text_in(source, std::string(stop_cause_name)), text_in(source, std::string(stop_text_name)));
}

std::optional<stop_reason> stop_in(const snapshot& source) {
  const auto text_of = [&](std::string_view name) {
    const auto* entry = source.find(name);
    return entry != nullptr && entry->strings.size() == 1 ? entry->strings.front() : std::string();
  };
  if (source.find(stop_cause_name) == nullptr) { return std::nullopt; }
  return stop_with(text_of(stop_cause_name), text_of(stop_text_name));
}

/// Returns the name of the hook to which a variable belongs. Empty if it belongs to the model.
std::string_view hook_of(const variable_ref& variable) noexcept {
  std::string_view name = variable.name();
  if (!name.starts_with(hook_state_prefix)) { return {}; }
  name.remove_prefix(hook_state_prefix.size());
  return name.substr(0, name.find('/'));
}

/// Returns a text that names `variables`, which are a part of `all`. If they include all variables of a hook, it names only the hook.
std::string described(const variable_list& variables, const variable_list& all) {
  std::map<std::string_view, std::ptrdiff_t> others;  // by hook, the number of its variables that are not in `variables`
  for (const auto& variable : all) { ++others[hook_of(variable)]; }
  for (const auto& variable : variables) { --others[hook_of(variable)]; }
  std::vector<std::string> parts;
  std::set<std::string_view> complete;
  for (const auto& variable : variables) {
    const auto hook = hook_of(variable);
    if (hook.empty() || others[hook] > 0) {
      parts.push_back(fmt::format("\"{}\"", variable.name()));
    } else if (complete.insert(hook).second) {
      parts.push_back(fmt::format("the state of the hook \"{}\"", hook));
    }
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

void log_unclaimed(const checkpoint_reader& source, std::vector<std::string> unused) {
  const auto is_ours = [](const std::string& name) {
    return detail::source_positions::source_name(name) || name == version_name || name == best_value_name || name == stop_cause_name ||
           name == stop_text_name || (name.starts_with(source_state_prefix) && name.ends_with(fingerprint_suffix));
  };
  std::erase_if(unused, is_ours);
  if (unused.empty()) { return; }
  log_info(fmt::format("{} also holds tensors that this session does not use: {}", source.prefix(), fmt::join(unused, ", ")));
}

}  // namespace

namespace detail {

// ---- source_positions

const source_positions::entry* source_positions::find(const std::string& name) const noexcept {
  const auto known = entries_.find(named(name));
  return known == entries_.end() ? nullptr : &known->second;
}

void source_positions::attach(const std::string& name, std::function<std::uint64_t()> position, std::int64_t step) {
  auto& known = entries_[named(name)];
  if (known.live) {
    throw invalid_argument_error("two sources named \"" + named(name) + "\" are in use at once; give them different names");
  }
  if (!known.first) { known.first = origin{static_cast<std::int64_t>(position()), step}; }
  known.live = std::move(position);
}

void source_positions::detach(const std::string& name) noexcept {
  const auto known = entries_.find(named(name));
  if (known == entries_.end() || !known->second.live) { return; }
  try {
    if (!known->second.is_due) { known->second.position = static_cast<std::int64_t>(known->second.live()); }
  } catch (...) {
    const log_scope session(log_name_);
    log_error("could not read the position of the source \"" + named(name) + "\" at the end of its loop; the previous position is kept");
  }
  known->second.live = nullptr;
}

void source_positions::leave_sources() noexcept {
  for (auto& [name, known] : entries_) { known.live = nullptr; }
}

std::optional<std::uint64_t> source_positions::restored(const std::string& name) const {
  const auto* known = find(name);
  if (known == nullptr || !known->is_due) { return std::nullopt; }
  return static_cast<std::uint64_t>(known->position);
}

void source_positions::mark_positioned(const std::string& name) noexcept {
  const auto known = entries_.find(named(name));
  if (known == entries_.end()) { return; }
  known->second.is_due = false;
  known->second.restored_fingerprint.clear();
}

variable_list source_positions::variables() {
  variable_list all;
  for (auto& [name, known] : entries_) {
    if (known.live && !known.is_due) { known.position = static_cast<std::int64_t>(known.live()); }
    all.emplace_back(variable_name(name), known.position);
    if (!known.fingerprint.empty()) { all.emplace_back(fingerprint_variable(name), known.fingerprint); }
  }
  return all;
}

void source_positions::restore(const std::string& name, std::int64_t position, std::string fingerprint) {
  auto& known = entries_[named(name)];
  known.position = position;
  known.is_due = true;
  if (!known.live) { known.fingerprint = fingerprint; }
  known.restored_fingerprint = std::move(fingerprint);
}

void source_positions::set_fingerprint(const std::string& name, std::string fingerprint) {
  entries_[named(name)].fingerprint = std::move(fingerprint);
}

std::string source_positions::restored_fingerprint(const std::string& name) const {
  const auto* known = find(name);
  return known != nullptr && known->is_due ? known->restored_fingerprint : std::string();
}

std::string source_positions::waiting_with(const std::string& fingerprint) const {
  for (const auto& [name, known] : entries_) {
    if (known.is_due && !known.live && known.restored_fingerprint == fingerprint) { return name; }
  }
  return {};
}

void source_positions::go_back(std::int64_t step) noexcept {
  ++rewinds_;
  for (auto& [name, known] : entries_) {
    if (known.is_due || !known.first || known.first->step < step) { continue; }
    known.position = known.first->position;
    known.is_due = true;
  }
}

void source_positions::skip(const std::string& name, std::uint64_t position) { entries_[named(name)].skipped.insert(position); }

bool source_positions::skips(const std::string& name) const {
  const auto* known = find(name);
  return known != nullptr && !known->skipped.empty();
}

bool source_positions::is_skipped(const std::string& name, std::uint64_t position) const {
  const auto* known = find(name);
  return known != nullptr && known->skipped.contains(position);
}

std::string source_positions::variable_name(const std::string& name) {
  return std::string(source_state_prefix).append(named(name)).append(suffix);
}

std::string source_positions::fingerprint_variable(const std::string& name) {
  return std::string(source_state_prefix).append(named(name)).append(fingerprint_suffix);
}

std::optional<std::string> source_positions::source_name(std::string_view variable) {
  if (!variable.starts_with(source_state_prefix) || !variable.ends_with(suffix)) { return std::nullopt; }
  variable.remove_prefix(source_state_prefix.size());
  if (variable.size() <= suffix.size()) { return std::nullopt; }
  variable.remove_suffix(suffix.size());
  return std::string(variable);
}

// ---- initial_values

void initial_values::keep(const variable_list& variables) {
  for (const auto& variable : variables) {
    const auto [place, is_new] = values_.try_emplace(variable.name());
    if (!is_new) { continue; }
    auto& value = place->second = tensor(variable.dtype(), variable.shape());
    if (variable.holds_strings()) {
      variable.copy_to(value.strings());
      for (const auto& one : value.strings()) { bytes_ += one.size(); }
    } else {
      variable.copy_to(value.bytes());
      bytes_ += value.bytes().size();
    }
  }
}

variable_list initial_values::put_back(const variable_list& variables) const {
  variable_list unknown;
  for (const auto& variable : variables) {
    const auto kept = values_.find(variable.name());
    if (kept == values_.end() || kept->second.dtype() != variable.dtype() || kept->second.shape() != variable.shape()) {
      unknown.push_back(variable);
    } else if (variable.holds_strings()) {
      variable.copy_from(kept->second.strings());
    } else {
      variable.copy_from(kept->second.bytes());
    }
  }
  return unknown;
}

// ---- checkpoint_search

void checkpoint_search::look_ahead(const std::function<bool(const std::exception_ptr&)>& may_pass) {
  try {
    found_ = find_ ? find_() : std::nullopt;
  } catch (...) {
    failure_ = std::current_exception();
    if (!may_pass(failure_)) { throw; }
  }
  is_ahead_ = true;
}

std::optional<checkpoint_reader> checkpoint_search::look() {
  if (!std::exchange(is_ahead_, false)) { return find_ ? find_() : std::nullopt; }
  if (auto failure = std::exchange(failure_, nullptr)) { std::rethrow_exception(failure); }
  return std::exchange(found_, std::nullopt);
}

}  // namespace detail

// ---- session_creation

void session_creation::restore(const variable_list& own, const checkpoint_reader& found) {
  const auto& search = found.search();
  if (!search) { return restore_one(own, found); }
  std::optional<checkpoint_reader> older;
  for (;;) {
    const auto& source = older ? *older : found;
    try {
      restore_one(own, source);
    } catch (const error& failure) {
      if (is_mismatch(failure) && !older) { throw; }
      if (is_mismatch(failure)) {
        auto cause = failure.cause();
        cause.message += "; a newer checkpoint is damaged, and the variables may hold a part of it";
        throw_status(std::move(cause));
      }
      older = search->next_after(source, failure);
      continue;
    }
    return search->accept(source);
  }
}

void session_creation::restore_one(const variable_list& own, const checkpoint_reader& found) {
  check_version(found);
  const auto positions = positions_in(found);  // read before anything is written
  auto stop = stop_in(found);
  const auto wanted = with_optional_hooks(own);
  const auto report = stepwell::restore(wanted, found, {.verify_first = !found.search()});
  initialize_missing(wanted, report.missing, found.prefix());
  for (const auto& [name, saved] : positions) { positions_.restore(name, saved.position, saved.fingerprint); }
  log_unclaimed(found, report.unused);
  requests_.facts().restored_from = found.prefix();
  restore_stop(std::move(stop), found.prefix());
}

void session_creation::restore_stop(std::optional<stop_reason> stop, const std::string& place) {
  requests_.facts().restored_stop = stop.has_value();
  if (!stop) { return; }
  const auto what = fmt::format("{} contains a stop, which was requested after its last step: {}", place, detail::printable(stop->text));
  if (requests_.facts().resume_after_stop) { return log_info(what + "; the training goes on, because resume_after_stop is set"); }
  log_info(what + "; no further step is done. To train on, set the option resume_after_stop");
  requests_.signals()->request_stop_by_hook(std::move(*stop));
}

void session_creation::initialize_missing(const variable_list& wanted, const std::vector<std::string>& missing, const std::string& place) {
  if (missing.empty()) { return; }
  const std::set<std::string_view> names(missing.begin(), missing.end());
  variable_list lacking;
  std::ranges::copy_if(wanted, std::back_inserter(lacking), [&](const variable_ref& one) { return names.contains(one.name()); });
  variable_list unknown;
  if (initial_ != nullptr) {
    unknown = initial_->put_back(lacking);  // at the first creation: the values before an attempt that failed
    if (is_first_) { initial_->keep(std::exchange(unknown, {})); }
  }
  if (unknown.empty()) {
    return log_warning(fmt::format("{} lacks {}; they begin with their initial values", place, described(lacking, wanted)));
  }
  log_warning(fmt::format("{} lacks {}; {} keep the values of the failed run, because their initial values are not known", place,
                          described(lacking, wanted), described(unknown, wanted)));
}

void session_creation::begin_hooks_anew() {
  if (initial_ == nullptr) { return; }
  const auto hooks = hooks_();
  static_cast<void>(initial_->put_back(hooks));
  if (is_first_) { initial_->keep(hooks); }
}

variable_list session_creation::with_hooks(variable_list own) const {
  for (auto& variable : hooks_()) { own.push_back(std::move(variable)); }
  return own;
}

variable_list session_creation::with_optional_hooks(variable_list own) const {
  for (const auto& variable : hooks_()) { own.push_back(variable.optional()); }
  return own;
}

void session_creation::keep_initial_state(const variable_list& own, std::int64_t step) {
  const auto all = with_hooks(own);
  copy_.keep(snapshot::capture(snapshot_pool(0, 1).acquire(), all, step), true);
}

void session_creation::restore_snapshot(const variable_list& own, const snapshot& taken, const std::string& place) {
  const auto wanted = with_optional_hooks(own);
  const auto report = stepwell::restore(wanted, taken);
  initialize_missing(wanted, report.missing, place);
  for (const auto& entry : taken.entries()) {
    const auto name = detail::source_positions::source_name(entry.name);
    std::int64_t position = 0;
    if (!name || entry.bytes.size() != sizeof(position)) { continue; }
    std::memcpy(&position, entry.bytes.data(), sizeof(position));
    const auto* fingerprint = taken.find(detail::source_positions::fingerprint_variable(*name));
    positions_.restore(*name, position, fingerprint && fingerprint->strings.size() == 1 ? fingerprint->strings.front() : std::string());
  }
  restore_stop(stop_in(taken), place);
}

bool session_creation::restore_unsaved(const variable_list& own) {
  return copy_.restore(false, [&](const snapshot& kept) {
    restore_snapshot(own, kept, "the state in memory");
    log_info(fmt::format("no checkpoint found; the state of step {} is restored from memory", kept.step()));
  });
}

void session_creation::restore_received(const variable_list& own, const snapshot& received) {
  restore_snapshot(own, received, "the state of rank 0 of the group");
  log_info(fmt::format("the state of step {} was received from rank 0 of the group", received.step()));
}

bool session_creation::put_back_initial_state(const variable_list& own) {
  return copy_.restore(true, [&](const snapshot& kept) {
    stepwell::restore(with_hooks(own), kept);
    log_info("no checkpoint found; the initial state of the session is restored");
  });
}

}  // namespace stepwell
