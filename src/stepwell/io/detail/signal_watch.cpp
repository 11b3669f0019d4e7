// SPDX-License-Identifier: Apache-2.0
#include "stepwell/io/detail/signal_watch.hpp"

#include "stepwell/base/detail/thread.hpp"
#include "stepwell/base/error.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/system/system_error.hpp>

#include <pthread.h>
#include <algorithm>
#include <csignal>
#include <future>
#include <map>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>

namespace stepwell::io {
namespace {

using disposition = struct sigaction;

disposition disposition_of(int signal) noexcept {
  disposition now{};
  ::sigaction(signal, nullptr, &now);
  return now;
}

void set_default(int signal) noexcept {
  disposition plain{};
  plain.sa_handler = SIG_DFL;
  ::sigaction(signal, &plain, nullptr);
}

bool is_default(const disposition& one) noexcept { return (one.sa_flags & SA_SIGINFO) == 0 && one.sa_handler == SIG_DFL; }

void let_through(int signal) noexcept {
  sigset_t one;
  ::sigemptyset(&one);
  ::sigaddset(&one, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
}

}  // namespace

/// The thread that receives the signals for all watches. All members are accessed on that thread only.
class signal_hub {
public:
  /// Creates a hub and starts its thread. @errors `resource_exhausted` if the system cannot provide a descriptor or a thread.
  static result<std::unique_ptr<signal_hub>> start() {
    try {
      std::unique_ptr<signal_hub> made(new signal_hub());
      auto thread = stepwell::detail::start_thread("stepwell signal", [hub = made.get()] {
        set_thread_name("stepwell signal");
        hub->context_.run();
      });
      if (!thread) { return std::move(thread).error(); }
      made->thread_ = *std::move(thread);
      return made;
    } catch (const boost::system::system_error& refused) {  // thrown by Asio if it cannot create an epoll, an eventfd or a pipe
      return status_from_errno(refused.code().value(), "could not open the descriptors needed to watch signals", {});
    }
  }
  signal_hub(const signal_hub&) = delete;
  signal_hub& operator=(const signal_hub&) = delete;
  /// Ends the thread. @pre There are no watches.
  ~signal_hub() {
    context_.stop();
    if (thread_.joinable()) { thread_.join(); }
  }

  result<void> add(signal_watch& watch) {
    return on_thread([&]() -> result<void> {
      for (const int signal : watch.signals_) {
        if (auto held = hold(signal); !held) {
          let_go();
          return held;
        }
      }
      watches_.push_back(&watch);
      keep_dispositions();
      return {};
    });
  }

  /// Removes a watch. Returns true if it was the last one.
  bool remove(signal_watch& watch) {
    return on_thread([&] {
      std::erase(watches_, &watch);
      let_go();
      keep_dispositions();
      return watches_.empty();
    });
  }

private:
  /// @errors `boost::system::system_error` if Asio cannot create its descriptors.
  signal_hub() : set_(context_), work_(context_.get_executor()) { wait(); }

  /// The dispositions of a watched signal.
  struct held_signal {
    disposition before;   // the disposition before the first watch
    disposition caught;   // the disposition that notifies the watches
    bool is_ours = true;  // true if `caught` is in force
  };

  template<class Action>
  std::invoke_result_t<Action> on_thread(Action action) {
    std::packaged_task<std::invoke_result_t<Action>()> task(std::move(action));
    auto done = task.get_future();
    boost::asio::post(context_, [&task] { task(); });
    return done.get();
  }

  void wait() {
    set_.async_wait([this](const boost::system::error_code& failure, int signal) {
      if (failure) { return; }
      hear(signal);
      wait();
    });
  }

  void hear(int signal) {
    std::vector<signal_watch*> told;
    for (auto* watch : watches_) {
      if (watch->wants(signal) && !std::exchange(watch->is_told_, true)) { told.push_back(watch); }
    }
    keep_dispositions();
    if (told.empty()) { return hear_again(signal); }
    for (auto* watch : told) { watch->tell_(signal); }
  }

  /// Raises a signal again that no watch expects. Either all watches were notified before it arrived, or the last watch was destroyed while
  /// it arrived.
  static void hear_again(int signal) noexcept {
    let_through(signal);
    ::raise(signal);
  }

  result<void> hold(int signal) {
    if (held_.contains(signal)) { return {}; }
    const auto before = disposition_of(signal);
    boost::system::error_code failure;
    set_.add(signal, failure);
    if (failure) {
      return status(errc::invalid_argument, "cannot watch " + signal_name(signal) + " (" + failure.message() + "); choose another signal");
    }
    held_signal held{before, disposition_of(signal)};
    held.caught.sa_flags |= SA_RESTART;
    ::sigaction(signal, &held.caught, nullptr);
    let_through(signal);  // unblocks the signal on this thread, because all other threads may block it
    held_.emplace(signal, held);
    return {};
  }

  /// Restores the dispositions of all signals without a watch.
  void let_go() {
    for (auto entry = held_.begin(); entry != held_.end();) {
      if (is_wanted(entry->first, false)) {
        ++entry;
      } else {
        give_back(entry->first, entry->second);
        entry = held_.erase(entry);
      }
    }
  }

  void give_back(int signal, held_signal& held) {
    held.is_ours = false;
    ::sigaction(signal, &held.before, nullptr);  // later signals do not reach Asio
    context_.poll();                             // handles earlier signals while the set still has the signal
    ::sigaction(signal, &held.caught, nullptr);  // restores the disposition that Asio expects
    boost::system::error_code ignored;
    set_.remove(signal, ignored);
    // If the program has its own signal set, created after this one, that set must keep receiving the signal. The disposition of that set
    // is then in force, and stays.
    const auto left = disposition_of(signal);
    if (is_default(left) || left.sa_handler == held.before.sa_handler) { ::sigaction(signal, &held.before, nullptr); }
  }

  [[nodiscard]] bool is_wanted(int signal, bool untold_only) const {
    return std::ranges::any_of(watches_, [&](const auto* watch) { return watch->wants(signal) && !(untold_only && watch->is_told_); });
  }

  /// Sets the default disposition for each signal of which all watches were notified, so that the next such signal takes effect without
  /// the thread of the hub. Sets `caught` for all other signals.
  void keep_dispositions() {
    for (auto& [signal, held] : held_) {
      const bool be_ours = is_wanted(signal, true);
      if (be_ours == held.is_ours) { continue; }
      held.is_ours = be_ours;
      if (be_ours) {
        ::sigaction(signal, &held.caught, nullptr);
      } else {
        set_default(signal);
      }
    }
  }

  boost::asio::io_context context_{1};
  boost::asio::signal_set set_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::vector<signal_watch*> watches_;
  std::map<int, held_signal> held_;
  std::thread thread_;
};

namespace {

/// The hub of the process. It exists while there are watches.
struct hub_of_process {
  std::mutex mutex;
  std::unique_ptr<signal_hub> hub;
};
hub_of_process& the_hub() {
  static auto* const instance = new hub_of_process;  // never destroyed: a watch may outlive static objects
  return *instance;
}

}  // namespace

signal_watch::signal_watch(std::vector<int> signals, std::function<void(int)> tell)
    : signals_(std::move(signals)), tell_(std::move(tell)) {}

result<std::unique_ptr<signal_watch>> signal_watch::start(std::vector<int> signals, std::function<void(int)> tell) {
  auto& process = the_hub();
  const std::lock_guard lock(process.mutex);
  const bool is_first = process.hub == nullptr;
  if (is_first) {
    auto started = signal_hub::start();
    if (!started) { return std::move(started).error(); }
    process.hub = *std::move(started);
  }
  std::unique_ptr<signal_watch> made(new signal_watch(std::move(signals), std::move(tell)));
  if (auto added = process.hub->add(*made); !added) {
    made->tell_ = nullptr;  // marks the watch as removed, so that the destructor does nothing
    if (is_first) { process.hub.reset(); }
    return std::move(added).error();
  }
  return made;
}

signal_watch::~signal_watch() {
  if (!tell_) { return; }
  auto& process = the_hub();
  const std::lock_guard lock(process.mutex);
  if (process.hub->remove(*this)) { process.hub.reset(); }
}

bool signal_watch::wants(int signal) const noexcept { return std::ranges::find(signals_, signal) != signals_.end(); }

std::string signal_name(int signal) {
  if (const char* name = ::sigabbrev_np(signal)) { return std::string("SIG") + name; }
  return "signal " + std::to_string(signal);
}

}  // namespace stepwell::io
