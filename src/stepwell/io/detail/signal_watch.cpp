// SPDX-License-Identifier: Apache-2.0
#include "stepwell/io/detail/signal_watch.hpp"

#include "stepwell/base/detail/locks.hpp"
#include "stepwell/base/detail/platform.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/io/detail/signal_receiver.hpp"

#include <pthread.h>
#include <algorithm>
#include <csignal>
#include <cstring>
#include <map>
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
