// SPDX-License-Identifier: Apache-2.0
//
// A thousand small sessions in one event loop, each with its own checkpoints. All of them end normally, are abandoned
// at any moment, or are cancelled, and training can continue from the checkpoints on disk.
#include "stress/rounds.hpp"
#include "support/temporary_directory.hpp"
#include "support/toy_model.hpp"

#include <stepwell/async.hpp>
#include <stepwell/checkpoint/detail/unsynced_file_system.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <sys/resource.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace {

namespace sw = stepwell;
namespace asio = boost::asio;
using sw::test::counting_model;
using session_type =
    decltype(sw::monitored_training_session(sw::defer_start, std::declval<counting_model&>(), {}, std::declval<sw::stop_at_step_hook>()));

constexpr int last_step = 20;

struct one {
  counting_model model;
  std::optional<session_type> session;
  asio::cancellation_signal cancel;
  bool has_ended = false;
  std::exception_ptr failure;
};

asio::awaitable<void> train(one& self) {
  co_await self.session->async_start();
  for (;;) {
    const auto step = co_await self.session->async_next();
    if (!step) { break; }
  }
  co_await self.session->async_close();
}

void require(bool holds, const char* promise) {
  if (!holds) { throw std::runtime_error(promise); }
}

session_type make(counting_model& model, const std::string& directory, const std::shared_ptr<sw::io::file_system>& files) {
  sw::training_options options{.checkpoint_dir = directory,
                               .saves = {.save_steps = 5, .saver = {.file_system = files}},
                               .summaries = {.save_steps = sw::none},
                               .step_counter = {.every_n_steps = sw::none}};
  return sw::monitored_training_session(sw::defer_start, model, options, sw::stop_at_step_hook{{.last_step = last_step}});
}

void run_round(std::uint64_t seed, std::uint64_t number) {
  sw::test::temporary_directory directory;
  const auto files = std::make_shared<sw::detail::unsynced_file_system>(sw::io::posix_file_system());
  const auto count = sw::test::stress_setting("STEPWELL_STRESS_SESSIONS", 1000);
  std::list<one> all;
  const bool is_cut_short = number % 3 == 1;
  const bool is_cancelled = number % 3 == 2;
  {
    asio::io_context loop;
    for (std::uint64_t i = 0; i < count; ++i) {
      auto& self = all.emplace_back();
      self.session.emplace(make(self.model, directory.path() + "/" + std::to_string(i), files));
      asio::co_spawn(loop, train(self), asio::bind_cancellation_slot(self.cancel.slot(), [&self](const std::exception_ptr& how) {
                       self.has_ended = true;
                       self.failure = how;
                     }));
    }
    if (is_cut_short || is_cancelled) {
      const auto handlers = sw::random_bits(seed, number, 0) % (40 * count);
      for (std::uint64_t i = 0; i < handlers && loop.run_one() > 0; ++i) {}
    }
    if (is_cancelled) {
      for (auto& self : all) {
        if (!self.has_ended) { self.cancel.emit(asio::cancellation_type::terminal); }
      }
    }
    if (!is_cut_short) { loop.run(); }
  }
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  std::printf("round %llu: %llu sessions, at most %ld MiB resident\n", static_cast<unsigned long long>(number),
              static_cast<unsigned long long>(count), used.ru_maxrss / 1024);
  if (is_cut_short) { return; }
  for (auto& self : all) {
    require(self.has_ended, "a session did not end");
    if (!is_cancelled) {
      if (self.failure) { std::rethrow_exception(self.failure); }
      require(self.model.count == last_step, "a session did not train to its end");
    }
  }
}

}  // namespace

int main() {
  sw::set_log_sink([](sw::log_level, std::string_view) {});
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;  // each session holds two descriptors
  setrlimit(RLIMIT_NOFILE, &files);
  return sw::test::run_rounds(run_round);
}
