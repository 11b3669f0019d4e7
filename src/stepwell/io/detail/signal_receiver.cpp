// SPDX-License-Identifier: Apache-2.0
#include "stepwell/io/detail/signal_receiver.hpp"

#include "stepwell/base/detail/thread.hpp"
#include "stepwell/io/detail/signal_watch.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/system/system_error.hpp>

#include <future>
#include <thread>
#include <utility>

namespace stepwell::io {

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

}  // namespace stepwell::io
