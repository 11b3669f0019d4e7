// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "unit/xtensor/xtensor_headers.hpp"

#include <stepwell/hooks/detail/value_text.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/kernel/detail/statistics.hpp>

#include <algorithm>
#include <array>
#include <complex>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace sw = stepwell;

namespace {

using matrix = xt::xtensor<float, 2>;
using column_major = xt::xtensor<double, 2, xt::layout_type::column_major>;
using product = decltype(std::declval<const float&>() * std::declval<const matrix&>());
using column = decltype(xt::view(std::declval<matrix&>(), xt::all(), 1));

static_assert(sw::variable_like<matrix> && sw::variable_like<column_major> && sw::variable_like<xt::xarray<std::int32_t>> &&
              sw::variable_like<column>);
static_assert(!sw::lazy_tensor<matrix>, "the elements are in memory, so hooks need no copy");
static_assert(sw::lazy_tensor<column_major> && sw::lazy_tensor<column> && sw::lazy_tensor<product> && sw::lazy_tensor<const product&>);
static_assert(!sw::variable_like<product>, "not evaluated, so in no memory");
static_assert(!sw::variable_like<xt::xtensor<std::string, 1>> && !sw::lazy_tensor<xt::xarray<long double>>);
static_assert(!std::is_constructible_v<sw::variable_ref, std::string, matrix>, "a temporary that owns its elements");
static_assert(std::is_constructible_v<sw::variable_ref, std::string, column>);
static_assert(std::is_same_v<sw::detail::owned_t<const product&>, matrix> &&
              std::is_same_v<sw::detail::owned_t<column>, xt::xtensor<float, 1>>);

/// Returns the elements that `evaluate` writes in pieces of `piece` elements.
template<class Element, class T>
xt::uvector<Element> read_in_pieces(const T& value, std::size_t piece) {  // not std::vector, because of bool
  const sw::lazy_view view(value);
  xt::uvector<Element> read(view.size);
  for (std::size_t first = 0; first < view.size; first += piece) {
    const auto size = std::min(piece, view.size - first);
    view.evaluate(first, std::as_writable_bytes(std::span(read.data() + first, size)));
  }
  return read;
}

/// Returns the elements of `value`, read one by one by their indices, in row-major order.
template<class T>
auto read_by_index(const T& value) {
  xt::uvector<typename T::value_type> read(value.size());
  std::vector<std::size_t> index(value.dimension());
  for (std::size_t i = 0; i < read.size(); ++i) {
    auto rest = i;
    for (std::size_t d = index.size(); d-- > 0; rest /= value.shape()[d]) { index[d] = rest % value.shape()[d]; }
    read[i] = value.element(index.begin(), index.end());
  }
  return read;
}

/// Checks that `value` is read in all pieces like element by element.
template<class T>
void check_reads(const T& value) {
  using element = typename T::value_type;
  const auto expected = read_by_index(value);
  REQUIRE(expected.size() == value.size());
  for (const std::size_t piece : std::array<std::size_t, 5>{1, 2, 7, 16, 4096}) {
    CHECK((read_in_pieces<element>(value, piece) == expected));
  }
  sw::tensor_shape shape;
  sw::tensor_adapter<T>::copy_shape(value, shape);
  CHECK(std::equal(shape.begin(), shape.end(), value.shape().begin(), value.shape().end(), std::equal_to<>{}));
}

/// Calls `check` with a container of each shape from rank 0 to rank 8, among them empty ones.
template<class Container, class Check>
void for_each_shape(Check check) {
  using element = typename Container::value_type;
  const std::vector<std::vector<std::size_t>> shapes{{},
                                                     {5},
                                                     {0},
                                                     {2, 3},
                                                     {3, 0},
                                                     {1, 4, 1},
                                                     {2, 3, 4},
                                                     {2, 1, 2, 3},
                                                     {2, 2, 1, 3, 2},
                                                     {1, 2, 2, 2, 2, 2},
                                                     {2, 1, 2, 1, 2, 1, 2},
                                                     {1, 2, 1, 2, 1, 2, 2, 3}};
  for (const auto& shape : shapes) {
    CAPTURE(shape);
    auto all = Container::from_shape(shape);
    std::iota(all.storage().begin(), all.storage().end(), element{1});
    check(all);
  }
}

/// A save and a restore of a variable: returns the elements that a save copies, and assigns `restored` to the variable.
template<class Element>
std::vector<Element> exchange(const sw::variable_ref& variable, const std::vector<Element>& restored) {
  std::vector<Element> saved(static_cast<std::size_t>(sw::element_count(variable.shape())));
  variable.copy_to(std::as_writable_bytes(std::span(saved)));
  variable.copy_from(std::as_bytes(std::span(restored)));
  return saved;
}

}  // namespace

TEST_CASE("a row-major container is a variable in its own memory, of any rank and size", "[xtensor][variable]") {
  for_each_shape<xt::xarray<float>>([](xt::xarray<float>& all) {
    const sw::variable_ref ref("all", all);
    CHECK(ref.is_addressable());
    CHECK(ref.dtype() == sw::dtype::float32);
    CHECK(std::equal(ref.shape().begin(), ref.shape().end(), all.shape().begin(), all.shape().end(), std::equal_to<>{}));
    CHECK(ref.bytes().size() == all.size() * sizeof(float));
    if (all.size() > 0) { CHECK(static_cast<const void*>(ref.bytes().data()) == all.data()); }
  });
  xt::xtensor_fixed<double, xt::xshape<2, 2>> fixed;
  CHECK(sw::variable_ref("fixed", fixed).shape() == sw::tensor_shape{2, 2});
  xt::xtensor<std::complex<float>, 0> scalar;
  CHECK(sw::variable_ref("scalar", scalar).dtype() == sw::dtype::complex64);
  xt::xtensor<bool, 1> flags{true, false};
  CHECK(sw::variable_ref("flags", flags).dtype() == sw::dtype::boolean);
}

TEST_CASE("a column-major container is a variable of its shape, saved in row-major order", "[xtensor][variable]") {
  column_major turned{{1, 2, 3}, {4, 5, 6}};
  const sw::variable_ref ref("turned", turned);
  CHECK_FALSE(ref.is_addressable());
  CHECK(ref.shape() == sw::tensor_shape{2, 3});
  CHECK(exchange<double>(ref, {10, 20, 30, 40, 50, 60}) == std::vector<double>{1, 2, 3, 4, 5, 6});
  CHECK((turned == column_major{{10, 20, 30}, {40, 50, 60}}));

  xt::xtensor<double, 1, xt::layout_type::column_major> line{1, 2};
  CHECK(sw::variable_ref("line", line).is_addressable());
  for_each_shape<xt::xarray<float, xt::layout_type::column_major>>([](auto& all) {
    const auto before = read_by_index(all);
    std::vector<float> next(before.begin(), before.end());
    for (auto& one : next) { one = -one; }
    CHECK(std::ranges::equal(exchange<float>(sw::variable_ref("all", all), next), before));
    CHECK(std::ranges::equal(read_by_index(all), next));
  });
}

TEST_CASE("a view is a variable of a part of its container, be it contiguous or strided", "[xtensor][variable]") {
  matrix whole{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}};
  const auto all = sw::variables({{"row", xt::view(whole, 1)},
                                  {"column", xt::view(whole, xt::all(), 1)},
                                  {"corner", xt::view(whole, xt::range(1, 3), xt::range(1, 3))},
                                  {"odd", xt::strided_view(whole, {xt::range(0, 3, 2), xt::range(0, 3, 2)})}});
  CHECK(all[0].is_addressable());
  CHECK(static_cast<const void*>(all[0].bytes().data()) == &whole(1, 0));
  CHECK(all[1].shape() == sw::tensor_shape{3});
  CHECK(exchange<float>(all[1], {-2, -5, -8}) == std::vector<float>{2, 5, 8});
  CHECK(exchange<float>(all[2], {50, 60, 80, 90}) == std::vector<float>{-5, 6, -8, 9});
  CHECK(exchange<float>(all[3], {10, 30, 70, 90}) == std::vector<float>{1, 3, 7, 90});
  CHECK((whole == matrix{{10, -2, 30}, {4, 50, 60}, {70, 80, 90}}));
}

TEST_CASE("an adaptor is a variable of the memory that it adapts", "[xtensor][variable]") {
  std::vector<double> memory{1, 2, 3, 4, 5, 6};
  const std::array<std::size_t, 2> shape{2, 3};
  const sw::variable_ref of_vector("v", xt::adapt(memory, shape));
  CHECK(static_cast<const void*>(of_vector.bytes().data()) == memory.data());
  const sw::variable_ref of_pointer("p", xt::adapt(memory.data(), memory.size(), xt::no_ownership(), shape));
  CHECK(static_cast<const void*>(of_pointer.bytes().data()) == memory.data());
  auto turned = xt::adapt<xt::layout_type::column_major>(memory, shape);
  CHECK(exchange<double>(sw::variable_ref("t", turned), {10, 20, 30, 40, 50, 60}) == std::vector<double>{1, 3, 5, 2, 4, 6});
  CHECK(memory == std::vector<double>{10, 40, 20, 50, 30, 60});
}

TEST_CASE("an adaptor of constant memory, such as that of a record, is a value but no variable", "[xtensor][record]") {
  const std::vector<float> record{1, 2, 3, 4, 5, 6};
  const auto adapted = xt::adapt(record.data(), record.size(), xt::no_ownership(), std::array<std::size_t, 2>{2, 3});
  CHECK(sw::value_text(adapted) == "[1 2 3 4 5 6]");
  CHECK(sw::value_text(xt::view(adapted, xt::all(), 1)) == "[2 5]");
  CHECK_FALSE(sw::detail::is_bad(adapted, false));
  static_assert(!sw::tensor_adapter<std::remove_const_t<decltype(adapted)>>::is_writable);
}

TEST_CASE("elements of each dtype are variables, and are read from expressions", "[xtensor][dtype]") {
  const auto check = [](auto one, sw::dtype type) {
    using element = decltype(one);
    xt::xtensor<element, 2, xt::layout_type::column_major> turned({2, 2}, one);
    CHECK(sw::variable_ref("turned", turned).dtype() == type);
    check_reads(turned);
    CHECK(sw::lazy_view(turned).dtype == type);
    xt::xtensor<element, 1> line({40}, one);
    CHECK(sw::variable_ref("line", line).dtype() == type);
    check_reads(xt::view(line, xt::range(0, 40, 3)));
  };
  check(1.5F, sw::dtype::float32);
  check(1.5, sw::dtype::float64);
  check(std::int8_t{3}, sw::dtype::int8);
  check(std::uint8_t{3}, sw::dtype::uint8);
  check(std::int16_t{3}, sw::dtype::int16);
  check(std::int32_t{3}, sw::dtype::int32);
  check(std::int64_t{3}, sw::dtype::int64);
  check(std::uint64_t{3}, sw::dtype::uint64);
  check(true, sw::dtype::boolean);
  check(std::complex<float>(1, 2), sw::dtype::complex64);
  check(std::complex<double>(1, 2), sw::dtype::complex128);
  check(xtl::half_float(1.5F), sw::dtype::half);
}

TEST_CASE("an expression is read in blocks in row-major order, whatever it is made of", "[xtensor][expression]") {
  for_each_shape<xt::xarray<double>>([](const xt::xarray<double>& all) {
    check_reads(2 * all + 1);
    check_reads(all * all - xt::sqrt(all));
    check_reads(xt::cast<float>(all));
    check_reads(xt::equal(all, 3.0));
    check_reads(xt::transpose(all));
  });
  for_each_shape<xt::xarray<float, xt::layout_type::column_major>>([](const auto& all) { check_reads(2.F * all); });

  const matrix a = xt::arange<float>(0, 60).reshape({5, 12});
  const column_major turned = a;
  const xt::xtensor<float, 1> bias = xt::arange<float>(0, 12);
  const xt::xtensor<std::complex<double>, 1> wave{{1, 2}, {3, 4}, {5, 6}};
  const xt::xtensor<std::int32_t, 2> whole = xt::cast<std::int32_t>(a);
  check_reads(a + bias);            // broadcast
  check_reads(a * turned);          // two layouts
  check_reads(xt::sum(a, {1}));     // a reducer
  check_reads(xt::sum(a));          // rank 0
  check_reads(xt::view(a, 2) * 2);  // of a view
  check_reads(xt::view(a, xt::range(1, 4), xt::range(2, 11, 3)) + 1);
  check_reads(xt::strided_view(a, {2}) * 2);
  check_reads(xt::arange<double>(0, 7));
  check_reads(whole * 3 - 1);
  check_reads(a + whole);
  check_reads(a < 7);
  check_reads(wave * wave);
  check_reads(xt::real(wave));
  check_reads(xt::abs(wave));
  check_reads(xt::index_view(a, std::vector<xt::xindex>{{0, 1}, {3, 4}}));
  const xt::xtensor<float, 2> many = xt::ones<float>({130, 70});
  check_reads(many * 3.F);
}

TEST_CASE("an expression with more than one block has the histograms of its container", "[xtensor][summary]") {
  const xt::xtensor<double, 1> finite = xt::sin(xt::arange<double>(0, 50'000)) * 3;
  xt::xtensor<double, 1> values = finite;
  if (GENERATE(false, true)) {
    values(7) = std::numeric_limits<double>::quiet_NaN();
    values(40'000) = std::numeric_limits<double>::infinity();
  }
  const xt::xtensor<double, 1> twice = 2 * values;
  const std::span<const double> all(twice.data(), twice.size());
  const auto check = [](const auto& lazy, const auto& eager) {
    CHECK(lazy.stats.count == eager.stats.count);
    CHECK(lazy.stats.min == eager.stats.min);
    CHECK(lazy.stats.max == eager.stats.max);
    CHECK(lazy.stats.sum == Approx(eager.stats.sum));
    CHECK(lazy.stats.sum_squares == Approx(eager.stats.sum_squares));
  };
  const auto expression = 2 * values;
  const auto growing = sw::kernel::make_growing_histogram(sw::lazy_view(expression));
  check(growing, sw::kernel::make_growing_histogram(all));
  CHECK(growing.counts == sw::kernel::make_growing_histogram(all).counts);
  CHECK(growing.limits == sw::kernel::make_growing_histogram(all).limits);
  const auto equal = sw::kernel::make_equal_histogram(sw::lazy_view(expression));
  check(equal, sw::kernel::make_equal_histogram(all));
  for (std::size_t i = 0; i < equal.buckets.size(); ++i) {
    CHECK(equal.buckets[i].count == sw::kernel::make_equal_histogram(all).buckets[i].count);
  }

  const auto whole = xt::cast<std::uint8_t>(xt::abs(finite * 10));
  CHECK(sw::kernel::make_growing_histogram(sw::lazy_view(whole)).stats.max == 29);
  const xt::xtensor<double, 1> none(std::array<std::size_t, 1>{0});
  const auto nothing = 2 * none;
  CHECK(sw::kernel::make_growing_histogram(sw::lazy_view(nothing)).stats.count == 0);
  CHECK(sw::kernel::make_equal_histogram(sw::lazy_view(nothing)).stats.count == 0);
}

TEST_CASE("an expression whose values change while they are counted is an error", "[xtensor][summary]") {
  const auto drawn = xt::random::rand<double>({10'000});
  CHECK(sw::kernel::make_growing_histogram(sw::lazy_view(drawn)).stats.count == 10'000);  // reads each element once
  CHECK_THROWS_WITH(sw::kernel::make_equal_histogram(sw::lazy_view(drawn)), ContainsSubstring("store its value first"));
}

TEST_CASE("expressions and views are shown by their first elements and their shape", "[xtensor][log]") {
  const matrix a = xt::arange<float>(0, 60).reshape({5, 12});
  CHECK(sw::value_text(a) == "[0 1 2 3 4 5 ...] of shape [5,12]");
  CHECK(sw::value_text(2 * a) == "[0 2 4 6 8 10 ...] of shape [5,12]");
  CHECK(sw::value_text(xt::view(a, xt::range(0, 3), 1)) == "[1 13 25]");
  CHECK(sw::value_text(xt::sum(a)) == "1770");
  CHECK(sw::value_text(xt::view(a, xt::range(0, 0), 1) * 2) == "[]");
  CHECK(sw::value_text(xt::equal(xt::view(a, 0, xt::range(0, 2)), 1)) == "[false true]");
}

TEST_CASE("each element of an expression or a view is watched for NaN", "[xtensor][nan]") {
  const auto check = [](auto nan, auto infinity) {
    using element = decltype(nan);
    xt::xtensor<element, 2> all({60, 70}, element(1));
    CHECK_FALSE(sw::detail::is_bad(all + all, false));
    all(59, 68) = infinity;
    CHECK(sw::detail::is_bad(all + all, false));
    CHECK_FALSE(sw::detail::is_bad(all + all, true));
    all(59, 68) = nan;
    CHECK(sw::detail::is_bad(all, true));
    CHECK(sw::detail::is_bad(all + all, true));
    CHECK(sw::detail::is_bad(xt::transpose(all), true));
    CHECK(sw::detail::is_bad(xt::view(all, xt::all(), 68), true));
    CHECK_FALSE(sw::detail::is_bad(xt::view(all, xt::all(), 67), true));
  };
  check(std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity());
  check(std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  check(std::complex<double>(0, nan), std::complex<double>(infinity, 0));
  check(std::numeric_limits<xtl::half_float>::quiet_NaN(), std::numeric_limits<xtl::half_float>::infinity());
  const xt::xtensor<std::int32_t, 1> whole{1, 2};
  CHECK_FALSE(sw::detail::is_bad(whole * 2, false));
  const xt::xtensor<double, 1> none(std::array<std::size_t, 1>{0});
  CHECK_FALSE(sw::detail::is_bad(none * 2, false));
}

TEST_CASE("an expression or a view with one element is a number", "[xtensor][metric]") {
  const matrix a{{1, 2}, {3, 4}};
  CHECK(sw::detail::to_number(xt::mean(a)) == 2.5);
  CHECK(sw::detail::to_number(xt::view(a, 1, 1)) == 4);
  CHECK_THROWS_WITH(sw::detail::to_number(2 * a), ContainsSubstring("a tensor with 4 elements of float32"));
}
