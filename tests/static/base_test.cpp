// SPDX-License-Identifier: Apache-2.0
//
// Tests of the types in `base` that can be copied, moved and converted.
#include <stepwell/base/cadence.hpp>
#include <stepwell/base/clock.hpp>
#include <stepwell/base/error.hpp>
#include <stepwell/base/random.hpp>
#include <stepwell/base/tensor.hpp>
#include <stepwell/base/variable.hpp>

#include <memory>
#include <system_error>
#include <type_traits>

namespace sw = stepwell;

// Exceptions have one root, which is a system_error. The kinds of exceptions are not derived from each other.
static_assert(std::is_base_of_v<std::system_error, sw::error> && std::is_base_of_v<sw::error, sw::aborted_error>);
static_assert(!std::is_base_of_v<sw::aborted_error, sw::unavailable_error> && !std::is_same_v<sw::aborted_error, sw::unavailable_error>);
static_assert(std::is_error_code_enum_v<sw::errc> && !std::is_error_condition_enum_v<sw::errc>);

// A result can hold a move-only type. The result itself is then move-only.
static_assert(std::is_nothrow_move_constructible_v<sw::result<std::unique_ptr<int>>>);
static_assert(!std::is_copy_constructible_v<sw::result<std::unique_ptr<int>>> && std::is_copy_constructible_v<sw::result<int>>);
static_assert(!std::is_convertible_v<sw::result<int>, bool> && std::is_constructible_v<bool, sw::result<int>>);

// Clocks can be neither copied nor moved. Alarms and timers have one owner.
static_assert(!std::is_copy_constructible_v<sw::manual_clock> && !std::is_move_constructible_v<sw::manual_clock>);
static_assert(std::is_move_constructible_v<sw::alarm> && !std::is_copy_constructible_v<sw::alarm>);
static_assert(std::is_move_assignable_v<sw::second_or_step_timer> && !std::is_copy_constructible_v<sw::second_or_step_timer>);

// The order of a whole epoch can be computed at compile time.
static_assert(sw::random_permutation(1, 0, 0)(0) == 0);
static_assert(sw::random_permutation(1000, 1, 2)(999) < 1000);
static_assert(sw::random_bits(1, 2, 3) != sw::random_bits(1, 2, 4));

// The spans of a tensor are const if the tensor is const.
static_assert(std::is_same_v<decltype(std::declval<sw::tensor&>().bytes()), std::span<std::byte>>);
static_assert(std::is_same_v<decltype(std::declval<const sw::tensor&>().bytes()), std::span<const std::byte>>);
