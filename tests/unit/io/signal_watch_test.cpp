// SPDX-License-Identifier: Apache-2.0
//
// Tests of signal watches. SIGURG, SIGCHLD and SIGWINCH, which do nothing by default, take the place of signals that
// end a process. tests/fault tests those in separate processes.
#include "support/catch.hpp"

#include <stepwell/io/detail/signal_watch.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <array>
#include <csignal>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace sw = stepwell;
using sw::io::signal_watch;

namespace {

using handler = void (*)(int);

handler handler_of(int signal) {
  struct sigaction now{};
  ::sigaction(signal, nullptr, &now);
  return now.sa_handler;
}

volatile std::sig_atomic_t heard_by_program = 0;
void program_handler(int) { heard_by_program = heard_by_program + 1; }

/// A guard that installs the program's own handler for a signal.
class arranged {
public:
  arranged(int signal, handler how) : signal_(signal) {
    struct sigaction mine{};
    mine.sa_handler = how;
    ::sigaction(signal, &mine, &before_);
  }
  ~arranged() { ::sigaction(signal_, &before_, nullptr); }

private:
  int signal_;
  struct sigaction before_{};
};

/// A watch, and the signal it reported.
struct listener {
  std::promise<int> told;
  std::future<int> signal = told.get_future();
  std::unique_ptr<signal_watch> watch;

  explicit listener(std::vector<int> signals) {
    watch = value_or_throw(signal_watch::start(std::move(signals), [this](int came) { told.set_value(came); }));
  }
  template<class T>
  static T value_or_throw(sw::result<T> outcome) {
    REQUIRE(outcome);
    return std::move(outcome).value();
  }
};

}  // namespace

TEST_CASE("a watch reports the first of its signals", "[io][signals]") {
  listener one({SIGURG, SIGWINCH});
  ::raise(SIGWINCH);
  CHECK(one.signal.get() == SIGWINCH);
}

TEST_CASE("all watches of a signal are notified, and no others", "[io][signals]") {
  listener one({SIGURG});
  listener two({SIGURG, SIGCHLD});
  listener other({SIGCHLD});
  ::raise(SIGURG);
  CHECK(one.signal.get() == SIGURG);
  CHECK(two.signal.get() == SIGURG);
  ::raise(SIGCHLD);
  CHECK(other.signal.get() == SIGCHLD);  // `two` has been notified before: a second call would break its promise
}

TEST_CASE("a signal that was reported to all its watches has its default disposition until another watch begins", "[io][signals]") {
  listener one({SIGURG, SIGWINCH});
  CHECK(handler_of(SIGURG) != SIG_DFL);
  ::raise(SIGURG);
  CHECK(one.signal.get() == SIGURG);
  CHECK(handler_of(SIGURG) == SIG_DFL);
  CHECK(handler_of(SIGWINCH) == SIG_DFL);
  listener later({SIGURG});
  CHECK(handler_of(SIGURG) != SIG_DFL);
  CHECK(handler_of(SIGWINCH) == SIG_DFL);
  ::raise(SIGURG);
  CHECK(later.signal.get() == SIGURG);
  ::raise(SIGURG);  // no effect by default
}

TEST_CASE("the program's own handler of a signal is restored when the last watch is destroyed", "[io][signals]") {
  const handler how = GENERATE(SIG_DFL, SIG_IGN, handler(program_handler));
  const arranged mine(SIGURG, how);
  const bool is_told = GENERATE(false, true);
  {
    listener one({SIGURG});
    {
      listener two({SIGURG});
      CHECK(handler_of(SIGURG) != how);
      if (is_told) {
        ::raise(SIGURG);
        one.signal.wait();
        two.signal.wait();
      }
    }
    if (!is_told) { CHECK(handler_of(SIGURG) != how); }
  }
  CHECK(handler_of(SIGURG) == how);
  const auto before = heard_by_program;
  ::raise(SIGURG);
  CHECK(heard_by_program == before + (how == handler(program_handler) ? 1 : 0));
}

TEST_CASE("each signal reaches the watch or the program", "[io][signals]") {
  const arranged mine(SIGURG, program_handler);
  for (int round = 0; round < 100; ++round) {
    const auto before = heard_by_program;
    bool was_told = false;
    {
      const auto watch = listener::value_or_throw(signal_watch::start({SIGURG}, [&](int) { was_told = true; }));
      ::raise(SIGURG);
    }
    CHECK((was_told ? 1 : 0) + (heard_by_program - before) == 1);
  }
}

TEST_CASE("a number that is no signal, or cannot be caught, is refused, and nothing is changed", "[io][signals]") {
  const int bad = GENERATE(SIGKILL, -1, 1000);
  const auto refused = signal_watch::start({SIGURG, bad}, [](int) {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == sw::errc::invalid_argument);
  CHECK(handler_of(SIGURG) == SIG_DFL);
  listener after({SIGURG});
  ::raise(SIGURG);
  CHECK(after.signal.get() == SIGURG);
}

TEST_CASE("a program's own signal set receives its signals before and after a watch", "[io][signals]") {
  const bool is_before = GENERATE(true, false);
  boost::asio::io_context context;
  boost::asio::signal_set own(context);
  if (is_before) { own.add(SIGURG); }
  {
    listener one({SIGURG});
    if (!is_before) { own.add(SIGURG); }
    ::raise(SIGURG);
    CHECK(one.signal.get() == SIGURG);
  }
  for (int signals = 0; signals < 2; ++signals) {
    int came = 0;
    own.async_wait([&](const boost::system::error_code&, int signal) { came = signal; });
    if (signals == 1) { ::raise(SIGURG); }
    context.restart();
    while (came == 0) { context.run_one(); }  // Asio also runs an internal handler
    CHECK(came == SIGURG);
  }
}

TEST_CASE("signals have names", "[io][signals]") {
  CHECK(sw::io::signal_name(SIGTERM) == "SIGTERM");
  CHECK(sw::io::signal_name(1000) == "signal 1000");
}
