// SPDX-License-Identifier: Apache-2.0
//
// Jobs whose processes are stopped, killed, or started by the wrong launcher.
#include <stepwell/mpi/mpi.hpp>

#include "support/catch.hpp"
#include "support/child_process.hpp"
#include "support/file_text.hpp"
#include "support/temporary_directory.hpp"

#include <mpi.h>
#include <sys/wait.h>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

using namespace stepwell;
using namespace stepwell::test;

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Returns the exit code of a wait status; for a signal, 128 and its number.
int code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

/// A job of the program mpi_job.
class job {
public:
  job(int size, const std::string& what, const std::string& timeout = "60")
      : process_({STEPWELL_MPIEXEC, "-n", std::to_string(size), STEPWELL_MPI_JOB, what, log_path(), timeout}) {}
  /// A process without a launcher, with these variables of the environment ("NAME=value").
  job(const std::vector<std::string>& variables, const std::string& what) : process_(words(variables, what)) {}

  [[nodiscard]] std::string line() const { return process_.line(); }
  [[nodiscard]] int wait() { return code_of(process_.wait()); }
  [[nodiscard]] std::string log() const { return file_text(log_path()); }

  /// Waits until all processes add, and returns their ids by rank.
  [[nodiscard]] std::vector<pid_t> processes() const {
    std::istringstream words(line());
    std::string word;
    REQUIRE(words >> word);
    return {std::istream_iterator<pid_t>(words), {}};
  }

private:
  [[nodiscard]] std::string log_path() const { return directory_ / "log"; }
  [[nodiscard]] std::vector<std::string> words(const std::vector<std::string>& variables, const std::string& what) const {
    std::vector<std::string> made{"/usr/bin/env"};
    made.insert(made.end(), variables.begin(), variables.end());
    made.insert(made.end(), {STEPWELL_MPI_JOB, what, log_path()});
    return made;
  }

  temporary_directory directory_;
  child_process process_;
};

constexpr double limit = 2;  // seconds

/// Checks the exit code of a job in which a process has ended itself within MPI_Finalize, where MPI_Abort is not allowed. MPICH's mpiexec
/// combines the status of this process with those of the processes that it kills: its exit code may also be 9, the number of SIGKILL, or 1.
void check_code_after_exit_in_finalize(int code) {
#ifdef MPICH_VERSION
  CHECK(code != 0);
#else
  CHECK(code == mpi::lost_exit_code);
#endif
}

}  // namespace

TEST_CASE("If a rank is stopped, the job ends at the time limit, and the log names the rank", "[mpi][kill]") {
  for (const int stopped : {1, 0}) {
    job of_three(3, "sums", "2");
    const auto ids = of_three.processes();
    ::kill(ids.at(static_cast<std::size_t>(stopped)), SIGSTOP);
    const auto start = std::chrono::steady_clock::now();
    CHECK(of_three.wait() == mpi::lost_exit_code);
    CHECK(seconds_since(start) < limit + 3);
    CHECK_THAT(of_three.log(), ContainsSubstring("no answer from rank " + std::to_string(stopped)));
    CHECK_THAT(of_three.log(), ContainsSubstring("of the group lasts longer than 2 s"));
  }
}

TEST_CASE("If a rank is killed, the job ends with an error", "[mpi][kill]") {
  for (const int killed : {2, 0}) {
    job of_three(3, "sums");
    const auto ids = of_three.processes();
    ::kill(ids.at(static_cast<std::size_t>(killed)), SIGKILL);
    const auto start = std::chrono::steady_clock::now();
    CHECK(of_three.wait() != 0);
    CHECK(seconds_since(start) < 10);
  }
}

TEST_CASE("If a rank computes for too long, the job ends at the time limit, and the log names the rank", "[mpi]") {
  job of_three(3, "late", "1");
  CHECK(of_three.wait() == mpi::lost_exit_code);
  CHECK_THAT(of_three.log(), ContainsSubstring("sum number 3 of the group lasts longer than 1 s (timeout_secs): not begun by rank 1"));
}

TEST_CASE("If a rank ends its group while the others use it, the job ends at the time limit", "[mpi]") {
  job of_two(2, "leaves_early", "1");
  CHECK(of_two.wait() != 0);
  CHECK_THAT(of_two.log(), ContainsSubstring("lasts longer than 1 s"));
}

TEST_CASE("If a rank exits without the end of its group, the job ends with an error", "[mpi]") {
  job of_two(2, "vanishes", "2");
  CHECK(of_two.wait() != 0);
}

TEST_CASE("If a rank does not finalise MPI, the job ends at the time limit", "[mpi]") {
  job of_two(2, "ends_late", "1");
  check_code_after_exit_in_finalize(of_two.wait());
  CHECK_THAT(of_two.log(), ContainsSubstring("MPI_Finalize lasts longer than 1 s"));
}

TEST_CASE("If a rank leaves before the group is formed, the job ends at the time limit, and the log of this rank says so", "[mpi]") {
  job of_two(2, "gives_up", "1");
  check_code_after_exit_in_finalize(of_two.wait());
  CHECK_THAT(of_two.log(), ContainsSubstring("this process has left before the group was formed, and the others wait for it"));
}

TEST_CASE("A failure in one rank ends the job, and the log has its reason", "[mpi]") {
  job of_two(2, "fails");
  CHECK(of_two.wait() == mpi::lost_exit_code);
  CHECK_THAT(of_two.log(), ContainsSubstring("error: MPI: a process of the group has failed: its disk is full; the job ends so that its "
                                             "launcher can start it again"));
}

TEST_CASE("A formation without a rank ends at its time limit, and names the rank", "[mpi]") {
  job of_three(3, "never_formed");
  CHECK(of_three.wait() == mpi::lost_exit_code);
  CHECK_THAT(
      of_three.log(),
      ContainsSubstring(
          "the group was not formed: the group has waited too long for other processes (not begun by rank 1); start the missing processes, or raise max_wait_secs"));
}

TEST_CASE("A type that MPI cannot add ends the job with an error that names the type", "[mpi]") {
  job of_two(2, "half");
  CHECK(of_two.wait() == mpi::lost_exit_code);
  CHECK_THAT(of_two.log(), ContainsSubstring("MPI cannot add elements of type float16"));
}

TEST_CASE("MPI is finalised with the last group", "[mpi]") {
  job of_one(1, "sum");
  CHECK(of_one.line() == "finalised");
  CHECK(of_one.wait() == 0);
}

TEST_CASE("A program without a launcher is a group of one process", "[mpi]") {
  job alone(std::vector<std::string>{}, "sum");
  CHECK(alone.line() == "finalised");
  CHECK(alone.wait() == 0);
}

TEST_CASE("A program that has initialised MPI itself finalises it itself", "[mpi]") {
  job of_two(2, "own_mpi");
  CHECK(of_two.line() == "not finalised");
  CHECK(of_two.wait() == 0);
}

TEST_CASE("If the program has initialised MPI for one thread, the error names the level", "[mpi]") {
  job of_two(2, "one_thread");
  CHECK(of_two.wait() != 0);
  CHECK_THAT(of_two.log(), ContainsSubstring("needs level 3 (MPI_THREAD_MULTIPLE)"));
}

TEST_CASE("A group after the end of MPI is an error", "[mpi]") {
  job of_one(1, "twice");
  CHECK(of_one.wait() == 3);
  CHECK_THAT(of_one.log(), ContainsSubstring("MPI was finalised"));
}

TEST_CASE("If another launcher has started several processes, the error names it and the remedy", "[mpi]") {
  job torchrun({"RANK=1", "WORLD_SIZE=4"}, "sum");
  CHECK(torchrun.wait() == 3);
  CHECK_THAT(torchrun.log(), ContainsSubstring("torchrun has started 4 processes (this is rank 1), but for MPI this process is alone"));
  CHECK_THAT(torchrun.log(), ContainsSubstring("start it with the mpirun of this library"));
  job slurm({"SLURM_PROCID=0", "SLURM_NTASKS=2", "SLURM_STEP_NODELIST=n1"}, "sum");
  CHECK(slurm.wait() == 3);
  CHECK_THAT(slurm.log(), ContainsSubstring("srun --mpi=pmix"));
  job alone({"RANK=0", "WORLD_SIZE=1"}, "sum");
  CHECK(alone.wait() == 0);
}

TEST_CASE("A rank that is no number is an error that names its variable", "[mpi]") {
  job garbage({"RANK=first", "WORLD_SIZE=4"}, "sum");
  CHECK(garbage.wait() == 3);
  CHECK_THAT(garbage.log(), ContainsSubstring("RANK is \"first\", not a number"));
}
