// SPDX-License-Identifier: Apache-2.0
//
// A type-erased asynchronous session: a class can store it as a member, and a coroutine that is not a template can use it.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/data/source.hpp"
#include "stepwell/session/async_session.hpp"

#include <boost/asio/awaitable.hpp>

#include <concepts>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell {

/// A type-erased asynchronous session. Its steps take batches of `Source` and have results of type `Result`: `any_async_session<float,
/// my_source>(std::move(session))`. It can be passed to `async_with`. Each member function calls the function of the same name of the
/// wrapped session. Errors, cancellation and lifetimes are those of the called function. The `async_` functions return awaitables.
/// @lifetime The rules of the wrapped session apply: for example, the model must outlive this object, too. Each function of a
/// moved-from object throws `failed_precondition_error` at once, except `came_from_hook`, which returns false. An assignment destroys the
/// session that the object held before.
/// @cost One virtual call for each call of a member function.
template<class Result, class Source>
class any_async_session : public common_session {
public:
  using result_type = Result;
  using step_type = step_result<Result>;
  using source_type = Source;
  /// The type of `*source.peek()`, an lvalue reference.
  using batch_type = decltype(*std::declval<Source&>().peek());
  using batch_value = std::remove_cvref_t<batch_type>;
  template<class T>
  using awaitable = boost::asio::awaitable<T>;

  template<class Session>
    requires(!std::same_as<Session, any_async_session> && requires { typename Session::result_type; })
  explicit any_async_session(Session session) : any_async_session(std::make_unique<Session>(std::move(session))) {}
  /// @errors `invalid_argument_error` if `session` is null.
  template<class Session>
  explicit any_async_session(std::unique_ptr<Session> session) : common_session(session ? session->gate() : detail::moved_from_gate()) {
    static_assert(std::same_as<typename Session::result_type, Result>,
                  "stepwell: any_async_session<Result, Source>: Result is not the type of the result of the session's steps");
    if (!session) { throw invalid_argument_error("any_async_session: the pointer to the session is null"); }
    session_ = std::make_unique<held<Session>>(std::move(session));
  }

  awaitable<void> async_start() { return held_session().start(); }
  awaitable<std::optional<step_type>> async_next(Source& source) { return held_session().next(source); }
  awaitable<loop_result<Result>> async_run_all(Source& source) { return held_session().run_all(source); }
  awaitable<Result> async_run(batch_type batch) { return held_session().run(batch); }
  /// Moves a temporary batch into the operation.
  awaitable<Result> async_run(batch_value&& batch)
    requires std::move_constructible<batch_value>
  {
    return run_owned(held_session(), std::move(batch));
  }
  awaitable<std::int64_t> async_checkpoint_now() { return held_session().checkpoint_now(); }
  awaitable<void> async_close() { return held_session().close(); }
  awaitable<void> async_abandon(std::exception_ptr failure = nullptr) { return held_session().abandon(std::move(failure)); }

private:
  struct erased {
    virtual ~erased() = default;
    virtual awaitable<void> start() = 0;
    virtual awaitable<std::optional<step_type>> next(Source& source) = 0;
    virtual awaitable<loop_result<Result>> run_all(Source& source) = 0;
    virtual awaitable<Result> run(batch_type batch) = 0;
    virtual awaitable<std::int64_t> checkpoint_now() = 0;
    virtual awaitable<void> close() = 0;
    virtual awaitable<void> abandon(std::exception_ptr failure) = 0;
  };

  template<class Session>
  struct held final : erased {
    explicit held(std::unique_ptr<Session> given) : session(std::move(given)) {}

    awaitable<void> start() override { return session->async_start(); }
    awaitable<std::optional<step_type>> next(Source& source) override { return session->async_next(source); }
    awaitable<loop_result<Result>> run_all(Source& source) override { return session->async_run_all(source); }
    awaitable<Result> run(batch_type batch) override { return session->async_run(batch); }
    awaitable<std::int64_t> checkpoint_now() override { return session->async_checkpoint_now(); }
    awaitable<void> close() override { return session->async_close(); }
    awaitable<void> abandon(std::exception_ptr failure) override { return session->async_abandon(std::move(failure)); }

    std::unique_ptr<Session> session;
  };

  static awaitable<Result> run_owned(erased& session, batch_value batch) { co_return co_await session.run(batch); }

  /// @errors `failed_precondition_error` if this object was moved from.
  [[nodiscard]] erased& held_session() const {
    if (!session_) [[unlikely]] { detail::throw_moved_from(); }
    return *session_;
  }

  std::unique_ptr<erased> session_;
};

}  // namespace stepwell
