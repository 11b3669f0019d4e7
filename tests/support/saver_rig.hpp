// SPDX-License-Identifier: Apache-2.0
//
// The setup for saver tests: a directory, a file system that fails on demand, a clock that stands still.
#pragma once

#include "support/checkpoint_files.hpp"
#include "support/gate.hpp"
#include "support/toy_variables.hpp"

#include <stepwell/base/clock.hpp>
#include <stepwell/checkpoint/saver.hpp>

#include <memory>
#include <string>
#include <utility>

namespace stepwell::test {

struct workshop {
  temporary_directory directory;
  std::shared_ptr<fault_file_system> files = fast_faulty_files();
  std::shared_ptr<manual_clock> clock = std::make_shared<manual_clock>();

  [[nodiscard]] saver_options with(saver_options options) const {
    options.file_system = files;
    options.clock = clock;
    return options;
  }
  [[nodiscard]] saver make(saver_options options = {}) const { return saver(directory.path(), with(std::move(options))); }
  [[nodiscard]] std::string steps() const { return steps_in(directory.path()); }
};

/// Saves `taken`. Returns after the retention has also removed old checkpoints.
inline saved_checkpoint save_and_settle(saver& saver, snapshot taken) {
  auto saved = saver.save_and_wait(std::move(taken));
  saver.drain();
  return saved;
}

/// Blocks writes to data files while the gate is closed.
inline void hold_data(workshop& shop, gate& gate) {
  shop.files->before_each([&](const event& event) {
    if (event.kind == operation::write && event.path.find(".data-") != std::string::npos) { gate.pass(); }
  });
}

}  // namespace stepwell::test
