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

#include <stepwell/checkpoint/best_checkpoint.hpp>
#include <stepwell/hook/session_signals.hpp>

#include <cstdio>
#include <exception>

namespace {

constexpr int exit_failure = 1;
constexpr int exit_usage = 2;

void run(const digits::options& wanted) {
  digits::set_matrix_threads(wanted.threads);
  const auto data = digits::datasets_for(wanted.data, wanted.run_dir);
  digits::network model(wanted.hidden, wanted.seed);
  const auto [step, why] = digits::train(model, data, wanted);
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
