// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/base/variable.hpp>
#include <stepwell/xtensor/xtensor_fix.hpp>

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
#include <locale>
#include <memory>
#include <random>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
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

namespace {

static_assert(sw::random_state<std::mt19937> && sw::random_state<std::normal_distribution<float>>);
static_assert(!sw::random_state<std::random_device> && !sw::random_state<std::string> && !sw::random_state<double>);
static_assert(!sw::random_state<std::vector<double>> && !sw::random_state<std::complex<float>> && !sw::random_state<std::stringstream>);

std::string saved(const sw::variable_ref& variable) {
  std::string text;
  variable.copy_to(std::span(&text, 1));
  return text;
}
void restore(const sw::variable_ref& variable, const std::string& text) { variable.copy_from(std::span(&text, 1)); }

/// A locale that groups digits and has another decimal point.
struct other_numbers : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};
struct global_locale {
  std::locale before = std::locale::global(std::locale(std::locale::classic(), new other_numbers));
  global_locale() = default;
  global_locale(const global_locale&) = delete;
  global_locale& operator=(const global_locale&) = delete;
  ~global_locale() { std::locale::global(before); }
};

template<class Engine>
void check_engine(Engine engine) {
  engine.discard(1000);
  const sw::variable_ref variable("rng", engine);
  CHECK(variable.dtype() == sw::dtype::string);
  CHECK(variable.shape().empty());
  CHECK(variable.has_accessors());
  const auto text = saved(variable);
  const auto kept = engine;
  engine.discard(77);
  restore(variable, text);
  CHECK(engine == kept);
  CHECK(saved(variable) == text);
}

template<class Distribution>
void check_distribution(Distribution distribution) {
  std::minstd_rand engine(5);
  static_cast<void>(distribution(engine));  // some distributions keep a value for the next call
  const sw::variable_ref variable("distribution", distribution);
  const auto text = saved(variable);
  const auto kept = distribution;
  distribution = Distribution();
  static_cast<void>(distribution(engine));
  restore(variable, text);
  CHECK(distribution == kept);
  const auto same = engine;
  auto other = same;
  auto copy = kept;
  CHECK(distribution(engine) == copy(other));
}

}  // namespace

TEST_CASE("the engines of <random> are variables, in every locale", "[base][variable][random]") {
  const auto check_all = [](auto... engine) { (check_engine(engine), ...); };
  const auto check = [&] {
    check_all(std::minstd_rand(7), std::mt19937(7), std::mt19937_64(7), std::ranlux24(7), std::ranlux48(7), std::knuth_b(7),
              std::independent_bits_engine<std::mt19937, 11, std::uint32_t>(7));
  };
  std::mt19937 engine(3);
  const auto text = saved(sw::variable_ref("rng", engine));
  check();
  const global_locale other;
  check();
  CHECK(saved(sw::variable_ref("rng", engine)) == text);
}

TEST_CASE("the distributions of <random> are variables, in every locale", "[base][variable][random]") {
  const auto check_all = [](auto... distribution) { (check_distribution(distribution), ...); };
  const std::vector<double> borders{0, 0.1, 0.7};
  const std::vector<double> weights{0.3, 0.7, 0.1};
  const auto check = [&] {
    check_all(std::uniform_int_distribution<int>(-5, 1234567), std::uniform_real_distribution<double>(0.1, 1234.5),
              std::bernoulli_distribution(0.3), std::binomial_distribution<int>(1000, 0.3), std::geometric_distribution<int>(0.3),
              std::negative_binomial_distribution<int>(5, 0.3), std::poisson_distribution<int>(4.1),
              std::exponential_distribution<double>(0.3), std::gamma_distribution<double>(0.3, 2),
              std::weibull_distribution<double>(0.3, 2), std::extreme_value_distribution<double>(0.3, 2),
              std::normal_distribution<double>(0.1, 3), std::lognormal_distribution<double>(0.1, 3),
              std::chi_squared_distribution<double>(3.3), std::cauchy_distribution<double>(0.1, 3),
              std::fisher_f_distribution<double>(3.3, 4.4), std::discrete_distribution<int>({1.0, 1.0}));
#ifdef _LIBCPP_VERSION
    STATIC_REQUIRE_FALSE(sw::random_state<std::student_t_distribution<double>>);  // its operators omit a part of its state
#else
    check_distribution(std::student_t_distribution<double>(3.3));
#endif
  };
  check();
  const global_locale other;
  check();
}

TEST_CASE("a distribution is restored exactly or not at all", "[base][variable][random]") {
  const std::vector<double> borders{0, 0.1, 0.7};
  const std::vector<double> weights{0.3, 0.7, 0.1};
  const auto check = [](auto distribution) {
    CAPTURE(distribution);
    const sw::variable_ref variable("distribution", distribution);
    const auto text = saved(variable);
    const auto kept = distribution;
    restore(variable, text);  // unchanged parameters are not read, because some libraries round them
    CHECK(distribution == kept);
    distribution = decltype(distribution)();
    const auto other = distribution;
    try {
      restore(variable, text);
      CHECK(distribution == kept);
    } catch (const sw::invalid_argument_error& failure) {
      CHECK_THAT(failure.what(), ContainsSubstring("\"distribution\"") && ContainsSubstring("reproduce"));
      CHECK(distribution == other);
    }
  };
  check(std::discrete_distribution<int>(weights.begin(), weights.end()));
  check(std::piecewise_constant_distribution<double>(borders.begin(), borders.end(), weights.begin()));
  check(std::piecewise_linear_distribution<double>(borders.begin(), borders.end(), weights.begin()));
}

TEST_CASE("a text that is not a state of the engine is refused by name, and the engine is unchanged", "[base][variable][random]") {
  std::mt19937 engine(3);
  std::minstd_rand small(4);
  const auto text = saved(sw::variable_ref("other", engine));
  const auto kept = engine;
  const auto small_kept = small;
  const sw::variable_ref variable("noise/rng", engine);
  for (const std::string& wrong : {std::string(), std::string("words"), saved(sw::variable_ref("s", small)), text + " 5",
                                   text.substr(0, 900), std::string("\x1b[2J 5")}) {
    CAPTURE(wrong);
    try {
      restore(variable, wrong);
      FAIL("the text was accepted");
    } catch (const sw::invalid_argument_error& failure) {
      const std::string message = failure.what();
      CHECK(message.find("\"noise/rng\"") != std::string::npos);
      CHECK(message.find("mersenne_twister") != std::string::npos);
      CHECK(message.find('\x1b') == std::string::npos);
    }
    CHECK(engine == kept);
  }
  CHECK_THROWS_AS(restore(sw::variable_ref("s", small), text), sw::invalid_argument_error);
  CHECK(small == small_kept);
}

TEST_CASE("a value that two functions read and write is a variable", "[base][variable]") {
  int gets = 0;
  int sets = 0;
  std::string text = "a";
  double number = 2.5;
  std::array<std::uint64_t, 3> array{1, 2, 3};
  const auto counted = [&](auto& value) {
    return std::tuple([&] { return ++gets, value; }, [&](const auto& restored) { ++sets, value = restored; });
  };
  const auto [get_text, set_text] = counted(text);
  const auto [get_number, set_number] = counted(number);
  const auto [get_array, set_array] = counted(array);
  const auto all =
      sw::variables({{"text", get_text, set_text}, {"below", {{"number", get_number, set_number}, {"array", get_array, set_array}}}});
  REQUIRE(all.size() == 3);
  CHECK(all[0].dtype() == sw::dtype::string);
  CHECK(all[1].name() == "below/number");
  CHECK(all[1].dtype() == sw::dtype::float64);
  CHECK(all[1].shape().empty());
  CHECK(all[2].dtype() == sw::dtype::uint64);
  CHECK(all[2].shape() == sw::tensor_shape{3});
  CHECK(gets + sets == 0);
  CHECK(saved(all[0]) == "a");
  double copied = 0;
  all[1].copy_to(std::as_writable_bytes(std::span(&copied, 1)));
  CHECK(copied == 2.5);
  CHECK(gets == 2);
  restore(all[0], "b");
  const std::array<std::uint64_t, 3> other{7, 8, 9};
  all[2].optional().copy_from(std::as_bytes(std::span(other)));
  CHECK(text == "b");
  CHECK(array == other);
  CHECK(sets == 2);
}

TEST_CASE("a failure of the function that writes a variable names the variable", "[base][variable]") {
  const auto refused = [](auto failure) {
    const sw::variable_ref variable("rate", [] { return 1.0; }, [failure](double) { throw failure; });
    const double value = 2;
    variable.copy_from(std::as_bytes(std::span(&value, 1)));
  };
  CHECK_THROWS_WITH(refused(std::runtime_error("too small")), ContainsSubstring("\"rate\"") && ContainsSubstring("too small"));
  CHECK_THROWS_AS(refused(std::runtime_error("too small")), sw::invalid_argument_error);
  CHECK_THROWS_AS(refused(sw::unavailable_error("later")), sw::unavailable_error);
}
