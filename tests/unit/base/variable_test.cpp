// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/base/variable.hpp>
#include <stepwell/kernel/xtensor_fix.hpp>

#if __has_include(<xtensor/containers/xtensor.hpp>)  // since xtensor 0.26
#include <xtensor/containers/xadapt.hpp>
#include <xtensor/containers/xarray.hpp>
#include <xtensor/containers/xfixed.hpp>
#include <xtensor/containers/xtensor.hpp>
#include <xtensor/views/xview.hpp>
#else
#include <xtensor/xadapt.hpp>
#include <xtensor/xarray.hpp>
#include <xtensor/xfixed.hpp>
#include <xtensor/xtensor.hpp>
#include <xtensor/xview.hpp>
#endif

#include <algorithm>
#include <array>
#include <complex>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sw = stepwell;

namespace {

static_assert(sw::variable_like<float> && sw::variable_like<std::vector<double>> && sw::variable_like<float[3]>);
static_assert(sw::variable_like<xt::xtensor<float, 2>> && sw::variable_like<xt::xarray<std::int32_t>>);
static_assert(sw::variable_like<std::span<const float>>);  // readable, but not restorable
static_assert(!sw::variable_like<std::string> && !sw::variable_like<std::vector<std::string>>);
static_assert(!sw::variable_like<std::vector<bool>> && !sw::variable_like<std::vector<std::vector<float>>>);
static_assert(!sw::variable_like<float*> && !sw::variable_like<const char*>);
static_assert(!std::is_constructible_v<sw::variable_ref, std::string, float>, "a temporary number has no memory");
static_assert(!std::is_constructible_v<sw::variable_ref, std::string, std::vector<float>>);
static_assert(std::is_constructible_v<sw::variable_ref, std::string, std::span<float>>);

/// A strided tensor that belongs to no library.
struct strided {
  using value_type = float;
  std::vector<float> elements;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> steps;

  float* data() { return elements.data(); }
  const float* data() const { return elements.data(); }
  std::size_t size() const { return elements.size(); }
  const auto& shape() const { return sizes; }
  const auto& strides() const { return steps; }
};

}  // namespace

TEST_CASE("a scalar is a variable of rank 0", "[base][variable]") {
  std::int64_t counter = 7;
  const sw::variable_ref ref("counter", counter);
  CHECK(ref.name() == "counter");
  CHECK(ref.dtype() == sw::dtype::int64);
  CHECK(ref.shape().empty());
  const std::int64_t restored = 8;
  std::memcpy(ref.writable_bytes().data(), &restored, sizeof restored);
  CHECK(counter == 8);
}

TEST_CASE("a vector, an array, a C array and a span are variables of rank 1", "[base][variable]") {
  std::vector<double> vector{1, 2, 3};
  std::array<std::uint8_t, 4> array{};
  float plain[2] = {};
  const std::span<double> constant_span(vector);
  const sw::variable_ref of_vector("v", vector);
  CHECK(of_vector.dtype() == sw::dtype::float64);
  CHECK(of_vector.shape() == sw::tensor_shape{3});
  CHECK(of_vector.bytes().data() == reinterpret_cast<const std::byte*>(vector.data()));
  CHECK(sw::variable_ref("a", array).shape() == sw::tensor_shape{4});
  CHECK(sw::variable_ref("p", plain).bytes().size() == 8);
  CHECK(sw::variable_ref("s", constant_span).shape() == sw::tensor_shape{3});
  CHECK(sw::variable_ref("t", std::span(vector).subspan(1)).bytes().data() == of_vector.bytes().data() + 8);
}

TEST_CASE("an xtensor container is a variable of its shape", "[base][variable]") {
  xt::xtensor<float, 2> fixed_rank = xt::ones<float>({2, 3});
  xt::xarray<std::int32_t> any_rank = xt::zeros<std::int32_t>({2, 3, 4});
  xt::xtensor_fixed<double, xt::xshape<2, 2>> fixed_shape;
  xt::xtensor<std::complex<float>, 0> scalar;
  CHECK(sw::variable_ref("w", fixed_rank).shape() == sw::tensor_shape{2, 3});
  CHECK(sw::variable_ref("w", fixed_rank).bytes().size() == 24);
  CHECK(sw::variable_ref("w", any_rank).shape() == sw::tensor_shape{2, 3, 4});
  CHECK(sw::variable_ref("w", any_rank).dtype() == sw::dtype::int32);
  CHECK(sw::variable_ref("w", fixed_shape).shape() == sw::tensor_shape{2, 2});
  CHECK(sw::variable_ref("w", scalar).dtype() == sw::dtype::complex64);
  CHECK(sw::variable_ref("w", scalar).shape().empty());
}

TEST_CASE("dimensions of size one and empty tensors are row-major whatever their strides", "[base][variable]") {
  xt::xtensor<float, 3> thin = xt::zeros<float>({1, 5, 1});
  xt::xtensor<float, 2> empty = xt::zeros<float>({3, 0});
  CHECK(sw::variable_ref("w", thin).shape() == sw::tensor_shape{1, 5, 1});
  CHECK(sw::variable_ref("w", empty).bytes().empty());
  strided odd{{}, {0, 4}, {99, 98}};
  CHECK(sw::variable_ref("w", odd).shape() == sw::tensor_shape{0, 4});
}

TEST_CASE("a column-major tensor is refused by name", "[base][variable]") {
  xt::xtensor<float, 2, xt::layout_type::column_major> turned = xt::zeros<float>({2, 3});
  try {
    (void)sw::variables({{"encoder/weights", turned}});
    FAIL("accepted");
  } catch (const sw::invalid_argument_error& failure) {
    CHECK_THAT(failure.what(), ContainsSubstring("encoder/weights") && ContainsSubstring("row-major"));
  }
  xt::xtensor<float, 1, xt::layout_type::column_major> line = xt::zeros<float>({3});
  CHECK_NOTHROW(sw::variable_ref("line", line));  // one dimension has only one order
}

TEST_CASE("elements with gaps between them are refused", "[base][variable]") {
  strided gaps{std::vector<float>(6), {2, 3}, {4, 1}};
  CHECK_THROWS_AS(sw::variable_ref("w", gaps), sw::invalid_argument_error);
  strided lost_rank{std::vector<float>(6), {2, 3}, {1}};
  CHECK_THROWS_AS(sw::variable_ref("w", lost_rank), sw::invalid_argument_error);
  xt::xtensor<float, 2> whole = xt::zeros<float>({4, 4});
  auto column = xt::view(whole, xt::all(), 1);
  CHECK_THROWS_AS(sw::variable_ref("w", column), sw::invalid_argument_error);
}

TEST_CASE("a contiguous view into a larger tensor begins at its own first element", "[base][variable]") {
  xt::xtensor<float, 2> whole = xt::zeros<float>({4, 4});
  auto row = xt::view(whole, 2, xt::all());
  const sw::variable_ref ref("row", row);
  CHECK(ref.shape() == sw::tensor_shape{4});
  CHECK(ref.bytes().data() == reinterpret_cast<const std::byte*>(&whole(2, 0)));
}

TEST_CASE("memory adapted from elsewhere is a variable", "[base][variable]") {
  std::vector<float> memory(6);
  auto adapted = xt::adapt(memory, std::array<std::size_t, 2>{2, 3});
  CHECK(sw::variable_ref("w", adapted).bytes().data() == reinterpret_cast<const std::byte*>(memory.data()));
}

TEST_CASE("nested lists become paths, in the order given", "[base][variable]") {
  float weights = 1;
  float bias = 2;
  std::vector<float> head{3};
  const auto encoder = [&] { return sw::variables({{"weights", weights}, {"bias", bias}}); };
  const auto list = sw::variables({{"encoder", sw::variables({{"layer", encoder()}})}, {"head", head}, {"none", sw::variable_list{}}});
  REQUIRE(list.size() == 3);
  CHECK(list[0].name() == "encoder/layer/weights");
  CHECK(list[1].name() == "encoder/layer/bias");
  CHECK(list[2].name() == "head");
  CHECK(list[1].bytes().data() == reinterpret_cast<const std::byte*>(&bias));
  CHECK(list[1].renamed("b").name() == "b");
  CHECK(sw::variables({}).empty());
}

TEST_CASE("a string, a list of strings and a tensor of strings are variables", "[base][variable]") {
  std::string note = "old";
  std::vector<std::string> labels = {"a", "b", "c", "d"};
  const auto all = sw::variables({{"note", note}, {"below", sw::variables({{"labels", labels}})}});
  REQUIRE(all.size() == 2);
  CHECK(all[0].shape().empty());
  CHECK(all[1].name() == "below/labels");
  CHECK(all[1].dtype() == sw::dtype::string);
  CHECK(all[1].shape() == sw::tensor_shape{4});
  CHECK(all[1].size_bytes() == 0);
  std::vector<std::string> copy(4);
  all[1].copy_to(copy);
  CHECK(copy == labels);
  all[0].copy_from(std::vector<std::string>{"a longer text than before"});
  CHECK(note == "a longer text than before");

  CHECK(sw::variable_ref("grid", labels, {2, 2}).shape() == sw::tensor_shape{2, 2});
  CHECK_THROWS_AS(sw::variable_ref("grid", labels, {3, 2}), sw::invalid_argument_error);
}

TEST_CASE("strings may be on a device, too", "[base][variable]") {
  struct far_strings final : sw::device_elements {
    std::vector<std::string> far = {"x", "y"};
    sw::tensor_view description() const override { return {sw::dtype::string, {2}, {}}; }
    void copy_to(std::span<std::byte>) const override {}
    void copy_from(std::span<const std::byte>) override {}
    void copy_strings_to(std::span<std::string> to) const override { std::ranges::copy(far, to.begin()); }
    void copy_strings_from(std::span<const std::string> from) override { far.assign(from.begin(), from.end()); }
  };
  const auto elements = std::make_shared<far_strings>();
  const sw::variable_ref variable("far", elements);
  std::vector<std::string> near(2);
  variable.copy_to(near);
  CHECK(near == std::vector<std::string>{"x", "y"});
  variable.copy_from(std::vector<std::string>{"1", "2"});
  CHECK(elements->far == std::vector<std::string>{"1", "2"});
  CHECK(variable.strings().empty());
}
