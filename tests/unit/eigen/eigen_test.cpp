// SPDX-License-Identifier: Apache-2.0
#include <stepwell/eigen/eigen.hpp>

#include "support/catch.hpp"

#include <Eigen/Dense>

#include <array>
#include <complex>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace sw = stepwell;

namespace {

template<class Scalar>
using row_major = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

static_assert(sw::variable_like<row_major<float>> && sw::variable_like<Eigen::VectorXd> && sw::variable_like<Eigen::ArrayXi>);
static_assert(sw::variable_like<Eigen::Map<Eigen::RowVectorXf>> && sw::variable_like<const Eigen::Matrix3f>);
static_assert(!sw::variable_like<decltype(Eigen::VectorXd() + Eigen::VectorXd())>, "not evaluated, so in no memory");
static_assert(!sw::variable_like<Eigen::Matrix<std::string, 2, 1>>);
static_assert(!sw::variable_like<Eigen::Matrix<long double, 2, 1>>);
static_assert(!std::is_constructible_v<sw::variable_ref, std::string, Eigen::VectorXd>, "a temporary that owns its elements");
static_assert(std::is_constructible_v<sw::variable_ref, std::string, Eigen::Map<Eigen::VectorXd>>);

template<class T>
std::vector<T> elements_of(const sw::tensor_view& view) {
  std::vector<T> elements(view.bytes.size() / sizeof(T));
  std::memcpy(elements.data(), view.bytes.data(), view.bytes.size());
  return elements;
}

}  // namespace

TEST_CASE("a row-major Eigen matrix is a variable of its shape", "[eigen]") {
  row_major<float> weights(2, 3);
  weights << 1, 2, 3, 4, 5, 6;
  const sw::variable_ref ref("weights", weights);
  CHECK(ref.dtype() == sw::dtype::float32);
  CHECK(ref.shape() == sw::tensor_shape{2, 3});
  CHECK(elements_of<float>(ref.view()) == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(ref.bytes().data() == reinterpret_cast<const std::byte*>(weights.data()));

  const float restored = 9;
  std::memcpy(ref.writable_bytes().data() + 4 * sizeof restored, &restored, sizeof restored);
  CHECK(weights(1, 1) == 9);
}

TEST_CASE("Eigen vectors have one dimension, be they rows or columns, fixed or dynamic, matrix or array", "[eigen]") {
  Eigen::VectorXd column = Eigen::VectorXd::Zero(4);
  Eigen::RowVector3f row = Eigen::RowVector3f::Zero();
  Eigen::ArrayXi array = Eigen::ArrayXi::Zero(5);
  Eigen::Matrix<std::complex<double>, 1, 1> one;
  CHECK(sw::variable_ref("c", column).shape() == sw::tensor_shape{4});
  CHECK(sw::variable_ref("r", row).shape() == sw::tensor_shape{3});
  CHECK(sw::variable_ref("a", array).shape() == sw::tensor_shape{5});
  CHECK(sw::variable_ref("a", array).dtype() == sw::dtype::int32);
  CHECK(sw::variable_ref("o", one).shape() == sw::tensor_shape{1});
  CHECK(sw::variable_ref("o", one).dtype() == sw::dtype::complex128);
}

TEST_CASE("fixed sizes, arrays and Eigen's 16-bit numbers are variables", "[eigen]") {
  Eigen::Matrix<double, 2, 2, Eigen::RowMajor> fixed;
  Eigen::Array<bool, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> mask(2, 5);
  Eigen::Matrix<Eigen::half, Eigen::Dynamic, 1> halves(3);
  Eigen::Matrix<Eigen::bfloat16, Eigen::Dynamic, 1> brains(3);
  row_major<float> empty(3, 0);
  CHECK(sw::variable_ref("f", fixed).shape() == sw::tensor_shape{2, 2});
  CHECK(sw::variable_ref("m", mask).dtype() == sw::dtype::boolean);
  CHECK(sw::variable_ref("h", halves).dtype() == sw::dtype::half);
  CHECK(sw::variable_ref("b", brains).dtype() == sw::dtype::bfloat16);
  CHECK(sw::variable_ref("b", brains).bytes().size() == 6);
  CHECK(sw::variable_ref("e", empty).shape() == sw::tensor_shape{3, 0});
  CHECK(sw::variable_ref("e", empty).bytes().empty());
}

TEST_CASE("a column-major Eigen matrix is stored as its transpose when asked so by name", "[eigen]") {
  Eigen::MatrixXf weights(2, 3);
  weights << 1, 2, 3, 4, 5, 6;
  const auto list = sw::variables({{"weights", sw::eigen::column_major_as_transposed(weights)}});
  CHECK(list[0].shape() == sw::tensor_shape{3, 2});
  CHECK(elements_of<float>(list[0].view()) == std::vector<float>{1, 4, 2, 5, 3, 6});
  CHECK(list[0].bytes().data() == reinterpret_cast<const std::byte*>(weights.data()));
}

TEST_CASE("a Map refers to memory that lives elsewhere, so a temporary will do", "[eigen]") {
  std::vector<float> memory(6);
  using map = Eigen::Map<row_major<float>>;
  const auto list = sw::variables({{"weights", map(memory.data(), 2, 3)}});
  CHECK(list[0].shape() == sw::tensor_shape{2, 3});
  CHECK(list[0].bytes().data() == reinterpret_cast<const std::byte*>(memory.data()));
  const map constant(memory.data(), 3, 2);
  CHECK(sw::variable_ref("c", constant).shape() == sw::tensor_shape{3, 2});
  static_assert(!sw::detail::has_writable_elements<Eigen::Map<const Eigen::VectorXf>>());
  static_assert(!sw::detail::has_writable_elements<const Eigen::VectorXf>());
}

TEST_CASE("a part of a vector is a variable of the memory of the vector", "[eigen]") {
  Eigen::VectorXf all = Eigen::VectorXf::LinSpaced(5, 0, 4);
  const sw::variable_ref part("part", all.segment(1, 3));
  CHECK(part.shape() == sw::tensor_shape{3});
  const std::array<float, 3> values{7, 8, 9};
  part.copy_from(std::as_bytes(std::span(values)));
  CHECK(all == Eigen::VectorXf{{0, 7, 8, 9, 4}});
  CHECK(sw::view_of(all.head(2)).shape == sw::tensor_shape{2});
  CHECK(sw::view_of(all.tail(1)).shape == sw::tensor_shape{1});
}

TEST_CASE("blocks of whole rows are variables, others are refused by name", "[eigen]") {
  row_major<double> whole = row_major<double>::Zero(4, 3);
  auto rows = whole.middleRows(1, 2);
  CHECK(sw::variable_ref("rows", rows).shape() == sw::tensor_shape{2, 3});
  CHECK(sw::variable_ref("rows", rows).bytes().data() == reinterpret_cast<const std::byte*>(&whole(1, 0)));
  CHECK(sw::variable_ref("row", whole.row(2)).shape() == sw::tensor_shape{3});
  CHECK_THROWS_AS(sw::variable_ref("corner", whole.topLeftCorner(2, 2)), sw::invalid_argument_error);
  CHECK_NOTHROW(sw::variable_ref("part of a row", whole.block(1, 1, 1, 2)));
  try {
    (void)sw::variables({{"encoder/column", whole.col(1)}});
    FAIL("accepted");
  } catch (const sw::invalid_argument_error& failure) {
    CHECK_THAT(failure.what(), ContainsSubstring("encoder/column") && ContainsSubstring("row-major"));
  }
}
