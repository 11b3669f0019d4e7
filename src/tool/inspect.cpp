// SPDX-License-Identifier: Apache-2.0
//
// `stepwell inspect`: shows the tensors of a checkpoint. Prints values and compares checkpoints in other files.
#include "tool/commands.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/protocol/state_names.hpp"
#include "tool/elements.hpp"
#include "tool/json.hpp"
#include "tool/target.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

namespace stepwell::tool {
namespace {

std::uint64_t total_bytes(const checkpoint_reader& reader) {
  std::uint64_t total = 0;
  for (const auto& entry : reader.entries()) { total += entry.size_bytes; }
  return total;
}

std::string checksum_text(const checkpoint_reader& reader, const checkpoint_entry& entry) {
  if (reader.format() != checkpoint_format::tensorflow) { return "-"; }
  return entry.is_partitioned ? "in slices" : fmt::format("{:08x}", entry.crc32c);
}

/// The stop that was requested after the step of a checkpoint.
struct contained_stop {
  std::string cause;
  std::string text;
};

/// Returns the stop that the checkpoint contains. Empty if it contains none, or if it cannot be read, which is reported and makes `seen` worse.
std::optional<contained_stop> stop_of(const checkpoint_reader& reader, console& to, exit_code& seen) {
  const auto text_of = [&](std::string_view name) {
    const auto* entry = reader.find(name);
    if (entry == nullptr || entry->dtype != dtype::string || !entry->shape.empty()) { return std::string(); }
    const auto value = reader.read(name);
    return std::string(value.strings().front());
  };
  if (reader.find(stop_cause_name) == nullptr) { return std::nullopt; }
  try {
    return contained_stop{text_of(stop_cause_name), text_of(stop_text_name)};
  } catch (const error& failure) {
    print_error(to, failure.what());
    seen = worse(seen, exit_code_of(failure.kind()));
    return std::nullopt;
  }
}

/// Statistics of the finite values, and counts. The statistics are meaningless if there is no finite value.
struct tensor_stats {
  std::uint64_t count = 0;
  std::uint64_t nans = 0;
  std::uint64_t infinities = 0;
  double min = 0;
  double max = 0;
  double mean = 0;
  double stddev = 0;  ///< Of the whole population: the divisor is the number of values.

  [[nodiscard]] std::uint64_t finite() const noexcept { return count - nans - infinities; }
};

/// Returns a power of two that scales values of at most `greatest` to about 1, so that their squares neither overflow nor underflow.
double scale_for(double greatest) noexcept {
  if (greatest == 0) { return 1; }
  return std::ldexp(1.0, -std::clamp(std::ilogb(greatest), -1000, 1022));
}

template<class T>
tensor_stats stats_of_piece(std::span<const std::byte> bytes) {
  tensor_stats made;
  made.count = bytes.size() / sizeof(T);
  const auto each_finite = [&](auto&& act) {
    for (std::size_t i = 0; i < made.count; ++i) {
      const double value = to_double(element_at<T>(bytes, i));
      if (std::isfinite(value)) { act(value); }
    }
  };
  bool is_first = true;
  for (std::size_t i = 0; i < made.count; ++i) {
    const double value = to_double(element_at<T>(bytes, i));
    made.nans += std::isnan(value);
    made.infinities += std::isinf(value);
    if (!std::isfinite(value)) { continue; }
    made.min = is_first ? value : std::min(made.min, value);
    made.max = is_first ? value : std::max(made.max, value);
    is_first = false;
  }
  if (made.finite() == 0) { return made; }
  const auto count = static_cast<double>(made.finite());
  const double scale = scale_for(std::max(std::abs(made.min), std::abs(made.max)));
  double sum = 0;
  each_finite([&](double value) { sum += value * scale; });
  const double mean = sum / count;
  double squares = 0;
  each_finite([&](double value) { squares += (value * scale - mean) * (value * scale - mean); });
  made.mean = std::clamp(mean / scale, made.min, made.max);  // rounding may exceed them
  made.stddev = std::min(std::sqrt(squares / count) / scale, std::numeric_limits<double>::max());
  return made;
}

/// Adds the statistics of more values, by the formula of Chan, Golub and LeVeque, with roots instead of squares, which could overflow.
void merge(tensor_stats& into, const tensor_stats& more) {
  if (more.finite() != 0) {
    const bool is_first = into.finite() == 0;
    into.min = is_first ? more.min : std::min(into.min, more.min);
    into.max = is_first ? more.max : std::max(into.max, more.max);
    const double part = static_cast<double>(more.finite()) / static_cast<double>(into.finite() + more.finite());
    const double apart = (more.mean / 2 - into.mean / 2) * (2 * std::sqrt(part * (1 - part)));  // the factor is at most 1
    const double together = std::hypot(into.stddev * std::sqrt(1 - part), more.stddev * std::sqrt(part), apart);
    into.stddev = std::min(together, std::numeric_limits<double>::max());
    into.mean = std::lerp(into.mean, more.mean, part);
  }
  into.count += more.count;
  into.nans += more.nans;
  into.infinities += more.infinities;
}

/// Returns the statistics of a whole tensor. Does not overflow for any finite values. Empty for strings, complex numbers, types that cannot be
/// read, and tensors that cannot be read, which are reported and make `seen` worse.
std::optional<tensor_stats> stats_of(const checkpoint_reader& reader, const checkpoint_entry& entry, console& to, exit_code& seen) {
  const bool is_complex = entry.dtype == dtype::complex64 || entry.dtype == dtype::complex128;
  if (size_of(entry.dtype) == 0 || is_complex || !entry.unsupported.empty()) { return std::nullopt; }
  try {
    tensor_stats made;
    for (const auto piece : reader.sparse_pieces(entry.name)) {
      if (piece.zeros > 0) { merge(made, {.count = piece.zeros / size_of(entry.dtype)}); }
      visit_dtype(entry.dtype, [&]<class T>(std::type_identity<T>) {
        if constexpr (!is_complex_element<T>) { merge(made, stats_of_piece<T>(piece.bytes)); }
      });
    }
    return made;
  } catch (const error& failure) {
    print_error(to, failure.what());
    seen = worse(seen, exit_code_of(failure.kind()));
    return std::nullopt;
  }
}

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

exit_code inspect_as_text(const checkpoint_reader& reader, bool with_stats, console& to) {
  const auto step = reader.step();
  to.out << paint(to, ink::bold, printable(to, reader.prefix())) << ": " << count_text(reader.entries().size(), "tensor") << ", "
         << size_text(total_bytes(reader)) << " in " << count_text(static_cast<std::uint64_t>(reader.shards()), "data file")
         << (step ? fmt::format(", step {}", *step) : "") << '\n';
  auto seen = exit_code::good;
  if (const auto stop = stop_of(reader, to, seen)) {
    to.out << "contains a stop, cause " << printable(stop->cause) << ": " << printable(stop->text)
           << " (a restart does no step, unless resume_after_stop is set)\n";
  }
  to.out << '\n';
  std::vector<std::string> headings{"NAME", "DTYPE", "SHAPE", ">SIZE", "CRC32C"};
  if (with_stats) { headings.insert(headings.end(), {">COUNT", ">MIN", ">MAX", ">MEAN", ">STDDEV", ">NAN", ">INF"}); }
  text_table table(std::move(headings));
  for (const auto& entry : reader.entries()) {
    std::vector<cell> row{{printable(entry.name), ink::cyan},
                          dtype_text(entry.dtype),
                          to_string(entry.shape),
                          size_text(entry.size_bytes),
                          {checksum_text(reader, entry), ink::dim}};
    if (with_stats) { add_stats(row, stats_of(reader, entry, to, seen)); }
    table.add(std::move(row));
  }
  table.print(to);
  for (const auto& entry : reader.entries()) {
    if (!entry.unsupported.empty()) { to.out << printable(entry.name) << " cannot be read: " << printable(entry.unsupported) << '\n'; }
  }
  return seen;
}

void add_stats(json& tensor, const tensor_stats& stats) {
  tensor["count"] = stats.count;
  if (stats.finite() != 0) {
    tensor["min"] = json_number(stats.min);
    tensor["max"] = json_number(stats.max);
    tensor["mean"] = json_number(stats.mean);
    tensor["stddev"] = json_number(stats.stddev);
  }
  tensor["nan"] = stats.nans;
  tensor["inf"] = stats.infinities;
}

exit_code inspect_as_json(const checkpoint_reader& reader, bool with_stats, console& to) {
  json_document document(to.out);
  auto seen = exit_code::good;
  document.add("prefix", reader.prefix());
  if (const auto step = reader.step()) { document.add("step", *step); }
  document.add("shards", reader.shards());
  document.add("bytes", total_bytes(reader));
  if (const auto stop = stop_of(reader, to, seen)) { document.add("stop", json{{"cause", stop->cause}, {"text", stop->text}}); }
  document.add_list("tensors", reader.entries(), [&](const checkpoint_entry& entry) {
    json tensor{{"name", std::string(entry.name)},
                {"dtype", dtype_text(entry.dtype)},
                {"shape", tensor_shape(entry.shape)},
                {"bytes", entry.size_bytes},
                {"partitioned", entry.is_partitioned}};
    const bool has_checksum = !entry.is_partitioned && reader.format() == checkpoint_format::tensorflow;
    if (has_checksum) { tensor["crc32c"] = checksum_text(reader, entry); }
    if (!entry.unsupported.empty()) { tensor["unsupported"] = std::string(entry.unsupported); }
    if (with_stats) {
      if (const auto stats = stats_of(reader, entry, to, seen)) { add_stats(tensor, *stats); }
    }
    return tensor;
  });
  document.end();
  return seen;
}

}  // namespace

exit_code inspect(const inspect_options& options, console& to) {
  const auto reader = open_checkpoint(to, options.target);
  if (!options.diff.empty()) { return diff_checkpoints(options, reader, open_checkpoint(to, options.diff), to); }
  if (!options.print.empty()) { return print_tensor(options, reader, to); }
  return options.json ? inspect_as_json(reader, options.stats, to) : inspect_as_text(reader, options.stats, to);
}

}  // namespace stepwell::tool
