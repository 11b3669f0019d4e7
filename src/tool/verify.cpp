// SPDX-License-Identifier: Apache-2.0
#include "tool/verify.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/checkpoint/leftovers.hpp"
#include "stepwell/checkpoint/state_file.hpp"
#include "stepwell/checkpoint/stored_checkpoint.hpp"
#include "stepwell/format/bundle.hpp"
#include "stepwell/io/atomic_file.hpp"
#include "stepwell/io/path.hpp"
#include "tool/json_writer.hpp"
#include "tool/target.hpp"
#include "tool/text.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <utility>
#include <vector>

namespace stepwell::tool {
namespace {

/// What became of one checkpoint.
struct verified {
  std::string prefix;
  std::size_t tensors = 0;
  std::uint64_t bytes = 0;
  std::uint64_t uncovered = 0;  ///< Bytes of the data files that no tensor, and so no checksum, covers.
  std::vector<std::string> damages;
  outcome how = outcome::good;
};

void note(verified& one, const error& failure) {
  one.damages.emplace_back(failure.what());
  one.how = worse(one.how, detail::is_damage(failure) ? outcome::damaged : outcome::unreadable);
}

std::uint64_t data_bytes(const console& to, const checkpoint_reader& reader) {
  std::uint64_t bytes = 0;
  for (std::int32_t shard = 0; shard < reader.shards(); ++shard) {
    const auto info = to.files->stat(format::data_name(reader.prefix(), shard, reader.shards()));
    if (info) { bytes += info->size; }
  }
  return bytes;
}

verified verify_one(const console& to, std::string prefix) {
  verified one{.prefix = std::move(prefix), .damages = {}};
  try {
    const checkpoint_reader reader(one.prefix, to.files);
    for (const auto& entry : reader.entries()) {
      ++one.tensors;
      one.bytes += entry.size_bytes;
      try {
        reader.verify(entry.name);
      } catch (const error& failure) { note(one, failure); }
    }
    const auto all = data_bytes(to, reader);
    one.uncovered = all > one.bytes ? all - one.bytes : 0;
  } catch (const error& failure) { note(one, failure); }
  return one;
}

/// Prefixes to look at, those of the state file first.
std::vector<verified> claims_of(const console& to, const std::string& directory) {
  std::vector<verified> claims;
  const auto add = [&](const std::string& prefix) {
    if (std::ranges::find(claims, prefix, &verified::prefix) == claims.end()) { claims.push_back({.prefix = prefix, .damages = {}}); }
  };
  if (const auto state = detail::read_state_file(*to.files, directory)) {
    for (const auto& prefix : state->prefixes) { add(prefix); }
  }
  for (const auto& prefix : indexes_in(to, directory)) { add(prefix); }
  return claims;
}

/// Data files without an index, and files that were being written aside.
std::vector<std::string> orphans_in(const console& to, const std::string& directory) {
  const auto names = value_or_throw(to.files->list(directory));
  std::vector<std::string> orphans;
  for (const auto& name : names) {
    const auto data = detail::parse_data_name(name);
    const bool has_index = data && std::ranges::binary_search(names, format::index_name(data->prefix));
    if (io::is_temporary_name(name) || (data && !has_index)) { orphans.push_back(name); }
    if (!has_index) { continue; }
    try {  // data of another number of shards than the index speaks of
      const auto index = detail::load_index(*to.files, io::join_path(directory, std::string(data->prefix)));
      if (index.header.num_shards != data->shards) { orphans.push_back(name); }
    } catch (const error&) {
      continue;  // damaged, and told as such
    }
  }
  return orphans;
}

void print_one(const verified& one, console& to) {
  const bool is_good = one.how == outcome::good;
  to.out << paint(to, is_good ? ink::green : ink::red, is_good ? "ok     " : "DAMAGED") << "  " << printable(one.prefix) << ": "
         << count_text(one.tensors, "tensor") << ", " << size_text(one.bytes);
  if (one.uncovered != 0) { to.out << ", and " << size_text(one.uncovered) << " between them that no checksum covers"; }
  to.out << '\n';
}

void write_one(json_writer& json, const verified& one) {
  json.begin_object();
  json.member("prefix", one.prefix);
  json.member("whole", one.how == outcome::good);
  json.member("tensors", one.tensors);
  json.member("bytes", one.bytes);
  json.member("bytes_without_checksum", one.uncovered);
  json.key("damages");
  write_array(json, one.damages);
  json.end_object();
}

void print_all(const std::vector<verified>& seen, const std::vector<std::string>& orphans, const verify_options& options, console& to) {
  if (options.json) {
    json_writer json(to.out);
    json.begin_object();
    json.key("checkpoints");
    json.begin_array();
    for (const auto& one : seen) { write_one(json, one); }
    json.end_array();
    json.key("orphans");
    write_array(json, orphans);
    json.end_object();
    to.out << '\n';
    return;
  }
  for (const auto& orphan : orphans) {
    to.out << paint(to, ink::yellow, "orphan ") << "  " << printable(orphan) << ": belongs to no checkpoint\n";
  }
}

}  // namespace

outcome verify(const verify_options& options, console& to) {
  const auto single = checkpoint_prefix(to, options.target);
  const bool is_in_directory = !single && is_directory(to, options.target);
  std::vector<verified> seen = is_in_directory ? claims_of(to, options.target)
                                               : std::vector{verified{.prefix = require_checkpoint(to, options.target), .damages = {}}};
  std::vector<std::string> orphans;
  outcome how = outcome::good;
  for (auto& one : seen) {
    one = verify_one(to, std::move(one.prefix));
    how = worse(how, one.how);
    if (!options.json) { print_one(one, to); }
    for (const auto& damage : one.damages) { to.err << "stepwell: " << printable(damage) << '\n'; }
  }
  if (is_in_directory) {
    orphans = orphans_in(to, options.target);
    if (seen.empty()) { throw not_found_error("there is no checkpoint in this directory", options.target); }
  }
  print_all(seen, orphans, options, to);
  return how;
}

}  // namespace stepwell::tool
