// SPDX-License-Identifier: Apache-2.0
//
// crafted_files COUNT [SEED [FIRST]]: makes COUNT run directories with one crafted file each, and reads each directory
// with all readers of such files in a child process with at most 1 GB of address space. A case fails if it crashes,
// takes more than 10 s of processor time, throws an exception that is not a stepwell::error, prints control bytes, does
// not find the good checkpoint, or takes more memory than 64 MiB plus 17 times the size of the largest index plus the
// size of the model's variables. The program prints the seed. This command repeats one case: crafted_files 1 SEED
// NUMBER.
#include "fault/crafted/cases.hpp"
#include "fault/crafted/counted_memory.hpp"
#include "fault/crafted/good_run.hpp"
#include "fault/crafted/readers.hpp"

#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <random>
#include <string>

namespace {

namespace fs = std::filesystem;
namespace test = stepwell::test;
using file_map = std::map<std::string, std::string>;

constexpr std::uint64_t batch = 100;       // cases per child process
constexpr double most_seconds = 10;        // processor time, so that other work on the machine does not count
constexpr int most_blocked_seconds = 300;  // wall-clock time: on a busy machine a case gets a few percent of it
constexpr ::rlim_t most_address_space = ::rlim_t{1} << 30;
constexpr std::size_t base_memory = std::size_t{64} << 20;

/// A child's report on one case, one line in a pipe.
struct report {
  std::uint64_t number = 0;
  double elapsed = 0;
  std::size_t memory = 0;  ///< bytes above the limit without its constant 64 MiB
  bool is_done = false;    ///< false: the case has begun
};

std::uintmax_t index_bytes(const std::string& directory) {
  std::uintmax_t most = 0;
  for (const auto& entry : fs::directory_iterator(directory)) {
    std::error_code failure;
    if (entry.path().extension() == ".index" && entry.is_regular_file(failure)) { most = std::max(most, entry.file_size(failure)); }
  }
  return most;
}

double processor_seconds() {
  ::timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

/// Runs one case and fills in the report. Returns a description of its failure.
std::string run_case(const std::string& directory, const file_map& good, std::uint64_t seed, report& of) {
  fs::create_directory(directory);
  const auto what = test::write_crafted_case(directory, good, seed, of.number);
  const auto allowed = 17 * index_bytes(directory) + test::crafted_model().size_bytes();
  const auto before = test::allocated_bytes();
  test::reset_peak();
  const auto begun = processor_seconds();
  auto violations = test::run_readers(directory);
  of.elapsed = processor_seconds() - begun;
  const auto taken = test::peak_bytes() - before;
  of.memory = taken - std::min(taken, allowed);
  if (of.elapsed > most_seconds) { violations += "took " + std::to_string(of.elapsed) + " s; "; }
  if (of.memory > base_memory) { violations += "took " + std::to_string(taken >> 20) + " MiB of memory; "; }
  fs::remove_all(directory);
  return violations.empty() ? violations : what + ": " + violations;
}

[[noreturn]] void run_child(int to, const std::string& directory, const file_map& good, std::uint64_t seed, std::uint64_t first,
                            std::uint64_t end) {
  const ::rlimit limit{most_address_space, most_address_space};
  ::setrlimit(RLIMIT_AS, &limit);
  for (auto number = first; number < end; ++number) {
    report of{.number = number};
    static_cast<void>(::write(to, &of, sizeof of));
    const auto wrong = run_case(directory + "/" + std::to_string(number), good, seed, of);
    of.is_done = true;
    if (!wrong.empty()) { std::printf("case %llu: %s\n", static_cast<unsigned long long>(number), wrong.c_str()); }
    std::fflush(stdout);
    static_cast<void>(::write(to, &of, sizeof of));
    if (!wrong.empty()) { ::_exit(1); }
  }
  ::_exit(0);
}

struct totals {
  std::uint64_t violations = 0;
  double slowest = 0;
  std::size_t most_memory = 0;
};

/// Reads a child's reports until the child ends or exceeds its time. Returns the number after the last case that began.
std::uint64_t watch(int from, ::pid_t child, std::uint64_t first, totals& sums) {
  report last{.number = first, .is_done = true};
  std::uint64_t next = first;
  for (;;) {
    ::pollfd ready{from, POLLIN, 0};
    if (::poll(&ready, 1, 1000 * most_blocked_seconds) == 0) {
      std::printf("case %llu: does not end within %d s\n", static_cast<unsigned long long>(last.number), most_blocked_seconds);
      ::kill(child, SIGKILL);
      break;
    }
    if (::read(from, &last, sizeof last) != static_cast<ssize_t>(sizeof last)) { break; }
    next = last.number + 1;
    sums.slowest = std::max(sums.slowest, last.elapsed);
    sums.most_memory = std::max(sums.most_memory, last.memory);
  }
  int how = 0;
  ::waitpid(child, &how, 0);
  if (how != 0) { ++sums.violations; }
  if (WIFSIGNALED(how) && WTERMSIG(how) != SIGKILL) {
    std::printf("case %llu: ended by signal %d\n", static_cast<unsigned long long>(last.number), WTERMSIG(how));
  }
  return next;
}

std::uint64_t run_batch(const std::string& directory, const file_map& good, std::uint64_t seed, std::uint64_t first, std::uint64_t end,
                        totals& sums) {
  std::array<int, 2> pipe{};
  if (::pipe(pipe.data()) != 0) { std::abort(); }
  std::fflush(stdout);
  const auto child = ::fork();
  if (child == 0) {
    ::close(pipe[0]);
    run_child(pipe[1], directory, good, seed, first, end);
  }
  ::close(pipe[1]);
  const auto next = watch(pipe[0], child, first, sums);
  ::close(pipe[0]);
  return std::max(next, first + 1);
}

/// Runs in a separate process, because the threads of the library's pool do not survive a fork.
file_map make_good_run(const std::string& directory) {
  fs::create_directory(directory);
  const auto child = ::fork();
  if (child == 0) {
    test::write_good_run(directory);
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  return test::files_of_run(directory);
}

}  // namespace

int main(int argc, char** argv) {
  const auto number_of = [&](int position, std::uint64_t otherwise) {
    return argc > position ? std::strtoull(argv[position], nullptr, 10) : otherwise;
  };
  const auto count = number_of(1, 500);
  const auto seed = number_of(2, std::random_device{}());
  const auto first = number_of(3, 0);
  std::printf("crafted_files: seed %llu\n", static_cast<unsigned long long>(seed));
  const test::temporary_directory directory;
  const auto good = make_good_run(directory / "good");
  totals sums;
  for (auto number = first; number < first + count;) {
    number = run_batch(directory.path(), good, seed, number, std::min(number + batch, first + count), sums);
  }
  std::printf("crafted_files: %llu cases, seed %llu: %llu violations; slowest %.2f s, most memory %zu KiB above the size of the index\n",
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(seed),
              static_cast<unsigned long long>(sums.violations), sums.slowest, sums.most_memory >> 10);
  return sums.violations == 0 ? 0 : 1;
}
