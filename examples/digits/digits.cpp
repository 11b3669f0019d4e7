// SPDX-License-Identifier: Apache-2.0
//
// The main example: trains a digit classifier. The program may be killed at any time and continues when it is started
// again.
#include "dataset.hpp"
#include "fingerprint.hpp"
#include "matrix.hpp"
#include "network.hpp"
#include "options.hpp"
#include "train.hpp"

#include <stepwell/checkpoint/find_checkpoints.hpp>
#include <stepwell/group/group.hpp>
#include <stepwell/io/file_system.hpp>
#include <stepwell/protocol/session_signals.hpp>
#if DIGITS_WITH_MPI
#include <stepwell/mpi/mpi.hpp>
#endif

#include <cstdio>
#include <exception>
#include <memory>

namespace {

constexpr int exit_failure = 1;
constexpr int exit_usage = 2;

/// Returns the processes that mpirun has started.
std::shared_ptr<stepwell::group> make_group() {
#if DIGITS_WITH_MPI
  return stepwell::mpi::make_group(nullptr, nullptr);
#else
  throw digits::usage_error("--group needs a build with MPI (STEPWELL_BUILD_MPI=ON)");
#endif
}

void run(const digits::options& wanted) {
  digits::set_matrix_threads(wanted.threads);
  const auto group = wanted.group ? make_group() : nullptr;
  const auto own_data = stepwell::io::join_path(wanted.run_dir, "data");
  const auto data = group ? digits::load_datasets(*stepwell::io::posix_file_system(), wanted.data.empty() ? own_data : wanted.data)
                          : digits::datasets_for(wanted.data, wanted.run_dir);
  digits::network model(wanted.hidden, wanted.seed);
  model.group = group;
  const auto [step, why] = digits::train(model, data, wanted);
  if (group && !group->is_chief()) { return; }
  if (why.cause == stepwell::stop_cause::signal) {
    std::printf("stopped at step %lld: %s; start again to continue\n", static_cast<long long>(step), why.text.c_str());
    return;
  }
  if (const auto best = stepwell::best_checkpoint(wanted.run_dir)) {
    std::printf("best step=%lld accuracy=%.4f\ncheckpoint=%s\n", static_cast<long long>(best->step), best->value, best->prefix.c_str());
  }
  const auto score = digits::evaluate(model, data.test);
  std::printf("final step=%lld loss=%.6f accuracy=%.4f\nfingerprint=%s\n", static_cast<long long>(step), static_cast<double>(score.loss),
              static_cast<double>(score.accuracy), digits::fingerprint(model.variables()).c_str());
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const auto wanted = digits::parse_options(count, arguments);
    if (!wanted) {
      std::fputs(digits::help_text().c_str(), stdout);
      return 0;
    }
    run(*wanted);
    return 0;
  } catch (const digits::usage_error& wrong) {
    std::fprintf(stderr, "digits: %s\nTry 'digits --help'.\n", wrong.what());
    return exit_usage;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "digits: %s\n", failure.what());
    return exit_failure;
  }
}
