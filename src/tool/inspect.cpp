// SPDX-License-Identifier: Apache-2.0
#include "tool/inspect.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "tool/json_writer.hpp"
#include "tool/target.hpp"
#include "tool/tensor_stats.hpp"
#include "tool/text.hpp"
#include "tool/text_table.hpp"

#include <fmt/format.h>
#include <utility>

namespace stepwell::tool {
namespace {

std::uint64_t total_bytes(const checkpoint_reader& reader) {
  std::uint64_t total = 0;
  for (const auto& entry : reader.entries()) { total += entry.size_bytes; }
  return total;
}

std::string checksum_text(const checkpoint_entry& entry) {
  return entry.is_partitioned ? "in slices" : fmt::format("{:08x}", entry.crc32c);
}

/// Computes the statistics of tensors one by one. A tensor that cannot be read is reported, and does not end the command.
class stats_taker {
public:
  stats_taker(const checkpoint_reader& reader, console& to) : reader_(reader), to_(to) {}

  [[nodiscard]] std::optional<tensor_stats> of(const checkpoint_entry& entry) {
    try {
      return stats_of(reader_, entry);
    } catch (const error& failure) {
      to_.err << "stepwell: " << printable(failure.what()) << '\n';
      seen_ = worse(seen_, outcome_of(failure.kind()));
      return std::nullopt;
    }
  }
  [[nodiscard]] outcome seen() const noexcept { return seen_; }

private:
  const checkpoint_reader& reader_;
  console& to_;
  outcome seen_ = outcome::good;
};

void add_stats(std::vector<cell>& row, const std::optional<tensor_stats>& stats) {
  const bool has_finite = stats && stats->finite() != 0;
  const auto number = [&](double value) { return has_finite ? number_text(value) : std::string("-"); };
  const auto bad = [&](std::uint64_t count) { return cell(stats ? std::to_string(count) : "-", count != 0 ? ink::red : ink::plain); };
  row.emplace_back(stats ? std::to_string(stats->count) : "-");
  const auto known = stats.value_or(tensor_stats{});
  for (const double value : {known.min, known.max, known.mean, known.stddev}) { row.emplace_back(number(value)); }
  row.push_back(bad(stats ? stats->nans : 0));
  row.push_back(bad(stats ? stats->infinities : 0));
}

outcome inspect_as_text(const checkpoint_reader& reader, bool with_stats, console& to) {
  const auto step = reader.step();
  to.out << paint(to, ink::bold, printable(reader.prefix())) << ": " << count_text(reader.entries().size(), "tensor") << ", "
         << size_text(total_bytes(reader)) << " in " << count_text(static_cast<std::uint64_t>(reader.shards()), "data file")
         << (step ? fmt::format(", step {}", *step) : "") << "\n\n";
  std::vector<std::string> headings{"NAME", "DTYPE", "SHAPE", ">SIZE", "CRC32C"};
  if (with_stats) { headings.insert(headings.end(), {">COUNT", ">MIN", ">MAX", ">MEAN", ">STDDEV", ">NAN", ">INF"}); }
  text_table table(std::move(headings));
  stats_taker taker(reader, to);
  for (const auto& entry : reader.entries()) {
    std::vector<cell> row{{printable(entry.name), ink::cyan},
                          dtype_text(entry.dtype),
                          to_string(entry.shape),
                          size_text(entry.size_bytes),
                          {checksum_text(entry), ink::dim}};
    if (with_stats) { add_stats(row, taker.of(entry)); }
    table.add(std::move(row));
  }
  table.print(to);
  return taker.seen();
}

void write_stats(json_writer& json, const tensor_stats& stats) {
  json.member("count", stats.count);
  if (stats.finite() != 0) {
    json.member("min", stats.min);
    json.member("max", stats.max);
    json.member("mean", stats.mean);
    json.member("stddev", stats.stddev);
  }
  json.member("nan", stats.nans);
  json.member("inf", stats.infinities);
}

outcome inspect_as_json(const checkpoint_reader& reader, bool with_stats, console& to) {
  json_writer json(to.out);
  stats_taker taker(reader, to);
  json.begin_object();
  json.member("prefix", reader.prefix());
  if (const auto step = reader.step()) { json.member("step", *step); }
  json.member("shards", reader.shards());
  json.member("bytes", total_bytes(reader));
  json.key("tensors");
  json.begin_array();
  for (const auto& entry : reader.entries()) {
    json.begin_object();
    json.member("name", entry.name);
    json.member("dtype", dtype_text(entry.dtype));
    json.key("shape");
    write_array(json, entry.shape);
    json.member("bytes", entry.size_bytes);
    json.member("partitioned", entry.is_partitioned);
    if (!entry.is_partitioned) { json.member("crc32c", checksum_text(entry)); }
    if (with_stats) {
      if (const auto stats = taker.of(entry)) { write_stats(json, *stats); }
    }
    json.end_object();
  }
  json.end_array();
  json.end_object();
  to.out << '\n';
  return taker.seen();
}

}  // namespace

outcome inspect(const inspect_options& options, console& to) {
  const auto prefix = require_checkpoint(to, options.target);
  if (!options.diff.empty()) { return diff_checkpoints(options, prefix, require_checkpoint(to, options.diff), to); }
  if (!options.print.empty()) { return print_tensor(options, prefix, to); }
  const checkpoint_reader reader(prefix, to.files);
  return options.json ? inspect_as_json(reader, options.stats, to) : inspect_as_text(reader, options.stats, to);
}

}  // namespace stepwell::tool
