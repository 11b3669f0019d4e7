// SPDX-License-Identifier: Apache-2.0
//
// A directory in which another process saves checkpoints and deletes old ones, at each operation of a reader.
#pragma once

#include "support/fault_file_system.hpp"
#include "support/temporary_directory.hpp"
#include "support/toy_variables.hpp"

#include <stepwell/checkpoint/saver.hpp>
#include <stepwell/io/file_system.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace stepwell::test {

class busy_directory {
public:
  explicit busy_directory(int kept) : saver_(directory_.path(), {.max_to_keep = kept, .sync = false}) {
    for (int i = 0; i < kept; ++i) { save(); }
  }

  [[nodiscard]] std::string path() const { return directory_.path(); }

  /// Calls `read(files)` once for each operation that it makes with `files`. Before this operation a checkpoint is saved, and the oldest one
  /// is deleted. In the last call this happens before each of the first 200 operations.
  void at_each_operation(const std::function<void(const std::shared_ptr<io::file_system>&)>& read) {
    std::uint64_t done = 1;
    for (std::uint64_t number = 1; number <= done; ++number) {
      done = run(read, [number](std::uint64_t now) { return now == number; });
    }
    run(read, [](std::uint64_t now) { return now <= 200; });
  }

private:
  void save() {
    static_cast<void>(saver_.save_and_wait(toy_snapshot(++step_)));
    saver_.drain();
  }
  std::uint64_t run(const std::function<void(const std::shared_ptr<io::file_system>&)>& read,
                    const std::function<bool(std::uint64_t)>& saves_at) {
    const auto files = std::make_shared<fault_file_system>();
    files->before_each([&](const event& now) {
      if (saves_at(now.number)) { save(); }
    });
    read(files);
    return files->operations();
  }

  temporary_directory directory_;
  saver saver_;
  std::int64_t step_ = 0;
};

}  // namespace stepwell::test
