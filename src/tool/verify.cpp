// SPDX-License-Identifier: Apache-2.0
#include "tool/commands.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/checkpoint/detail/beside_writer.hpp"
#include "stepwell/checkpoint/detail/checkpoint_directory.hpp"
#include "stepwell/checkpoint/detail/stored_checkpoint.hpp"
#include "stepwell/format/checkpoint/detail/bundle.hpp"
#include "stepwell/io/atomic_file.hpp"
#include "stepwell/io/file_system.hpp"
#include "tool/json.hpp"
#include "tool/target.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

namespace stepwell::tool {
namespace {

/// The result for one checkpoint.
struct verified {
  std::string prefix;
  bool had_index = false;  ///< True if it had an index when the directory was listed.
  std::size_t tensors = 0;
  std::uint64_t bytes = 0;
  std::uint64_t uncovered = 0;         ///< Bytes of the data files outside of all tensors, which are not covered by a checksum.
  std::vector<std::string> damages;    ///< Damage, and other reasons why something could not be read.
  std::vector<std::string> unchecked;  ///< The reason for each tensor whose checksum is unknown, or for the whole checkpoint.
  exit_code how = exit_code::good;
};

void note(verified& one, const error& failure) {
  const bool is_unsupported = failure.kind() == errc::unimplemented;
  (is_unsupported ? one.unchecked : one.damages).emplace_back(failure.what());
  one.how = worse(one.how, is_unsupported               ? exit_code::unsupported
                           : detail::is_damage(failure) ? exit_code::damaged
                                                        : exit_code::unreadable);
}

std::uint64_t data_bytes(const console& to, const checkpoint_reader& reader) {
  std::uint64_t bytes = 0;
  for (const auto& file : reader.data_files()) {
    if (const auto info = to.files->stat(file)) { bytes += info->size; }
  }
  return bytes;
}

void verify_one(const console& to, verified& one) {
  try {
    const checkpoint_reader reader(one.prefix, to.files);
    for (const auto& entry : reader.entries()) {
      ++one.tensors;
      one.bytes += entry.size_bytes;
      try {
        reader.verify(entry.name);
      } catch (const error& failure) { note(one, failure); }
    }
    const bool has_checksums = reader.format() != checkpoint_format::safetensors && reader.format() != checkpoint_format::npy;
    if (!has_checksums) { one.uncovered = one.bytes; }
    if (reader.format() != checkpoint_format::tensorflow) { return; }
    const auto all = data_bytes(to, reader);
    one.uncovered = all > one.bytes ? all - one.bytes : 0;
  } catch (const error& failure) { note(one, failure); }
}

bool has_index(const console& to, const verified& one) { return value_or_throw(to.files->exists(format::index_name(one.prefix))); }

/// Adds the prefixes of the checkpoints that have data files in `directory`, which need not exist.
void add_with_data(const console& to, const std::string& directory, std::unordered_set<std::string>& prefixes) {
  const auto names = to.files->list(directory);
  if (!names) { return; }
  for (const auto& name : *names) {
    if (const auto data = detail::parse_data_name(name)) { prefixes.insert(io::join_path(directory, data->prefix)); }
  }
}

/// Removes the checkpoints that retention has deleted in the meantime, or was deleting when it was killed. It lists each directory and reads
/// the state file once, because a state file can list hundreds of thousands of checkpoints. @see beside_writer.hpp
void remove_retired(const console& to, const std::string& directory, std::vector<verified>& claims) {
  std::unordered_set<std::string> directories;
  for (const auto& one : claims) {
    if (!has_index(to, one)) { directories.insert(io::parent_directory(one.prefix)); }
  }
  if (directories.empty()) { return; }
  std::unordered_set<std::string> with_data;  // read before the state file: data is removed after the name in it
  for (const auto& one : directories) { add_with_data(to, one, with_data); }
  const auto state = detail::read_state_file(*to.files, directory);
  const auto newest = detail::find_newest_listed(*to.files, directory);
  std::unordered_set<std::string_view> listed;
  if (state) { listed.insert(state->prefixes.begin(), state->prefixes.end()); }
  std::erase_if(claims, [&](const verified& one) {
    if (has_index(to, one)) { return false; }
    const bool is_half_deleted =
        one.had_index || with_data.contains(io::join_path(io::parent_directory(one.prefix), io::base_name(one.prefix)));
    return !listed.contains(one.prefix) || (is_half_deleted && newest && newest->exists && newest->prefix != one.prefix);
  });
}

/// Returns the checkpoints that the state file lists or that have an index. Those of the state file come first.
std::vector<verified> claims_of(const console& to, const std::string& directory) {
  std::vector<verified> claims;
  std::unordered_set<std::string> known;
  const auto add = [&](const std::string& prefix) {
    if (!known.insert(prefix).second) { return; }
    claims.push_back({.prefix = prefix, .damages = {}, .unchecked = {}});
    claims.back().had_index = has_index(to, claims.back());
  };
  if (const auto state = detail::read_state_file(*to.files, directory)) {
    for (const auto& prefix : state->prefixes) { add(prefix); }
  }
  for (const auto& prefix : indexes_in(to, directory)) { add(prefix); }
  return claims;
}

/// Returns the data files without an index, and temporary files of interrupted writes. Returns none while a process writes in the directory.
std::vector<std::string> orphans_in(const console& to, const std::string& directory) {
  if (is_in_use(to, directory)) { return {}; }
  const auto names = value_or_throw(to.files->list(directory));
  std::vector<std::string> orphans;
  for (const auto& name : names) {
    const auto data = detail::parse_data_name(name);
    const bool is_indexed = data && std::ranges::binary_search(names, format::index_name(data->prefix));
    if (io::is_temporary_name(name) || (data && !is_indexed)) { orphans.push_back(name); }
    // data files of a different number of shards than in the index; a damaged index is reported elsewhere
    const auto shards = is_indexed ? detail::shards_in_index(*to.files, io::join_path(directory, data->prefix)) : std::nullopt;
    if (shards && *shards != data->shards) { orphans.push_back(name); }
  }
  return orphans;
}

/// The label of a result in text, its name in JSON, and its colour.
struct shown_result {
  std::string_view label;
  std::string_view name;
  ink colour;
};

shown_result shown_result_of(const verified& one) {
  switch (one.how) {
    case exit_code::good: return {"ok", "ok", ink::green};
    case exit_code::unsupported:
      return one.tensors == 0 ? shown_result{"UNSUPPORTED", "unsupported", ink::yellow}
                              : shown_result{"NOT CHECKED", "not checked", ink::yellow};
    case exit_code::damaged: return {"DAMAGED", "damaged", ink::red};
    default: return {"UNREADABLE", "unreadable", ink::red};
  }
}

/// Returns the first column of a line.
std::string labelled(const console& to, ink colour, std::string_view label) {
  return paint(to, colour, fmt::format("{:<11}", label)) + "  ";
}

void print_one(const verified& one, console& to) {
  const auto shown = shown_result_of(one);
  to.out << labelled(to, shown.colour, shown.label) << printable(to, one.prefix);
  if (one.tensors != 0 || one.how == exit_code::good) {
    to.out << ": " << count_text(one.tensors, "tensor") << ", " << size_text(one.bytes);
  }
  if (one.tensors != 0 && !one.unchecked.empty()) { to.out << ", " << one.unchecked.size() << " of them not checked"; }
  if (one.uncovered != 0 && one.uncovered == one.bytes) {
    to.out << ", not covered by a checksum";
  } else if (one.uncovered != 0) {
    to.out << ", and " << size_text(one.uncovered) << " between them not covered by a checksum";
  }
  to.out << '\n';
}

json json_of(const verified& one) {
  return {{"prefix", one.prefix},
          {"status", shown_result_of(one).name},
          {"whole", one.how == exit_code::good},
          {"tensors", one.tensors},
          {"bytes", one.bytes},
          {"bytes_without_checksum", one.uncovered},
          {"damages", one.damages},
          {"not_checked", one.unchecked}};
}

void print_all(const std::vector<verified>& seen, const std::vector<std::string>& orphans, const verify_options& options, console& to) {
  if (options.json) {
    json_document document(to.out);
    document.add_list("checkpoints", seen, json_of);
    document.add_list("orphans", orphans);
    return document.end();
  }
  for (const auto& orphan : orphans) {
    to.out << labelled(to, ink::yellow, "orphan") << printable(to, orphan) << ": belongs to no checkpoint\n";
  }
}

}  // namespace

exit_code verify(const verify_options& options, console& to) {
  const auto single = checkpoint_prefix(to, options.target);
  const bool is_in_directory = !single && is_directory(to, options.target);
  std::vector<verified> seen;
  std::vector<std::string> orphans;
  exit_code how = exit_code::good;
  const auto add = [&](verified& one) {
    how = worse(how, one.how);
    if (!options.json) { print_one(one, to); }
    for (const auto& reason : one.damages) { print_error(to, reason); }
    for (const auto& reason : one.unchecked) { print_error(to, reason); }
    seen.push_back(std::move(one));
  };
  if (is_in_directory) {
    detail::read_beside_writer(options.target, [&]() -> std::optional<bool> {
      auto claims = claims_of(to, options.target);
      const bool is_empty = claims.empty();
      remove_retired(to, options.target, claims);
      for (auto& one : claims) {
        verify_one(to, one);
        std::vector<verified> judged{std::move(one)};
        if (judged.front().how != exit_code::good && judged.front().had_index) { remove_retired(to, options.target, judged); }
        for (auto& left : judged) { add(left); }  // the data files of a retired one are orphans
      }
      return seen.empty() && !is_empty ? std::nullopt : std::optional(true);
    });
    orphans = orphans_in(to, options.target);
  } else {
    verified one{.prefix = require_checkpoint(to, options.target), .damages = {}, .unchecked = {}};
    one.had_index = has_index(to, one);
    verify_one(to, one);
    if (one.how != exit_code::good && one.had_index && !has_index(to, one)) {
      throw not_found_error("this checkpoint was deleted while it was read", one.prefix);
    }
    add(one);
  }
  if (!seen.empty() || !orphans.empty()) { print_all(seen, orphans, options, to); }
  if (seen.empty()) { throw not_found_error("there is no checkpoint in this directory", options.target); }
  return how;
}

}  // namespace stepwell::tool
