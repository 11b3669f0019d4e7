// SPDX-License-Identifier: Apache-2.0
//
// A hook that computes values from the model at the end of a session.
// @see contract HOOK-FINAL, D-19
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/hook/raw_session.hpp"

#include <functional>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace stepwell {

namespace detail {

template<class Op>
struct final_value {
  static_assert(sizeof(Op) == 0,
                "stepwell: a final op is a member of the model, or a callable with named parameter types, "
                "e.g. [](const model& m) { return m.accuracy; }");
};
template<class R, class M>
struct final_value<R M::*> {
  using type = R;
};
template<class R, class M>
struct final_value<R (M::*)()> {
  using type = R;
};
template<class R, class M>
struct final_value<R (M::*)() const> {
  using type = R;
};
template<class R, class M>
struct final_value<R (M::*)() noexcept> {
  using type = R;
};
template<class R, class M>
struct final_value<R (M::*)() const noexcept> {
  using type = R;
};
template<class R, class M>
struct final_value<R (*)(M)> {
  using type = R;
};

template<class F>
struct called_value;
template<class R, class F, class M>
struct called_value<R (F::*)(M)> {
  using type = R;
};
template<class R, class F, class M>
struct called_value<R (F::*)(M) const> {
  using type = R;
};
template<class R, class F, class M>
struct called_value<R (F::*)(M) noexcept> {
  using type = R;
};
template<class R, class F, class M>
struct called_value<R (F::*)(M) const noexcept> {
  using type = R;
};

template<class Op>
  requires requires { &Op::operator(); }
struct final_value<Op> : called_value<decltype(&Op::operator())> {};

/// The type of a copy of the member that the op names, or of the value that it returns.
template<class Op>
using final_value_of = std::remove_cvref_t<typename final_value<Op>::type>;

/// Logs a warning that final ops must not read input data.
void warn_final_ops_read_input();

}  // namespace detail

/// Calls each op with the model at a clean close and stores the results. An op is a member of the model or a callable that takes the model:
/// `final_ops_hook{&model::accuracy, [](const model& m) { return norm(m.weights); }}`.
/// @errors `close` throws the exception of an op. For `out_of_range_error` or `stop_iteration` a warning is logged first; they do not mean
///   the end of the data there.
/// @see contract HOOK-FINAL-2
template<class... Ops>
class final_ops_hook {
public:
  using values_type = std::tuple<detail::final_value_of<Ops>...>;

  explicit final_ops_hook(Ops... final_ops) : ops_(std::move(final_ops)...) {}

  void begin() { values_.reset(); }

  void end(auto& session) {
    if constexpr (sizeof...(Ops) > 0) {
      [[maybe_unused]] const auto alone = stepwell::alone_with(session.raw_session());  // other sessions may still step the model
      compute(session.raw_session().model());
    }
  }

  /// Returns the results. Empty before `end`, if `end` threw, and if there are no ops.
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
