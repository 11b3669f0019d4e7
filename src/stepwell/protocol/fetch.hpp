// SPDX-License-Identifier: Apache-2.0
//
// Fetches, which request values of a run, and `run_values`, which a hook receives. A hook and the caller of `run` use the same types of
// fetches.
// @see contract RUN-4
#pragma once

#include "stepwell/protocol/raw_session.hpp"

#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell {

/// A fetch with a display name, under which hooks log the value.
template<class Projection>
struct tagged {
  tagged(std::string given_name, Projection given) : name(std::move(given_name)), projection(std::move(given)) {}

  std::string name;
  Projection projection;
};

/// Returns the fetch `projection` with a display name: `tag("loss", &result::loss)`.
template<class Projection>
[[nodiscard]] tagged<std::decay_t<Projection>> tag(std::string name, Projection&& projection) {
  return {std::move(name), std::forward<Projection>(projection)};
}

// `tagged`, `fetch_pack` and `fetch_list` have constructors and are not aggregates: users create them inside `co_await` expressions, and a
// bug of g++ 12 destroys an aggregate twice there.

namespace detail {
template<class Projection>
constexpr const Projection& untagged(const Projection& projection) noexcept {
  return projection;  // NOLINT(bugprone-return-const-ref-from-parameter): fetches outlive the call
}
template<class Projection>
constexpr const Projection& untagged(const tagged<Projection>& fetch) noexcept {
  return fetch.projection;
}
}  // namespace detail

/// Several fetches. Their values are returned in the order of the fetches.
template<class... Projections>
struct fetch_pack {
  constexpr fetch_pack() = default;
  constexpr explicit fetch_pack(std::tuple<Projections...> all) : projections(std::move(all)) {}

  /// Calls `action` with each fetch, without its display name.
  template<class Action>
  constexpr void for_each(Action&& action) const {
    std::apply([&](const auto&... one) { (static_cast<void>(action(detail::untagged(one))), ...); }, projections);
  }

  [[no_unique_address]] std::tuple<Projections...> projections;
};

/// A list of fetches of one type. Use it if the number of fetches is known only at run time, for example for names from a configuration
/// file. In `after_run(context, values)` of a hook, `values[i]` is the value of the fetch `projections[i]`. A caller of `run` gets a vector
/// with copies of the values.
template<class Projection>
struct fetch_list {
  fetch_list() = default;
  explicit fetch_list(std::vector<Projection> all) : projections(std::move(all)) {}

  /// Calls `action` with each fetch, without its display name.
  template<class Action>
  void for_each(Action&& action) const {
    for (const auto& one : projections) { static_cast<void>(action(detail::untagged(one))); }
  }

  std::vector<Projection> projections;
};

/// Returns a request for the values of the given fetches. In a model session, a fetch is a member of the step's result or of the model
/// (`&result::loss`, `&model::weights`), or a callable that takes the result, the model, or both. Its value is the member, or the return
/// value of the callable. A hook gets a reference to the member, or exactly the return value of the callable, which may be a reference. The
/// caller of `run` gets copies.
template<class... Projections>
[[nodiscard]] constexpr fetch_pack<std::decay_t<Projections>...> fetch(Projections&&... projections) {
  return fetch_pack<std::decay_t<Projections>...>(std::tuple<std::decay_t<Projections>...>(std::forward<Projections>(projections)...));
}

namespace detail {

template<class T>
struct is_fetch_pack : std::false_type {};
template<class... Projections>
struct is_fetch_pack<fetch_pack<Projections...>> : std::true_type {};

template<class T>
struct is_fetch_list : std::false_type {};
template<class Projection>
struct is_fetch_list<fetch_list<Projection>> : std::true_type {};

template<class T>
concept fetches = is_fetch_pack<T>::value || is_fetch_list<T>::value;

/// True if a session over `Raw` can read all fetches of `Pack`.
template<class Raw, class Pack>
inline constexpr bool can_read_all = true;
template<class Raw, class... Projections>
inline constexpr bool can_read_all<Raw, fetch_pack<Projections...>> =
    (can_read<Raw, typename Raw::outcome_type, decltype(detail::untagged(std::declval<const Projections&>()))> && ...);
template<class Raw, class Projection>
inline constexpr bool can_read_all<Raw, fetch_list<Projection>> = can_read_all<Raw, fetch_pack<Projection>>;

}  // namespace detail

struct run_options;
struct run_metadata;

/// Pointers to the options of a run and to the metadata recorded during the run.
struct run_info {
  const run_options* options = nullptr;
  const run_metadata* metadata = nullptr;
};

/// The values that one hook fetched, the argument of its `after_run`. Each call of `get`, `value` or `operator[]` reads the value again: it
/// returns a reference to a member of the step's result or of the model, or calls the callable. There are no values if the hook requested
/// none in this run.
/// @lifetime Valid during `after_run`.
template<class Raw, class Outcome, class Pack>
class run_values;

namespace detail {

/// The part of `run_values` that does not depend on the kind of `Pack`.
template<class Raw, class Outcome, class Pack>
class run_values_base {
public:
  /// Creates the values of `pack`, the fetches of the hook. `pack` is null if the hook requested no values in this run. If `how` is
  /// omitted, do not call `options` and `metadata`.
  constexpr run_values_base(const Raw& raw, const Outcome& outcome, const Pack* pack, const run_info& how = {}) noexcept
      : raw_(raw), outcome_(outcome), pack_(pack), how_(how) {}

  /// Returns true if the hook requested values in this run.
  [[nodiscard]] constexpr bool has_value() const noexcept { return pack_ != nullptr; }
  constexpr explicit operator bool() const noexcept { return has_value(); }

  /// Returns the options of the run, merged from those of the caller and of all hooks.
  /// @see contract RUN-10
  [[nodiscard]] constexpr const run_options& options() const noexcept { return *how_.options; }
  /// Returns the metadata recorded in the run. It is empty if no trace was requested. All hooks of a run get the same object. All runs
  /// without a trace, of all sessions, share one empty object.
  /// @see contract RUN-8
  [[nodiscard]] constexpr const run_metadata& metadata() const noexcept { return *how_.metadata; }

  /// Return the raw session, the outcome of the run, and its options and metadata. These functions are for hooks that forward the values to
  /// another hook.
  [[nodiscard]] constexpr const Raw& raw() const noexcept { return raw_; }
  [[nodiscard]] constexpr const Outcome& outcome() const noexcept { return outcome_; }
  [[nodiscard]] constexpr const run_info& conditions() const noexcept { return how_; }

protected:
  const Raw& raw_;
  const Outcome& outcome_;
  const Pack* pack_;
  run_info how_;
};

}  // namespace detail

template<class Raw, class Outcome, class... Projections>
class run_values<Raw, Outcome, fetch_pack<Projections...>> : public detail::run_values_base<Raw, Outcome, fetch_pack<Projections...>> {
public:
  using run_values::run_values_base::run_values_base;

  static constexpr std::size_t size() noexcept { return sizeof...(Projections); }

  /// Returns the value of fetch number `I`.
  /// @pre `has_value()`.
  template<std::size_t I>
  [[nodiscard]] constexpr decltype(auto) get() const {
    const auto& wanted = detail::untagged(std::get<I>(this->pack_->projections));
    static_assert(
        detail::can_read<Raw, Outcome, decltype(wanted)>,
        "stepwell: this session cannot read the fetch. A model session reads members of the step's result and of the model, and callables "
        "that take one of them or both; a value gets a name by tag(\"loss\", &result::loss)");
    return this->raw_.read(this->outcome_, wanted);
  }
  /// Returns the value of the only fetch.
  /// @pre `has_value()`.
  [[nodiscard]] constexpr decltype(auto) value() const
    requires(sizeof...(Projections) == 1)
  {
    return get<0>();
  }
};

template<class Raw, class Outcome, class Projection>
class run_values<Raw, Outcome, fetch_list<Projection>> : public detail::run_values_base<Raw, Outcome, fetch_list<Projection>> {
public:
  using run_values::run_values_base::run_values_base;

  [[nodiscard]] std::size_t size() const noexcept { return this->pack_ == nullptr ? 0 : this->pack_->projections.size(); }
  /// Returns the value of fetch number `i`.
  /// @pre `i < size()`.
  [[nodiscard]] decltype(auto) operator[](std::size_t i) const {
    return this->raw_.read(this->outcome_, detail::untagged(this->pack_->projections[i]));
  }
};

}  // namespace stepwell

template<class Raw, class Outcome, class... Projections>
struct std::tuple_size<stepwell::run_values<Raw, Outcome, stepwell::fetch_pack<Projections...>>>
    : std::integral_constant<std::size_t, sizeof...(Projections)> {};
template<std::size_t I, class Raw, class Outcome, class Pack>
struct std::tuple_element<I, stepwell::run_values<Raw, Outcome, Pack>> {
  using type = decltype(std::declval<const stepwell::run_values<Raw, Outcome, Pack>&>().template get<I>());
};
