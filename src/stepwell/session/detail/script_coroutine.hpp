// SPDX-License-Identifier: Apache-2.0
//
// A script: a coroutine that yields actions one at a time and receives the result of each. A driver executes the actions.
// @see docs/design/session-protocol.md
#pragma once

#include "stepwell/base/clock.hpp"

#include <array>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <utility>

namespace stepwell::detail {

class step_attempt;

/// The units of work of a session. A driver calls each as a whole: at once, or on another thread.
enum class piece : std::uint8_t {
  find_checkpoint,  ///< Looks for the checkpoint to start from.
  begin_hooks,      ///< Calls `begin` of the hooks.
  make_raw,         ///< Makes and restores the raw session, and starts its threads.
  notify_created,   ///< Calls `after_create_session` of the hooks.
  finish_creation,  ///< Processes the requests that hooks made when they were notified.
  creation_failed,  ///< Reports a failed creation. Throws it unless it is transient.
  leave_failed,     ///< Joins threads and drains saves after a failure. Plans the next attempt.
  attach_source,    ///< Registers the source of a loop, and seeks it.
  step,             ///< Does one run.
  boundary,         ///< Processes requests after a step.
  drain,            ///< Waits for saves in flight.
  request_save,     ///< Calls `save_now` of the hooks that save.
  leave_group,      ///< Ends the training of all processes of the group after this step.
  end_hooks,        ///< Calls `end` of the hooks.
  finish_close,     ///< Makes the last save, joins threads, and waits for I/O.
  shut_down,        ///< Stops threads without calling hooks. Pending I/O continues.
};

/// The next action of a script.
struct action {
  enum class kind : std::uint8_t {
    work,     ///< Call `what`.
    wait,     ///< Wait until `until`, or until a stop is requested.
    yield,    ///< Let others run on this executor, if the time slice is used up.
    observe,  ///< Throw `cancelled` into the script if cancellation was requested.
  };
  kind type = kind::observe;
  piece what = piece::step;
  clock::time_point until = {};
  step_attempt* attempt = nullptr;  ///< For `attach_source` and `step`.
};

/// The exception that a driver throws into a script when it observes a cancellation. It is not an error: the phase of the session is
/// unchanged.
struct cancelled {};

/// Memory for the coroutine frames of the scripts of one session. Frames are nested, so a stack of fixed size suffices. A frame that does
/// not fit is allocated on the heap.
/// @threads One at a time.
class frame_arena {
public:
  frame_arena() = default;
  frame_arena(const frame_arena&) = delete;
  frame_arena& operator=(const frame_arena&) = delete;

  [[nodiscard]] void* allocate(std::size_t bytes);
  void deallocate(void* frame, std::size_t bytes) noexcept;

private:
  alignas(std::max_align_t) std::array<std::byte, 3072> memory_;
  std::size_t used_ = 0;
};

/// The base of an object whose member functions are scripts.
class script_frames {
public:
  [[nodiscard]] frame_arena& frames() noexcept { return frames_; }

private:
  frame_arena frames_;
};

/// A coroutine that yields actions. It is created suspended. Inside it, `co_await` an action or another script.
///
///     script s = protocol.start();
///     while (s.resume(failure)) { failure = execute(s.pending()); }
///
/// It is a member function of `protocol`, a `script_frames`, without a parameter or with a `step_attempt`.
/// @lifetime The protocol must outlive the script.
class script {
public:
  class promise_type;
  using handle_type = std::coroutine_handle<promise_type>;

  script(script&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  script& operator=(script&&) = delete;
  ~script() {
    if (handle_) { handle_.destroy(); }
  }

  /// Runs the script up to its next action. `result` is the exception of the previous action, or null. Returns false at the end.
  /// @errors Exceptions of the script, which has then ended.
  bool resume(std::exception_ptr result = nullptr);
  /// Returns the action to execute. @pre `resume` has returned true.
  [[nodiscard]] const action& pending() const noexcept;

private:
  explicit script(handle_type handle) noexcept : handle_(handle) {}
  handle_type handle_;
};

class script::promise_type {
  /// State shared by a script and the scripts that it awaits.
  struct stack {
    std::coroutine_handle<> top;
    action pending;
    std::exception_ptr result;
  };
  class action_awaiter {
  public:
    explicit action_awaiter(stack& all) noexcept : all_(all) {}
    action_awaiter(const action_awaiter&) = delete;
    action_awaiter& operator=(const action_awaiter&) = delete;
    [[nodiscard]] static bool await_ready() noexcept { return false; }
    static void await_suspend(std::coroutine_handle<> /*self*/) noexcept {}
    void await_resume() const {
      if (auto failure = std::exchange(all_.result, nullptr)) { std::rethrow_exception(std::move(failure)); }
    }

  private:
    stack& all_;
  };
  class child_awaiter {
  public:
    explicit child_awaiter(script child) noexcept : child_(std::move(child)) {}
    child_awaiter(const child_awaiter&) = delete;
    child_awaiter& operator=(const child_awaiter&) = delete;
    [[nodiscard]] static bool await_ready() noexcept { return false; }
    std::coroutine_handle<> await_suspend(handle_type parent) noexcept;
    void await_resume() const;

  private:
    script child_;
  };
  struct at_end {
    [[nodiscard]] static bool await_ready() noexcept { return false; }
    static std::coroutine_handle<> await_suspend(handle_type self) noexcept;
    static void await_resume() noexcept {}
  };

public:
  promise_type() noexcept { own_.top = handle_type::from_promise(*this); }
  promise_type(const promise_type&) = delete;
  promise_type& operator=(const promise_type&) = delete;
  ~promise_type() = default;

  // Not a template: g++ 14 takes a template for a mismatch with `operator delete`.
  // NOLINTBEGIN(misc-new-delete-overloads): the compiler calls this `operator delete` for the frames that both allocate
  static void* operator new(std::size_t bytes, script_frames& host);
  static void* operator new(std::size_t bytes, script_frames& host, step_attempt& attempt);
  static void operator delete(void* frame, std::size_t bytes) noexcept;
  // NOLINTEND(misc-new-delete-overloads)

  script get_return_object() noexcept { return script(handle_type::from_promise(*this)); }
  static std::suspend_always initial_suspend() noexcept { return {}; }
  static at_end final_suspend() noexcept { return {}; }
  void return_void() noexcept {}
  void unhandled_exception() noexcept { failure_ = std::current_exception(); }

  action_awaiter await_transform(const action& next) noexcept {
    all_->pending = next;
    return action_awaiter(*all_);
  }
  child_awaiter await_transform(script child) noexcept { return child_awaiter(std::move(child)); }

private:
  friend class script;

  stack own_;
  stack* all_ = &own_;
  handle_type parent_;
  std::exception_ptr failure_;
};

}  // namespace stepwell::detail
