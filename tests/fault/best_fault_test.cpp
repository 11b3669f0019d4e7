// SPDX-License-Identifier: Apache-2.0
//
// Runs with a best checkpoint that early stopping restores at the end. Each file operation fails in turn. At the end, the model has the
// best state, or an error says that the best state is lost.
#include "support/both_ways.hpp"
#include "support/catch.hpp"
#include "support/checkpoint_files.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"
#include "unit/hooks/scripted_model.hpp"

#include <stepwell/base/detail/failure_text.hpp>
#include <stepwell/base/error.hpp>
#include <stepwell/checkpoint/find_checkpoints.hpp>
#include <stepwell/hooks/best_checkpoint_hook.hpp>
#include <stepwell/hooks/early_stopping_hook.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sw = stepwell;
using sw::test::fault_file_system;
using sw::test::scripted_model;
using sw::test::session_way;

namespace {

constexpr auto score = &scripted_model::result::score;
const std::vector<double> script{5, 1, 4, 2};
constexpr std::int64_t best_step = 2;

enum class policy { stop, retry, warn };

sw::on_save_error on_error(policy of) {
  switch (of) {
    case policy::stop: return sw::on_save_error::stop();
    case policy::retry: return sw::on_save_error::retry(2, std::chrono::seconds(0));
    case policy::warn: return sw::on_save_error::warn();
  }
  return sw::on_save_error::stop();
}

/// An endless, seekable source. A step of the model ignores its batch.
struct endless {
  std::int64_t at = 0;
  const std::int64_t* peek() { return &at; }
  void advance() { ++at; }
  std::uint64_t position() const { return static_cast<std::uint64_t>(at); }
  void seek(std::uint64_t position) { at = static_cast<std::int64_t>(position); }
};

struct batch_model : scripted_model {
  result step(std::int64_t /*batch*/) { return scripted_model::step(); }
};

struct run_end {
  std::exception_ptr failure;
  std::int64_t step_of_model = 0;  ///< The step whose state the model has at the end.
};

/// Trains to `last_step` in `directory`.
run_end train(session_way way, const std::string& directory, const std::shared_ptr<fault_file_system>& files, policy with,
              std::int64_t last_step) {
  const auto saver = sw::saver_options{.on_error = on_error(with), .file_system = files};
  batch_model model{{.script = script}};
  endless source;
  run_end end;
  try {
    sw::test::train(
        way, model,
        sw::training_options{
            .checkpoint_dir = directory,
            .saves = {.save_steps = 2, .saver = {.when_busy = sw::when_busy::wait, .on_error = on_error(with), .file_system = files}},
            .summaries = {.save_steps = sw::none},
            .step_counter = {.every_n_steps = sw::none},
            .retry = {.initial_backoff = 0}},
        source, -1, sw::best_checkpoint_hook{{.saver = saver}, score},
        sw::early_stopping_hook{{.patience = 99, .restore_best = true}, score}, sw::stop_at_step(last_step));
  } catch (...) { end.failure = std::current_exception(); }
  end.step_of_model = model.next;
  return end;
}

/// Returns an empty text if the best state is right, or if an error says that it is lost. Otherwise returns a description.
std::string wrong_best(const std::string& directory, const run_end& end, bool is_any_error_right) {
  const auto text = end.failure ? sw::detail::text_of(end.failure) : "";
  if (end.failure) { return is_any_error_right || text.find("is lost") != std::string::npos ? "" : text; }
  const auto best = sw::best_checkpoint(directory);
  if (!best) { return "no best checkpoint"; }
  if (best->step == best_step && end.step_of_model == best_step) { return ""; }
  return "best at " + std::to_string(best->step) + ", model at " + std::to_string(end.step_of_model);
}

std::shared_ptr<fault_file_system> failing_at(std::uint64_t nth, int errno_value) {
  auto files = sw::test::fast_faulty_files();
  files->inject({.nth = nth, .errno_value = errno_value});
  return files;
}

/// Returns the number of file operations of a run without a failure.
std::uint64_t operations_of(session_way way, policy with) {
  const sw::test::temporary_directory directory;
  const auto files = sw::test::fast_faulty_files();
  const auto end = train(way, directory.path(), files, with, 4);
  CHECK(wrong_best(directory.path(), end, false).empty());
  return files->operations();
}

void check_all(session_way way, int errno_value, policy with) {
  const sw::test::log_capture log;
  std::vector<std::string> wrong;
  const auto operations = operations_of(way, with);
  CHECK(operations > 100);
  for (std::uint64_t nth = 1; nth <= operations; ++nth) {
    for (const std::int64_t first_end : {std::int64_t{4}, std::int64_t{3}}) {  // without and with an interruption
      const sw::test::temporary_directory directory;
      const auto files = failing_at(nth, errno_value);
      const auto note = [&](const std::string& why) {
        if (!why.empty()) {
          wrong.push_back("operation " + std::to_string(nth) + " to step " + std::to_string(first_end) + ": " + why + "; " +
                          files->history().at(nth - 1).path);
        }
      };
      const auto first = train(way, directory.path(), files, with, first_end);
      note(wrong_best(directory.path(), first, true));
      if (!first.failure && first_end == 4) { continue; }
      note(wrong_best(directory.path(), train(way, directory.path(), sw::test::fast_faulty_files(), with, 4), false));
    }
  }
  CAPTURE(errno_value, with, operations, wrong.size());
  wrong.resize(std::min<std::size_t>(wrong.size(), 5));
  CHECK(wrong == std::vector<std::string>{});
}

}  // namespace

TEST_CASE("each file operation fails once: at the end, the best state is the best, or an error says that it is lost", "[fault][best]") {
  const auto [errno_value, with] = GENERATE(std::pair(EINTR, policy::stop), std::pair(EIO, policy::stop), std::pair(ENOSPC, policy::retry),
                                            std::pair(EINTR, policy::warn));
  check_all(session_way::blocking, errno_value, with);
}

TEST_CASE("each file operation of an awaited session fails once: the best state is the best, or lost with an error", "[fault][best]") {
  check_all(session_way::awaited, EINTR, policy::stop);
}

TEST_CASE("every file operation fails once, with each error, each policy and both kinds of sessions", "[.every]") {
  const auto way = GENERATE(session_way::blocking, session_way::awaited);
  const int errno_value = GENERATE(EINTR, EBUSY, EIO, ENOSPC, ESTALE);
  const auto with = GENERATE(policy::stop, policy::retry, policy::warn);
  check_all(way, errno_value, with);
}
