// SPDX-License-Identifier: Apache-2.0
//
// Jobs of MPI that train a model.
#include "support/catch.hpp"
#include "support/checkpoint_files.hpp"
#include "support/child_process.hpp"
#include "support/file_text.hpp"
#include "support/temporary_directory.hpp"

#include <sys/wait.h>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <vector>

using namespace stepwell::test;

namespace {

/// A training in a directory of its own.
class training {
public:
  /// Starts a job that trains until the step `last`.
  [[nodiscard]] child_process start(int size, int last) const {
    return child_process({STEPWELL_MPIEXEC, "-n", std::to_string(size), STEPWELL_MPI_TRAIN, directory(), std::to_string(last)});
  }
  /// Trains until the step `last`, and returns the wait status.
  [[nodiscard]] int run(int size, int last) const { return start(size, last).wait(); }

  [[nodiscard]] std::string directory() const { return directory_ / "run"; }
  /// Returns the bits of the weight after each step, as `rank` has seen them. Fails if a repeated step had other bits.
  [[nodiscard]] std::map<int, std::uint64_t> weights(int rank) const {
    std::ifstream in(directory() + "." + std::to_string(rank));
    std::map<int, std::uint64_t> found;
    int step = 0;
    std::uint64_t bits = 0;
    while (in >> step >> bits) { CHECK(found.emplace(step, bits).first->second == bits); }
    return found;
  }
  [[nodiscard]] pid_t process(int rank) const { return std::stoi(file_text(directory() + ".id." + std::to_string(rank))); }
  /// Returns the elements of a checkpoint.
  [[nodiscard]] std::string checkpoint(int step) const {
    return file_text(directory() + "/model.ckpt-" + std::to_string(step) + ".data-00000-of-00001");
  }

private:
  temporary_directory directory_;
};

}  // namespace

TEST_CASE("Jobs of 1, 2 and 4 processes have the same bits after each step and in the last checkpoint", "[mpi][training]") {
  const training alone;
  REQUIRE(alone.run(1, 200) == 0);
  REQUIRE(alone.weights(0).size() == 200);
  for (const int size : {2, 4}) {
    const training together;
    REQUIRE(together.run(size, 200) == 0);
    for (int rank = 0; rank < size; ++rank) { CHECK(together.weights(rank) == alone.weights(0)); }
    CHECK(together.checkpoint(200) == alone.checkpoint(200));
    CHECK(steps_in(together.directory()) == "0 100 200");
  }
}

TEST_CASE("SIGTERM to any process of a job ends all processes at the same step, which is saved once", "[mpi][training]") {
  for (const int stopped : {0, 2}) {
    const training all;
    auto job = all.start(3, 1'000'000);
    CHECK(job.line() == "step");
    ::kill(all.process(stopped), SIGTERM);
    CHECK(job.wait() == 0);
    const auto last = all.weights(0).rbegin()->first;
    for (int rank = 0; rank < 3; ++rank) { CHECK(all.weights(rank).rbegin()->first == last); }
    CHECK_THAT(steps_in(all.directory()), Catch::Matchers::EndsWith(" " + std::to_string(last)));
  }
}

TEST_CASE("A job that is started again after the loss of a process continues with the same bits", "[mpi][training]") {
  for (const int killed : {0, 1}) {
    const training together;
    {
      auto job = together.start(3, 1'000'000);
      CHECK(job.line() == "step");
      CHECK(job.line() == "step");
      ::kill(together.process(killed), SIGKILL);
      CHECK(job.wait() != 0);
    }
    const auto reached = together.weights(0).rbegin()->first;
    CHECK(reached >= 150);
    const auto until = (reached / 100 + 1) * 100;
    const training undisturbed;
    REQUIRE(undisturbed.run(1, until) == 0);
    REQUIRE(together.run(3, until) == 0);
    for (int rank = 0; rank < 3; ++rank) { CHECK(together.weights(rank) == undisturbed.weights(0)); }
    CHECK(together.checkpoint(until) == undisturbed.checkpoint(until));
  }
}
