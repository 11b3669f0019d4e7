// SPDX-License-Identifier: Apache-2.0
//
// A type-erased session, for any model and any hooks: a class can store it as a member, and a function that is not a template can run it.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/coro/generator.hpp"
#include "stepwell/data/source.hpp"
#include "stepwell/protocol/session_metrics.hpp"
#include "stepwell/protocol/session_signals.hpp"
#include "stepwell/session/training_session.hpp"

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

namespace detail {

/// Returns a `std::type_identity` of the type of the parameter through which a step receives a batch of `Source`. This type is a reference.
template<class Source>
auto batch_passed_by() {
  if constexpr (data::batch_source<Source>) {
    return std::type_identity<decltype(*std::declval<Source&>().peek())>{};
  } else {
    return std::type_identity<decltype(*std::declval<data::range_source<Source&>&>().peek())>{};
  }
}
template<class Source>
using batch_passed = typename decltype(batch_passed_by<Source>())::type;

}  // namespace detail

/// A monitored or singular session whose steps take batches of `Source` and have results of type `Result`.
template<class Session, class Result, class Source>
concept erasable_session = steps_from<Session, Source> && std::same_as<typename Session::result_type, Result> &&
                           requires(Session& session, const Session& constant, Source& source, std::exception_ptr failure) {
                             { session.steps(source) } -> std::same_as<generator<const step_result<Result>&>>;
                             { constant.metrics() } -> std::same_as<session_metrics>;
                             { constant.watched() } -> std::same_as<std::vector<history_value>>;
                             { constant.is_closed() } -> std::same_as<bool>;
                             { constant.came_from_hook(failure) } -> std::same_as<bool>;
                             session.abandon(failure);
                           };

/// A type-erased session. Its steps take batches of `Source` and have results of type `Result`: `any_session<float,
/// my_source>(std::move(session))`. It satisfies the concept `training_session`, and it can be passed to `with`. Each member function calls
/// the function of the same name of the wrapped session.
/// @lifetime The rules of the wrapped session apply: for example, the model must outlive this object, too. An `any_session` can be moved,
/// also during a loop over `steps`. Each function of a moved-from object throws `failed_precondition_error`, except `abandon` and
/// `came_from_hook`, which do nothing. An assignment destroys the session that the object held before.
/// @cost One virtual call for each call of a member function. The steps of the range that `steps` returns need no further virtual calls.
template<class Result, class Source>
class any_session {
public:
  using result_type = Result;
  using step_type = step_result<Result>;
  using source_type = Source;
  /// The type of the parameter through which a step receives a batch: an lvalue reference. If `Source` is a source, it is the type of
  /// `*source.peek()`. If `Source` is a range, it is a reference to an element.
  using batch_type = detail::batch_passed<Source>;

  template<class Session>
    requires(!std::same_as<Session, any_session> && erasable_session<Session, Result, Source>)
  explicit any_session(Session session) : any_session(std::make_unique<Session>(std::move(session))) {}
  /// @errors `invalid_argument_error` if `session` is null.
  template<class Session>
    requires erasable_session<Session, Result, Source>
  explicit any_session(std::unique_ptr<Session> session) {
    if (!session) { throw invalid_argument_error("any_session: the pointer to the session is null"); }
    session_ = std::make_unique<held<Session>>(std::move(session));
  }

  /// Returns true if the loop should end. @errors If the wrapped session is a singular session: the failure that a thread of the session
  /// reported. @threads Any.
  [[nodiscard]] bool should_stop() const { return held_session().should_stop(); }
  /// Requests that the loop ends after the current step. @threads Any.
  void request_stop(std::string why = "the caller asked to stop") { held_session().request_stop(std::move(why)); }
  /// Returns the reason why the loop ended. If the loop has not ended, and no stop was requested, the cause is `none`. @threads Any.
  [[nodiscard]] stepwell::stop_reason stop_reason() const { return held_session().stop_reason(); }
  [[nodiscard]] std::int64_t global_step() const { return held_session().global_step(); }
  [[nodiscard]] session_metrics metrics() const { return held_session().metrics(); }
  /// Like `monitored_session::watched`. @threads Any.
  [[nodiscard]] std::vector<history_value> watched() const { return held_session().watched(); }

  /// Returns the steps over the batches of `source`.
  /// @lifetime `source` must outlive the range. The session must outlive the range, too.
  [[nodiscard]] generator<const step_type&> steps(Source& source) & { return held_session().steps(source); }
  /// Does all steps over the batches of `source`. Returns the last step, the number of steps, the reason why the loop ended,
  /// and the values that hooks measured.
  loop_result<Result> run_all(Source& source) { return held_session().run_all(source); }
  /// Does one step with the next batch of `source`; see `monitored_session::next`. `Source` must be a source, not a range.
  [[nodiscard]] std::optional<step_type> next(Source& source)
    requires data::batch_source<Source>
  {
    return held_session().next(source);
  }
  /// Does one step with `batch`. Does not use or advance a source.
  Result run(batch_type batch) { return held_session().run(batch); }
  /// Like `run(batch)`, for a temporary batch. This overload exists only if a step receives a batch by non-const reference.
  Result run(std::remove_cvref_t<batch_type>&& batch)
    requires(!std::is_const_v<std::remove_reference_t<batch_type>>)
  {
    return held_session().run(batch);
  }

  void close() { held_session().close(); }
  [[nodiscard]] bool is_closed() const { return held_session().is_closed(); }
  void abandon(std::exception_ptr failure) noexcept {
    if (session_) { session_->abandon(std::move(failure)); }
  }
  [[nodiscard]] bool came_from_hook(const std::exception_ptr& failure) const { return session_ && session_->came_from_hook(failure); }

private:
  static_assert(std::is_lvalue_reference_v<batch_type>);

  struct erased {
    virtual ~erased() = default;
    [[nodiscard]] virtual bool should_stop() const = 0;
    virtual void request_stop(std::string why) = 0;
    [[nodiscard]] virtual stepwell::stop_reason stop_reason() const = 0;
    [[nodiscard]] virtual std::int64_t global_step() const = 0;
    [[nodiscard]] virtual session_metrics metrics() const = 0;
    [[nodiscard]] virtual std::vector<history_value> watched() const = 0;
    [[nodiscard]] virtual generator<const step_type&> steps(Source& source) = 0;
    virtual std::optional<step_type> next(Source& source) = 0;
    virtual loop_result<Result> run_all(Source& source) = 0;
    virtual Result run(batch_type batch) = 0;
    virtual void close() = 0;
    [[nodiscard]] virtual bool is_closed() const = 0;
    virtual void abandon(std::exception_ptr failure) noexcept = 0;
    [[nodiscard]] virtual bool came_from_hook(const std::exception_ptr& failure) const = 0;
  };

  template<class Session>
  struct held final : erased {
    explicit held(std::unique_ptr<Session> given) : session(std::move(given)) {}

    bool should_stop() const override { return session->should_stop(); }
    void request_stop(std::string why) override { session->request_stop(std::move(why)); }
    stepwell::stop_reason stop_reason() const override { return session->stop_reason(); }
    std::int64_t global_step() const override { return session->global_step(); }
    session_metrics metrics() const override { return session->metrics(); }
    std::vector<history_value> watched() const override { return session->watched(); }
    generator<const step_type&> steps(Source& source) override { return session->steps(source); }
    std::optional<step_type> next([[maybe_unused]] Source& source) override {
      if constexpr (data::batch_source<Source>) {
        return session->next(source);
      } else {
        return std::nullopt;  // not called: `next` of `any_session` needs a source
      }
    }
    loop_result<Result> run_all(Source& source) override { return session->run_all(source); }
    Result run(batch_type batch) override { return session->run(batch); }
    void close() override { session->close(); }
    bool is_closed() const override { return session->is_closed(); }
    void abandon(std::exception_ptr failure) noexcept override { session->abandon(std::move(failure)); }
    bool came_from_hook(const std::exception_ptr& failure) const override { return session->came_from_hook(failure); }

    std::unique_ptr<Session> session;
  };

  /// @errors `failed_precondition_error` if this object was moved from.
  [[nodiscard]] erased& held_session() const {
    if (!session_) [[unlikely]] { detail::throw_moved_from(); }
    return *session_;
  }

  std::unique_ptr<erased> session_;
};

}  // namespace stepwell
