// SPDX-License-Identifier: Apache-2.0
//
// What a run is asked for, and what it answers: one vocabulary for the user's call and for every hook (contract RUN-4).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace stepwell {

/// A fetch with a name to show it under.
template<class Projection>
struct tagged {
  tagged(std::string given_name, Projection given) : name(std::move(given_name)), projection(std::move(given)) {}

  std::string name;
  Projection projection;
};

/// Names a fetch: `tag("loss", &result::loss)`.
template<class Projection>
[[nodiscard]] tagged<std::decay_t<Projection>> tag(std::string name, Projection&& projection) {
  return {std::move(name), std::forward<Projection>(projection)};
}

// What people make inside an awaited expression has constructors: g++ 12 destroys an aggregate there twice.

/// Fetches, in the order their values are wanted.
template<class... Projections>
struct fetch_pack {
  constexpr fetch_pack() = default;
  constexpr explicit fetch_pack(std::tuple<Projections...> all) : projections(std::move(all)) {}

  [[no_unique_address]] std::tuple<Projections...> projections;
};

/// Asks for values. On a model session a fetch is a member of the step's result or of the model (`&result::loss`,
/// `&model::weights`) or a callable on either; the value is what it names, by reference where it names memory.
template<class... Projections>
[[nodiscard]] constexpr fetch_pack<std::decay_t<Projections>...> fetch(Projections&&... projections) {
  return fetch_pack<std::decay_t<Projections>...>(std::tuple<std::decay_t<Projections>...>(std::forward<Projections>(projections)...));
}

namespace detail {

template<class T>
struct is_fetch_pack : std::false_type {};
template<class... Projections>
struct is_fetch_pack<fetch_pack<Projections...>> : std::true_type {};

}  // namespace detail

struct run_options;
struct run_metadata;

/// How a run is done, and where what was observed of it stands.
struct run_conditions {
  const run_options* options = nullptr;
  const run_metadata* metadata = nullptr;
};

/// What one hook (or the caller) asked for, answered. Values are read out of the run's outcome by reference.
/// Empty where a hook asked for nothing this time.
/// @lifetime Valid during `after_run`.
template<class Raw, class Outcome, class Pack>
class run_values;

template<class Raw, class Outcome, class... Projections>
class run_values<Raw, Outcome, fetch_pack<Projections...>> {
public:
  /// @pre `pack` is null only where nothing was asked for.
  constexpr run_values(const Raw& raw, const Outcome& outcome, const fetch_pack<Projections...>* pack,
                       const run_conditions& how = {}) noexcept
      : raw_(raw), outcome_(outcome), pack_(pack), how_(how) {}

  static constexpr std::size_t size() noexcept { return sizeof...(Projections); }

  /// True where the hook asked for values this time.
  [[nodiscard]] constexpr bool has_value() const noexcept { return pack_ != nullptr; }
  constexpr explicit operator bool() const noexcept { return has_value(); }

  /// The value of fetch number `I`. @pre `has_value()`.
  template<std::size_t I>
  [[nodiscard]] constexpr decltype(auto) get() const {
    return raw_.read(outcome_, std::get<I>(pack_->projections));
  }
  /// The value of the only fetch. @pre `has_value()`.
  [[nodiscard]] constexpr decltype(auto) value() const
    requires(sizeof...(Projections) == 1)
  {
    return get<0>();
  }

  /// How the run was done: the options of caller and hooks, merged (RUN-10).
  [[nodiscard]] constexpr const run_options& options() const noexcept { return *how_.options; }
  /// What was observed of it, where somebody asked for a trace; all who watch a run share it (RUN-8). Read-only: where no
  /// trace was requested, the runs of all sessions share one that is empty.
  [[nodiscard]] constexpr const run_metadata& metadata() const noexcept { return *how_.metadata; }

  /// For adapters that give the values on to another hook.
  [[nodiscard]] constexpr const Raw& raw() const noexcept { return raw_; }
  [[nodiscard]] constexpr const Outcome& outcome() const noexcept { return outcome_; }
  [[nodiscard]] constexpr const run_conditions& conditions() const noexcept { return how_; }

private:
  const Raw& raw_;
  const Outcome& outcome_;
  const fetch_pack<Projections...>* pack_;
  run_conditions how_;
};

}  // namespace stepwell

template<class Raw, class Outcome, class... Projections>
struct std::tuple_size<stepwell::run_values<Raw, Outcome, stepwell::fetch_pack<Projections...>>>
    : std::integral_constant<std::size_t, sizeof...(Projections)> {};
template<std::size_t I, class Raw, class Outcome, class Pack>
struct std::tuple_element<I, stepwell::run_values<Raw, Outcome, Pack>> {
  using type = decltype(std::declval<const stepwell::run_values<Raw, Outcome, Pack>&>().template get<I>());
};
