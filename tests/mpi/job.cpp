// SPDX-License-Identifier: Apache-2.0
//
// mpi_job CASE LOG [TIMEOUT]: one process of a job that a test starts. Log messages are appended to the file LOG.
#include <stepwell/base/error.hpp>
#include <stepwell/base/log.hpp>
#include <stepwell/mpi/mpi.hpp>

#include <fcntl.h>
#include <mpi.h>
#include <unistd.h>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace sw = stepwell;

namespace {

void log_to(const char* path) {
  const int file = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  sw::set_log_sink([file](sw::log_level level, std::string_view text) {
    const auto line = std::string(sw::to_string(level)) + ": " + std::string(text) + "\n";
    static_cast<void>(::write(file, line.data(), line.size()));
  });
}

void form(sw::group& group, sw::seconds_value limit = 3600) {
  group.form({.time = sw::system_clock(), .stop = {}, .until = sw::detail::time_after(sw::system_clock()->now(), limit)}, {});
}

void print(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

void sleep_long() { std::this_thread::sleep_for(std::chrono::seconds(60)); }

void sum_once(sw::group& group) {
  float one = 1;
  group.sum(one);
}

int run(const std::string& what, int* argc, char*** argv, double timeout) {
  const sw::mpi::options options{.timeout_secs = timeout};
  int provided = 0;
  if (what == "one_thread") { MPI_Init_thread(argc, argv, MPI_THREAD_SINGLE, &provided); }
  if (what == "own_mpi") { MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided); }

  auto group = sw::mpi::make_group(argc, argv, options);
  const auto rank = group->rank();
  if (what == "never_formed") {
    if (rank == 1) { sleep_long(); }
    form(*group, 1);
  }
  if (what == "gives_up" && rank == 1) { return 4; }
  form(*group);
  sum_once(*group);
  if (what == "sums") {
    std::vector<std::int64_t> ids(static_cast<std::size_t>(group->size()));
    ids[static_cast<std::size_t>(rank)] = ::getpid();
    group->sum(ids);
    std::string line = "processes";
    for (const auto id : ids) { line += " " + std::to_string(id); }
    if (rank == 0) { print(line); }
    std::vector<float> values(1000, 0.5F);
    for (;;) { group->sum(values); }
  }
  if (what == "late") {
    if (rank == 1) { sleep_long(); }
    sum_once(*group);
  }
  if (what == "leaves_early" && rank != 1) { sum_once(*group); }
  if (what == "fails" && rank == 1) { group->abandon("its disk is full"); }
  if (what == "fails") { sum_once(*group); }
  if (what == "half") {
    std::vector<std::byte> values(8);
    group->sum_elements(sw::dtype::half, values);
  }
  if (what == "vanishes") {
    if (rank == 1) { std::_Exit(1); }
    sum_once(*group);
  }
  if (what == "ends_late" && rank == 1) { sleep_long(); }
  group.reset();

  int is_finalized = 0;
  MPI_Finalized(&is_finalized);
  if (rank == 0) { print(is_finalized != 0 ? "finalised" : "not finalised"); }
  if (what == "own_mpi") { MPI_Finalize(); }
  if (what == "twice") { group = sw::mpi::make_group(argc, argv, options); }
  return 0;
}

}  // namespace

int main(int argc, char* argv[]) {
  if (argc < 3) { return 2; }
  log_to(argv[2]);
  try {
    return run(argv[1], &argc, &argv, argc > 3 ? std::atof(argv[3]) : 60);
  } catch (const std::exception& failure) {
    sw::log_error(failure.what());
    return 3;
  }
}
