// SPDX-License-Identifier: Apache-2.0
#include "stepwell/group/detail/group_store.hpp"

#include "stepwell/base/detail/host_name.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/group/detail/formation_wait.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>
#include <algorithm>
#include <charconv>
#include <map>
#include <random>
#include <system_error>
#include <utility>

// The keys. The chief names each formation after its own identity and a number. The name is the first line of the values of a formation, so that
// values of another chief, or of an earlier formation, are never taken for values of this one.
//   round         the name of the newest formation
//   ended/RANK    "CAUSE" if this rank has ended the training; "0 NAME" if it takes part again, in that formation
// Values of a formation:
//   join/RANK     "GENERATION IDENTITY": a process that takes part, and its last generation
//   formed        "GENERATION", and a line "RANK IDENTITY" for each member

namespace stepwell {

namespace {

constexpr const char* round_key = "round";
constexpr const char* formed_key = "formed";
std::string join_key(int rank) { return fmt::format("join/{}", rank); }
std::string ended_key(int rank) { return fmt::format("ended/{}", rank); }

[[noreturn]] void throw_foreign() {
  throw data_loss_error(
      "the store of the group has a value that no process of the group has written; does another program use the "
      "address of rank 0?");
}

struct numbered_text {
  std::int64_t number = 0;
  std::string text;
};
/// Returns the number at the beginning of `line`, and the text after the space behind it.
/// @errors `data_loss_error` if there is no number.
numbered_text parsed(std::string_view line) {
  numbered_text made;
  const auto [end, failure] = std::from_chars(line.data(), line.data() + line.size(), made.number);
  if (failure != std::errc() || made.number < 0) { throw_foreign(); }
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  if (line.starts_with(' ')) { line.remove_prefix(1); }
  made.text = line;
  return made;
}

std::string written(const agreed_formation& made) {
  auto text = fmt::format("{}", made.generation);
  for (const auto& member : made.members) { text += fmt::format("\n{} {}", member.rank, member.identity); }
  return text;
}

agreed_formation read_formation(const std::string& name, std::string_view text) {
  agreed_formation made{.generation = 0, .name = name, .members = {}, .place = -1};
  bool is_first = true;
  while (!text.empty() || is_first) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    auto read = parsed(line);
    if (std::exchange(is_first, false)) {
      made.generation = read.number;
    } else {
      made.members.push_back({static_cast<int>(read.number), std::move(read.text)});
    }
  }
  return made;
}

/// One call of `agree_on_formation`.
class forming_process {
public:
  forming_process(group_store& store, const store_identity& self, const formation& how) : store_(store), self_(self), how_(how) {}

  /// Gathers the other processes: all of them or, after a loss and a patience, as many as are demanded. Processes that have ended the training are
  /// not awaited. The rest of the group then finishes the training, with any number of processes.
  /// @errors `failed_precondition_error` if another process of rank 0 begins a formation.
  agreed_formation gather() {
    const auto name = begin_round();
    formation_values values(store_, name);
    const auto since = how_.time.now();
    std::map<int, numbered_text> joined{{0, {how_.last_generation, self_.identity}}};
    for (;;) {
      for (int rank = 1; rank < self_.size; ++rank) {
        if (auto value = values.get(join_key(rank))) { joined[rank] = parsed(*value); }  // read again: it may have been replaced
      }
      const auto count = static_cast<int>(joined.size());
      const auto ended = ended_processes(joined);
      const bool is_after_loss = std::ranges::any_of(joined, [](const auto& one) { return one.second.number > 0; });
      const bool is_enough = count >= how_.min_size || !ended.empty();
      const bool may_shrink = is_after_loss && is_enough && how_.time.now() - since >= how_.patience;
      const bool is_complete = count + static_cast<int>(ended.size()) == self_.size;
      check();
      if (is_complete || may_shrink) {
        auto agreed = formation_of(name, joined);
        if (!values.set(formed_key, written(agreed))) { throw_replaced(newest_round().text); }
        if (!ended.empty()) { agreed.ended = ended.front(); }
        return agreed;
      }
      wait_.pause([&] { return "rank " + missing_ranks(joined); });
      if (!values.is_newest()) { throw_replaced(newest_round().text); }
    }
  }

  /// Takes part in the newest formation of the chief.
  agreed_formation join() {
    std::string joined;
    for (;;) {
      bool is_chief_there = true;
      try {
        if (auto agreed = take_part(joined)) { return *std::move(agreed); }
      } catch (const unavailable_error&) {  // rank 0 has not started yet, or is being replaced, and its next store begins empty
        is_chief_there = false;
      }
      check();  // rank 0 may have ended
      wait_.pause([&] { return std::string(is_chief_there ? "rank 0 to form the group" : "rank 0, which cannot be reached"); });
    }
  }

private:
  void check() const {
    if (how_.check) { how_.check(); }
  }

  /// Begins a formation. Two processes of rank 0 may use one store: one of them has been replaced, and has not noticed it. The one that
  /// begins its first formation last is the newer one. An old process whose directory belongs to the newer one ends in `check`, before it
  /// begins a formation.
  std::string begin_round() {
    const bool has_formed = how_.last_generation > 0;
    for (auto last = store_.get(round_key);;) {
      const auto newest = last ? parsed(*last) : numbered_text();
      if (has_formed && last && newest.text != self_.identity) { throw_replaced(newest.text); }
      check();
      auto name = fmt::format("{} {}", newest.number + 1, self_.identity);
      auto now = store_.compare_set(round_key, last, name);
      if (now == name) { return name; }
      last = std::move(now);  // of another process of rank 0
    }
  }

  /// Returns the number of the newest formation, and the identity of the process of rank 0 that has begun it.
  [[nodiscard]] numbered_text newest_round() const { return parsed(store_.get(round_key).value_or(std::string())); }

  [[noreturn]] void throw_replaced(const std::string& now) const {
    throw failed_precondition_error(fmt::format("rank {} of the group is now the process {}; this process ({}) was replaced and must end",
                                                self_.rank, now, self_.identity));
  }

  static agreed_formation formation_of(const std::string& name, const std::map<int, numbered_text>& joined) {
    agreed_formation made{.generation = 1, .name = name, .members = {}, .place = 0};
    for (const auto& [rank, process] : joined) {
      made.generation = std::max(made.generation, process.number + 1);
      made.members.push_back({rank, process.text});
    }
    return made;
  }

  /// Returns the processes that have announced their end to this process of rank 0, and that have not joined again.
  [[nodiscard]] std::vector<ended_process> ended_processes(const std::map<int, numbered_text>& joined) const {
    std::vector<ended_process> ended;
    for (int rank = 1; rank < self_.size && how_.is_recovery; ++rank) {
      if (joined.contains(rank)) { continue; }
      const auto end = store_.get(ended_key(rank));
      if (const auto cause = end ? parsed(*end).number : 0; cause > 0) { ended.push_back({rank, cause}); }
    }
    return ended;
  }

  [[nodiscard]] std::string missing_ranks(const std::map<int, numbered_text>& joined) const {
    std::vector<int> missing;
    for (int rank = 0; rank < self_.size; ++rank) {
      if (!joined.contains(rank)) { missing.push_back(rank); }
    }
    return fmt::format("{}", fmt::join(missing, ", "));
  }

  /// Joins the newest round unless it is `joined`. Returns its formation if this process is a member of it.
  std::optional<agreed_formation> take_part(std::string& joined) {
    const auto name = store_.get(round_key);
    if (!name) { return std::nullopt; }
    formation_values values(store_, *name);
    if (const auto formed = values.get(formed_key)) { return place_in(read_formation(*name, *formed)); }
    if (joined == *name) { return std::nullopt; }
    withdraw_end(*name);
    if (values.set(join_key(self_.rank), fmt::format("{} {}", how_.last_generation, self_.identity))) { joined = *name; }
    return std::nullopt;
  }

  /// Notes that this rank takes part in the formation `name`. An earlier announcement of its end that arrives later has no effect.
  void withdraw_end(const std::string& name) {
    const auto key = ended_key(self_.rank);
    const auto made = "0 " + name;
    for (auto current = store_.get(key); current != made;) { current = store_.compare_set(key, current, made); }
  }

  /// @errors `failed_precondition_error` if another process has this rank now.
  [[nodiscard]] std::optional<agreed_formation> place_in(agreed_formation formed) const {
    const auto mine = std::ranges::find(formed.members, self_.rank, &group_member::rank);
    if (mine == formed.members.end()) { return std::nullopt; }
    if (mine->identity != self_.identity) {
      if (how_.last_generation == 0) { return std::nullopt; }  // this process replaces the member, which is lost
      throw_replaced(mine->identity);
    }
    if (formed.generation <= how_.last_generation) { return std::nullopt; }  // the generation that was lost
    formed.place = static_cast<int>(mine - formed.members.begin());
    return formed;
  }

  group_store& store_;
  const store_identity& self_;
  const formation& how_;
  detail::formation_wait wait_{how_};
};

}  // namespace

bool formation_values::set(const std::string& key, std::string_view value) {
  const auto made = fmt::format("{}\n{}", name_, value);
  auto current = store_.get(key);
  // If this process is stopped between the next two lines, a newer formation may set the key. The value is then not `current` any more.
  while (is_newest()) {
    auto now = store_.compare_set(key, current, made);
    if (now == made) { return true; }
    current = std::move(now);
  }
  return false;
}

std::optional<std::string> formation_values::get(const std::string& key) const {
  const auto value = store_.get(key);
  if (!value) { return std::nullopt; }
  const auto end = value->find('\n');
  if (end == std::string::npos) { throw_foreign(); }
  if (std::string_view(*value).substr(0, end) != name_) { return std::nullopt; }
  return value->substr(end + 1);
}

bool formation_values::is_newest() const { return store_.get(round_key) == name_; }

agreed_formation agree_on_formation(group_store& store, const store_identity& self, const formation& how) {
  forming_process forming(store, self, how);
  return self.rank == 0 ? forming.gather() : forming.join();
}

void announce_end(group_store& store, int rank, std::int64_t cause) {
  const auto current = store.get(ended_key(rank));
  store.compare_set(ended_key(rank), current, fmt::format("{}", cause));  // no effect if this rank takes part again by then
}

std::string make_identity() {
  std::random_device random;
  return fmt::format("{}:{}:{:08x}", detail::host_name(), ::getpid(), random());
}

}  // namespace stepwell
