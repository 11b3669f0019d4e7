// SPDX-License-Identifier: Apache-2.0
#include "stepwell/io/detail/signal_watch.hpp"

#include "stepwell/base/detail/function_ref.hpp"
#include "stepwell/base/detail/locks.hpp"
#include "stepwell/base/detail/platform.hpp"
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
#include <cstring>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <thread>
#include <utility>

namespace stepwell::io {
namespace {

/// A thread that receives signals and calls a function for each.
/// @threads Other threads may call `call` and the destructor. All other functions must be called on the thread of the receiver.
class signal_receiver {
public:
  /// Starts the thread, which calls `on_signal(signal)` for each signal that it receives.
  /// @errors `resource_exhausted` if the system cannot provide a descriptor or a thread.
  [[nodiscard]] static result<std::unique_ptr<signal_receiver>> start(std::function<void(int)> on_signal);
  signal_receiver(const signal_receiver&) = delete;
  signal_receiver& operator=(const signal_receiver&) = delete;
  /// Ends the thread.
  ~signal_receiver();

  /// Calls `action` on the thread of the receiver, and waits until it has returned.
  void call(function_ref<void()> action);

  /// Receives `signal` from now on. Changes its disposition. @errors `invalid_argument` if it is not a signal or cannot be caught.
  result<void> add(int signal);
  /// Ends the reception of `signal`. @pre The disposition is the one that `add` has set.
  void remove(int signal);
  /// Calls `on_signal` for the signals that have arrived.
  void process_arrived();

private:
  struct thread_state;
  explicit signal_receiver(std::unique_ptr<thread_state> state) noexcept;

  std::unique_ptr<thread_state> state_;
};

struct signal_receiver::thread_state {
  explicit thread_state(std::function<void(int)> on_signal_) : on_signal(std::move(on_signal_)) { wait(); }

  void wait() {
    signals.async_wait([this](const boost::system::error_code& failure, int signal) {
      if (failure) { return; }
      on_signal(signal);
      wait();
    });
  }

  std::function<void(int)> on_signal;
  boost::asio::io_context context{1};
  boost::asio::signal_set signals{context};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{context.get_executor()};
  stepwell::detail::owned_thread thread;
};

signal_receiver::signal_receiver(std::unique_ptr<thread_state> state) noexcept : state_(std::move(state)) {}

result<std::unique_ptr<signal_receiver>> signal_receiver::start(std::function<void(int)> on_signal) {
  try {
    auto state = std::make_unique<thread_state>(std::move(on_signal));
    auto thread = stepwell::detail::start_thread("stepwell signal", [all = state.get()] {
      set_thread_name("stepwell signal");
      all->context.run();
    });
    if (!thread) { return std::move(thread).error(); }
    state->thread = *std::move(thread);
    return std::unique_ptr<signal_receiver>(new signal_receiver(std::move(state)));
  } catch (const boost::system::system_error& refused) {  // thrown by Asio if it cannot create an epoll, an eventfd or a pipe
    return status_from_errno(refused.code().value(), "could not open the descriptors needed to watch signals", {});
  }
}

signal_receiver::~signal_receiver() {
  state_->context.stop();
  state_->thread.join();
}

void signal_receiver::call(function_ref<void()> action) {
  std::packaged_task<void()> task(action);
  auto done = task.get_future();
  boost::asio::post(state_->context, [&task] { task(); });
  done.get();
}

result<void> signal_receiver::add(int signal) {
  boost::system::error_code failure;
  state_->signals.add(signal, failure);
  if (failure) {
    return status(errc::invalid_argument, "cannot watch " + signal_name(signal) + " (" + failure.message() + "); choose another signal");
  }
  return {};
}

void signal_receiver::remove(int signal) {
  boost::system::error_code ignored;
  state_->signals.remove(signal, ignored);
}

void signal_receiver::process_arrived() { state_->context.poll(); }

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

void unblock(int signal) noexcept {
  sigset_t one;
  sigemptyset(&one);  // without `::`, because these are macros on macOS
  sigaddset(&one, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
}

}  // namespace

/// All watches, and the dispositions of their signals. All members are accessed on the thread of the receiver only.
class signal_hub {
public:
  /// Creates a hub and starts its thread. @errors `resource_exhausted` if the system cannot provide a descriptor or a thread.
  static result<std::unique_ptr<signal_hub>> start() {
    auto made = std::make_unique<signal_hub>();
    auto receiver = signal_receiver::start([hub = made.get()](int signal) { hub->notify_watches(signal); });
    if (!receiver) { return std::move(receiver).error(); }
    made->receiver_ = *std::move(receiver);
    return made;
  }

  result<void> add(signal_watch& watch) {
    result<void> added;
    receiver_->call([&] {
      for (const int signal : watch.signals_) {
        added = catch_signal(signal);
        if (!added) { return release_unwatched(); }
      }
      watches_.push_back(&watch);
      update_dispositions();
    });
    return added;
  }

  /// Removes a watch. Returns true if it was the last one.
  bool remove(signal_watch& watch) {
    receiver_->call([&] {
      std::erase(watches_, &watch);
      release_unwatched();
      update_dispositions();
    });
    return watches_.empty();
  }

private:
  /// The dispositions of a watched signal.
  struct caught_signal {
    disposition before;   // the disposition before the first watch
    disposition caught;   // the disposition that notifies the watches
    bool is_ours = true;  // true if `caught` is in force
  };

  void notify_watches(int signal) {
    std::vector<signal_watch*> notified;
    for (auto* watch : watches_) {
      if (watch->wants(signal) && !std::exchange(watch->is_notified_, true)) { notified.push_back(watch); }
    }
    update_dispositions();
    if (notified.empty()) { return raise_again(signal); }
    for (auto* watch : notified) { watch->on_signal_(signal); }
  }

  /// Raises a signal again that no watch expects. Either all watches were notified before it arrived, or the last watch was destroyed while
  /// it arrived.
  static void raise_again(int signal) noexcept {
    unblock(signal);
    ::raise(signal);
  }

  result<void> catch_signal(int signal) {
    if (caught_.contains(signal)) { return {}; }
    const auto before = disposition_of(signal);
    if (auto added = receiver_->add(signal); !added) { return added; }
    caught_signal caught{before, disposition_of(signal)};
    caught.caught.sa_flags |= SA_RESTART;
    ::sigaction(signal, &caught.caught, nullptr);
    unblock(signal);  // unblocks the signal on this thread, because all other threads may block it
    caught_.emplace(signal, caught);
    return {};
  }

  /// Restores the dispositions of all signals without a watch.
  void release_unwatched() {
    for (auto entry = caught_.begin(); entry != caught_.end();) {
      if (is_wanted(entry->first, false)) {
        ++entry;
      } else {
        release(entry->first, entry->second);
        entry = caught_.erase(entry);
      }
    }
  }

  void release(int signal, caught_signal& caught) {
    caught.is_ours = false;
    ::sigaction(signal, &caught.before, nullptr);  // later signals do not reach Asio
    receiver_->process_arrived();                  // handles earlier signals while the receiver still has the signal
    ::sigaction(signal, &caught.caught, nullptr);  // restores the disposition that Asio expects
    receiver_->remove(signal);
    // If the program has its own signal set, created after this one, that set must keep receiving the signal. The disposition of that set
    // is then in force, and stays.
    const auto left = disposition_of(signal);
    if (is_default(left) || left.sa_handler == caught.before.sa_handler) { ::sigaction(signal, &caught.before, nullptr); }
  }

  [[nodiscard]] bool is_wanted(int signal, bool unnotified_only) const {
    return std::ranges::any_of(watches_,
                               [&](const auto* watch) { return watch->wants(signal) && !(unnotified_only && watch->is_notified_); });
  }

  /// Sets the default disposition for each signal of which all watches were notified, so that the next such signal takes effect without
  /// the thread of the hub. Sets `caught` for all other signals.
  void update_dispositions() {
    for (auto& [signal, caught] : caught_) {
      const bool be_ours = is_wanted(signal, true);
      if (be_ours == caught.is_ours) { continue; }
      caught.is_ours = be_ours;
      if (be_ours) {
        ::sigaction(signal, &caught.caught, nullptr);
      } else {
        set_default(signal);
      }
    }
  }

  std::vector<signal_watch*> watches_;
  std::map<int, caught_signal> caught_;
  std::unique_ptr<signal_receiver> receiver_;
};

namespace {

/// The hub of the process. It exists while there are watches.
struct hub_of_process {
  stepwell::detail::checked_mutex mutex;
  std::unique_ptr<signal_hub> hub STEPWELL_GUARDED_BY(mutex);
};
hub_of_process& the_hub() {
  static auto* const instance = new hub_of_process;  // never destroyed: a watch may outlive static objects
  return *instance;
}

}  // namespace

signal_watch::signal_watch(std::vector<int> signals, std::function<void(int)> on_signal)
    : signals_(std::move(signals)), on_signal_(std::move(on_signal)) {}

result<std::unique_ptr<signal_watch>> signal_watch::start(std::vector<int> signals, std::function<void(int)> on_signal) {
  auto& process = the_hub();
  const stepwell::detail::mutex_lock lock(process.mutex);
  const bool is_first = process.hub == nullptr;
  if (is_first) {
    auto started = signal_hub::start();
    if (!started) { return std::move(started).error(); }
    process.hub = *std::move(started);
  }
  std::unique_ptr<signal_watch> made(new signal_watch(std::move(signals), std::move(on_signal)));
  if (auto added = process.hub->add(*made); !added) {
    made->on_signal_ = nullptr;  // marks the watch as removed, so that the destructor does nothing
    if (is_first) { process.hub.reset(); }
    return std::move(added).error();
  }
  return made;
}

signal_watch::~signal_watch() {
  if (!on_signal_) { return; }
  auto& process = the_hub();
  const stepwell::detail::mutex_lock lock(process.mutex);
  if (process.hub->remove(*this)) { process.hub.reset(); }
}

bool signal_watch::wants(int signal) const noexcept { return std::ranges::find(signals_, signal) != signals_.end(); }

std::string signal_name(int signal) { return stepwell::detail::platform::signal_name(signal); }

}  // namespace stepwell::io
