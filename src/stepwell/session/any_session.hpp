// SPDX-License-Identifier: Apache-2.0
//
// A type-erased session, for any model and any hooks: a class can store it as a member, and a function that is not a template can run it.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/coro/generator.hpp"
#include "stepwell/data/source.hpp"
#include "stepwell/session/common_session.hpp"
#include "stepwell/session/detail/blocking_driver.hpp"
#include "stepwell/session/training_session.hpp"

#include <concepts>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

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
concept erasable_session = std::derived_from<Session, blocking_session> && steps_from<Session, Source> &&
                           std::same_as<typename Session::result_type, Result> && requires { typename Session::raw_type; };

/// A type-erased session. Its steps take batches of `Source` and have results of type `Result`: `any_session<float,
/// my_source>(std::move(session))`. It satisfies the concept `training_session`, and it can be passed to `with`. It is the session from
/// which it was made, whose steps are called through a table.
/// @lifetime The rules of the session apply: for example, the model must outlive this object, too. An `any_session` can be moved, also during
/// a loop over `steps`. Each function of a moved-from object throws `failed_precondition_error`, except `abandon` and `came_from_hook`, which
/// do nothing. An assignment destroys the session that the object held before.
/// @cost One indirect call for each call of `run`, `next`, `run_all` and `steps`. The steps of the range that `steps` returns need no further
/// indirect calls.
template<class Result, class Source>
class any_session : public blocking_session {
public:
  using result_type = Result;
  using step_type = step_result<Result>;
  using source_type = Source;
  /// The type of the parameter through which a step receives a batch: an lvalue reference. If `Source` is a source, it is the type of
  /// `*source.peek()`. If `Source` is a range, it is a reference to an element.
  using batch_type = detail::batch_passed<Source>;

  template<erasable_session<Result, Source> Session>
  explicit any_session(Session session) noexcept : blocking_session(std::move(session)), steps_(&steps_of<typename Session::core_type>) {}
  /// @errors `invalid_argument_error` if `session` is null.
  template<erasable_session<Result, Source> Session>
  explicit any_session(std::unique_ptr<Session> session) : any_session(std::move(not_null(session.get()))) {}

  any_session(any_session&&) noexcept = default;
  any_session& operator=(any_session&&) noexcept = default;

  /// Returns the steps over the batches of `source`.
  /// @lifetime `source` must outlive the range. The session must outlive the range, too.
  [[nodiscard]] generator<const step_type&> steps(Source& source) & { return steps_->steps(core(), source); }
  /// Does all steps over the batches of `source`. Returns the last step, the number of steps, the reason why the loop ended,
  /// and the values that hooks measured.
  loop_result<Result> run_all(Source& source) { return steps_->run_all(core(), source); }
  /// Does one step with the next batch of `source`; see `monitored_session::next`. `Source` must be a source, not a range.
  [[nodiscard]] std::optional<step_type> next(Source& source)
    requires data::batch_source<Source>
  {
    return steps_->next(core(), source);
  }
  /// Does one step with `batch`. Does not use or advance a source.
  Result run(batch_type batch) { return steps_->run(gate(), batch); }
  /// Like `run(batch)`, for a temporary batch. This overload exists only if a step receives a batch by non-const reference.
  Result run(std::remove_cvref_t<batch_type>&& batch)
    requires(!std::is_const_v<std::remove_reference_t<batch_type>>)
  {
    return steps_->run(gate(), batch);
  }

private:
  static_assert(std::is_lvalue_reference_v<batch_type>);

  /// The functions that depend on the types of the model and the hooks.
  struct step_table {
    Result (*run)(detail::session_gate&, batch_type);
    std::optional<step_type> (*next)(session_engine&, Source&);
    loop_result<Result> (*run_all)(session_engine&, Source&);
    generator<const step_type&> (*steps)(session_engine&, Source&);
  };
  /// Calls `action` with `source` as a source of batches.
  static decltype(auto) with_source(Source& source, auto action) {
    if constexpr (data::batch_source<Source>) {
      return action.template operator()<Source&>(source);
    } else {
      return action.template operator()<data::range_source<Source&>>(data::source(source));
    }
  }
  template<class Core>
  static constexpr step_table steps_of{
      .run = [](detail::session_gate& gate, batch_type batch) -> Result {
        using run_type = detail::stored_run<all_hooks, Core, batch_type>;
        return run_type::result_of(detail::run_call<run_type, Core>(gate, std::tuple<batch_type>(batch)));
      },
      .next = [](session_engine& core, Source& source) -> std::optional<step_type> {
        if constexpr (data::batch_source<Source>) {
          return detail::next_over<step_type>(static_cast<Core&>(core), source);
        } else {
          return std::nullopt;  // not called: `next` needs a source
        }
      },
      .run_all =
          [](session_engine& core, Source& source) {
            return with_source(
                source, [&]<class Given>(Given&& given) { return detail::run_over<step_type, Result>(static_cast<Core&>(core), given); });
          },
      .steps =
          [](session_engine& core, Source& source) {
            return with_source(source, [&]<class Given>(Given&& given) {
              return detail::steps_over<step_type, Given>(static_cast<Core&>(core), std::forward<Given>(given));
            });
          }};

  template<class Session>
  static Session& not_null(Session* session) {
    if (session == nullptr) { throw invalid_argument_error("any_session: the pointer to the session is null"); }
    return *session;
  }

  const step_table* steps_;
};

}  // namespace stepwell
