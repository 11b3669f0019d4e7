// SPDX-License-Identifier: Apache-2.0
//
// A hook that computes values from the model at the clean close of a session. TensorFlow calls these computations final ops.
// @see contract HOOK-FINAL, D-19
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/protocol/raw_session.hpp"

#include <functional>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace stepwell {

namespace detail {

// The type that an op returns, found by overload resolution; the functions are never defined.
template<class R, class M>
  requires(!std::is_function_v<R>)
std::type_identity<R> type_of_op(R M::*);
template<class R, class M>
std::type_identity<R> type_of_op(R (M::*)());
template<class R, class M>
std::type_identity<R> type_of_op(R (M::*)() const);
template<class R, class M>
std::type_identity<R> type_of_op(R (*)(M));
template<class R, class F, class M>
std::type_identity<R> type_of_call(R (F::*)(M));
template<class R, class F, class M>
std::type_identity<R> type_of_call(R (F::*)(M) const);
template<class Op>
auto type_of_op(Op) -> decltype(detail::type_of_call(&Op::operator()));

/// The type of the result of an op: the type of the member that the op names, or of the value that the op returns.
template<class Op>
struct final_value {
  static_assert(
      requires(Op op) { detail::type_of_op(op); },
      "stepwell: a final op is a member of the model, or a callable with named parameter types, "
      "e.g. [](const model& m) { return m.accuracy; }");
  using type = std::remove_cvref_t<typename decltype(detail::type_of_op(std::declval<Op>()))::type>;
};

inline void warn_final_ops_read_input() {
  log_warning(
      "an out_of_range_error or stop_iteration is thrown by the code in final_ops_hook. This typically means that the final ops have a "
      "dependency back to some input source, which should not happen: they should read what the steps have left in the model, rather than "
      "another batch");
}

}  // namespace detail

/// Calls each op with the model at a clean close and stores the results. An op is a member of the model or a callable that takes the model:
/// `final_ops_hook{&model::accuracy, [](const model& m) { return norm(m.weights); }}`. A session over another kind of raw session calls an
/// op with the result of the raw session's function `subject()`. If there is no such function, the op gets the raw session itself.
/// @errors `close` throws the exception of an op. If the exception is an `out_of_range_error` or a `stop_iteration`, a warning is logged
///   first, because in an op these errors do not mean the end of the data.
/// @see contract HOOK-FINAL-2
template<class... Ops>
class final_ops_hook {
public:
  using values_type = std::tuple<typename detail::final_value<Ops>::type...>;

  explicit final_ops_hook(Ops... final_ops) : ops_(std::move(final_ops)...) {}

  void begin() { values_.reset(); }

  void end(auto& session) {
    if constexpr (sizeof...(Ops) > 0) {
      [[maybe_unused]] const auto alone = detail::alone_with(session.raw_session());  // other sessions may still step the model
      auto& raw = session.raw_session();
      compute(detail::subject_in_raw(raw));
    }
  }

  /// Returns the results, in the order of the ops. Empty before `end`, if an op has thrown, or if there are no ops.
  [[nodiscard]] const std::optional<values_type>& final_ops_values() const noexcept { return values_; }

private:
  void compute(auto& model) {
    try {
      values_ = std::apply([&](Ops&... op) { return values_type{std::invoke(op, model)...}; }, ops_);
    } catch (const out_of_range_error&) {
      detail::warn_final_ops_read_input();
      throw;
    } catch (const stop_iteration&) {
      detail::warn_final_ops_read_input();
      throw;
    }
  }

  std::tuple<Ops...> ops_;
  std::optional<values_type> values_;
};

}  // namespace stepwell
