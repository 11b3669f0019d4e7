// SPDX-License-Identifier: Apache-2.0
//
// The good files from which crafted files are made: three checkpoints, a state file, metrics, events, metric files.
#pragma once

#include "support/file_text.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/base/variable.hpp>
#include <stepwell/checkpoint/detail/checkpoint_writer.hpp>
#include <stepwell/checkpoint/saver.hpp>
#include <stepwell/checkpoint/snapshot.hpp>
#include <stepwell/summary/metric_writer.hpp>
#include <stepwell/summary/writer.hpp>

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace stepwell::test {

/// The model of the good run.
struct crafted_model {
  std::array<float, 64> w{};
  std::array<double, 8> m{};
  std::int64_t global_step = 0;

  [[nodiscard]] variable_list variables() { return {{"global_step", global_step}, {"layer/m", m}, {"layer/w", w}}; }
  [[nodiscard]] std::size_t size_bytes() const { return sizeof w + sizeof m + sizeof global_step; }
};

/// Writes a checkpoint with kinds of tensors that TensorFlow writes and savers do not.
inline void write_rich_checkpoint(const std::string& prefix) {
  crafted_model model;
  detail::checkpoint_writer writer(prefix);
  for (const auto& variable : model.variables()) { writer.add(variable.name(), {variable.dtype(), variable.shape(), variable.bytes()}); }
  const std::vector<std::string> texts = {"", "one", std::string(300, 'x')};
  writer.add_strings("texts", {3}, texts);
  const std::vector<std::byte> half(4 * 4 * 2);
  writer.add_slice("sliced", {4, 4}, {{0, 2}, {0, format::slice_extent::whole}}, {dtype::float32, {2, 4}, half});
  writer.add_slice("sliced", {4, 4}, {{2, 2}, {0, format::slice_extent::whole}}, {dtype::float32, {2, 4}, half});
  writer.commit();
}

/// Writes a good run into `directory`.
inline void write_good_run(const std::string& directory) {
  {
    crafted_model model;
    const auto variables = model.variables();
    snapshot_pool pool(4096);
    saver keeper(directory, {.max_to_keep = 5});
    for (model.global_step = 1; model.global_step <= 3; ++model.global_step) {
      keeper.save(snapshot::capture(pool.acquire(), variables, model.global_step));
    }
  }
  write_rich_checkpoint(directory + "/model.ckpt-4");
  {
    summary::writer events(directory);
    summary::csv_writer csv(directory + "/metrics.csv");
    summary::jsonl_writer json(directory + "/metrics.jsonl");
    for (std::int64_t step = 1; step <= 20; ++step) {
      events.add_scalar("loss", 1.0F / static_cast<float>(step), step);
      csv.add_scalar("loss", 1.0F / static_cast<float>(step), step);
      json.add_scalar("loss", 1.0F / static_cast<float>(step), step);
    }
  }
}

/// Returns the files of a run by name, without its locks.
inline std::map<std::string, std::string> files_of_run(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const auto name = entry.path().filename().string();
    if (!name.ends_with(".lock")) {
      files[name.find("tfevents") != std::string::npos ? "events.out.tfevents.1" : name] = file_text(entry.path());
    }
  }
  return files;
}

}  // namespace stepwell::test
