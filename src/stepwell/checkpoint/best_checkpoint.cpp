// SPDX-License-Identifier: Apache-2.0
#include "stepwell/checkpoint/best_checkpoint.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/checkpoint/find_checkpoints.hpp"

#include <utility>

namespace stepwell {
namespace {

/// Returns the metric in a checkpoint. Empty if another program wrote the checkpoint.
std::optional<double> value_in(const checkpoint_reader& reader) {
  const auto* entry = reader.find(best_value_name);
  if (entry == nullptr || entry->dtype != dtype::float64 || !entry->shape.empty()) { return std::nullopt; }
  return reader.read(best_value_name).as<double>().front();
}

}  // namespace

std::optional<scored_checkpoint> best_checkpoint(const std::string& directory, std::string_view name,
                                                 std::shared_ptr<io::file_system> files) {
  auto reader = open_newest(io::join_path(directory, name), default_checkpoint_basename, std::move(files));
  while (reader) {
    try {
      if (const auto value = value_in(*reader)) { return scored_checkpoint{reader->prefix(), reader->step().value_or(0), *value}; }
      throw data_loss_error("this checkpoint has no metric; it was not saved by a best_checkpoint_hook", reader->prefix());
    } catch (const error& failure) { reader = reader->search()->next_after(*reader, failure); }
  }
  return std::nullopt;
}

}  // namespace stepwell
