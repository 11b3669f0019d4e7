// SPDX-License-Identifier: Apache-2.0
#include "stub.hpp"
#include "support/catch.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/tensorflow/runtime.hpp>
#include <stepwell/tensorflow/tensor.hpp>
#include <stepwell/xtensor/xtensor_fix.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <xtensor/xadapt.hpp>
#include <xtensor/xmath.hpp>
#include <xtensor/xtensor.hpp>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace sw = stepwell;
namespace tf = stepwell::tensorflow;

namespace {

/// Returns the message of `runtime::open(options)` in a new process with these variables of the environment, or "opened VERSION".
std::string message_of_open(const tf::runtime_options& options, const char* variable, const char* value) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const auto child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    for (const char* name : {"STEPWELL_TENSORFLOW", "VIRTUAL_ENV", "CONDA_PREFIX"}) { ::unsetenv(name); }
    if (variable != nullptr) { ::setenv(variable, value, 1); }
    std::string text;
    try {
      text = "opened " + tf::runtime::open(options).version();
    } catch (const sw::not_found_error& failure) { text = failure.what(); }
    const auto written = ::write(ends[1], text.data(), text.size());
    ::_exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  std::string text(8192, '\0');
  std::size_t size = 0;
  for (ssize_t more = 1; more > 0; size += static_cast<std::size_t>(more)) {
    more = ::read(ends[0], text.data() + size, text.size() - size);
    if (more < 0) { break; }
  }
  ::close(ends[0]);
  int code = 0;
  ::waitpid(child, &code, 0);
  CHECK(code == 0);
  text.resize(size);
  return text;
}

}  // namespace

TEST_CASE("a library that is not found is reported with all places that were searched", "[tensorflow][runtime]") {
  // Runs before the library is loaded: a process has one.
  const auto nowhere = message_of_open({}, "VIRTUAL_ENV", "/no/such/environment");
  CHECK_THAT(nowhere, ContainsSubstring("/no/such/environment") && ContainsSubstring("CONDA_PREFIX") &&
                          ContainsSubstring("libtensorflow_cc.so.2") && ContainsSubstring("pip install tensorflow-cpu"));
  CHECK_THAT(message_of_open({}, "STEPWELL_TENSORFLOW", "/tmp"), ContainsSubstring("/tmp: STEPWELL_TENSORFLOW: holds neither"));
  CHECK_THAT(message_of_open({.library = "libc.so.6"}, nullptr, nullptr),
             ContainsSubstring("libc.so.6") && ContainsSubstring("lacks the functions TF_SessionRun, TF_GetCode"));
  CHECK(message_of_open({.library = STEPWELL_STUB}, nullptr, nullptr) == "opened 2.0.0-stub");
}

TEST_CASE("a process has one library", "[tensorflow][runtime]") {
  CHECK(tf::runtime::open({.library = STEPWELL_STUB}).version() == "2.0.0-stub");
  CHECK(tf::runtime::open().library() == STEPWELL_STUB);
  CHECK_THROWS_AS(tf::runtime::open({.library = "/another/libtensorflow.so.2"}), sw::failed_precondition_error);
}

TEST_CASE("a tensor is made from numbers, ranges, strings and expressions", "[tensorflow][tensor]") {
  static_cast<void>(tf::runtime::open({.library = STEPWELL_STUB}));
  const tf::tensor number(2.5F);
  CHECK(number.dtype() == sw::dtype::float32);
  CHECK(number.shape().empty());
  CHECK(number.as<float>() == 2.5F);
  CHECK(tf::tensor(std::vector<std::int64_t>{1, 2, 3}).as<std::vector<std::int64_t>>() == std::vector<std::int64_t>{1, 2, 3});
  CHECK(tf::tensor("text").as<std::string>() == "text");
  CHECK(tf::tensor(std::string("a\0b", 3)).as<std::string>() == std::string("a\0b", 3));
  const tf::tensor words(std::vector<std::string>{"one", ""});
  CHECK(words.dtype() == sw::dtype::string);
  CHECK(words.shape() == sw::tensor_shape{2});
  CHECK(words.strings() == std::vector<std::string>{"one", ""});
  const xt::xtensor<float, 2> matrix = {{1, 2, 3}, {4, 5, 6}};
  CHECK(tf::tensor(matrix).shape() == sw::tensor_shape{2, 3});
  const tf::tensor doubled(2 * matrix);  // an expression that is computed when it is read
  CHECK(doubled.shape() == sw::tensor_shape{2, 3});
  CHECK(doubled.as<std::vector<float>>() == std::vector<float>{2, 4, 6, 8, 10, 12});
  CHECK(tf::tensor(sw::tensor::scalar(std::int32_t{4})).as<std::int32_t>() == 4);
}

TEST_CASE("xtensor adapts a tensor in place", "[tensorflow][tensor]") {
  static_cast<void>(tf::runtime::open({.library = STEPWELL_STUB}));
  tf::tensor values(sw::dtype::float64, {2, 2});
  auto elements = values.span<double>();
  auto matrix = xt::adapt(elements.data(), elements.size(), xt::no_ownership(), std::vector<std::size_t>{2, 2});
  matrix(1, 0) = 7;
  CHECK(values.as<std::vector<double>>() == std::vector<double>{0, 0, 7, 0});
}

TEST_CASE("copies of a tensor share elements until one is changed", "[tensorflow][tensor]") {
  static_cast<void>(tf::runtime::open({.library = STEPWELL_STUB}));
  tf::tensor first(std::vector<float>{1, 2});
  tf::tensor second = first;
  CHECK(std::as_const(first).span<float>().data() == std::as_const(second).span<float>().data());
  second.span<float>()[0] = 9;
  CHECK(first.as<std::vector<float>>() == std::vector<float>{1, 2});
  CHECK(second.as<std::vector<float>>() == std::vector<float>{9, 2});

  // The graph may keep a tensor that it got: the caller's next write must not be seen there.
  CHECK(first.for_graph(0).raw() != first.raw());
  const auto kept = first.for_graph(1);
  CHECK(kept.raw() == first.raw());
  first.span<float>()[0] = 5;
  CHECK(kept.as<std::vector<float>>() == std::vector<float>{1, 2});
}

TEST_CASE("a tensor is read only as what it holds", "[tensorflow][tensor]") {
  static_cast<void>(tf::runtime::open({.library = STEPWELL_STUB}));
  const tf::tensor numbers(std::vector<float>{1, 2});
  CHECK_THROWS_WITH(numbers.as<double>(), ContainsSubstring("float32 [2] was read as one with float64"));
  CHECK_THROWS_WITH(numbers.as<float>(), ContainsSubstring("exactly one element"));
  CHECK_THROWS_AS(numbers.strings(), sw::invalid_argument_error);
  CHECK_THROWS_AS(tf::tensor("text").view(), sw::invalid_argument_error);
  CHECK_THROWS_AS(tf::tensor(sw::dtype::resource, {}), sw::invalid_argument_error);
  CHECK_THROWS_AS(tf::tensor(sw::dtype::float32, {2, -1}), sw::invalid_argument_error);
  CHECK_THROWS_AS(tf::tensor(sw::dtype::float32, {std::int64_t{1} << 40, std::int64_t{1} << 40}), sw::invalid_argument_error);
  CHECK_THROWS_AS(tf::tensor::of_strings(std::vector<std::string>{"a"}, {2}), sw::invalid_argument_error);
  CHECK_FALSE(tf::tensor().has_value());
}

TEST_CASE("every tensor of the library is deleted", "[tensorflow][tensor]") {
  static_cast<void>(tf::runtime::open({.library = STEPWELL_STUB}));
  const auto before = ::stub_tensors();
  {
    tf::tensor words(std::vector<std::string>{"one", "two"});
    const auto copy = words;
    static_cast<void>(words.for_graph(1));
    CHECK(::stub_tensors() > before);
  }
  CHECK(::stub_tensors() == before);
}

TEST_CASE("a tensor for which there is no memory is an error", "[tensorflow][tensor]") {
  CHECK_THROWS_AS(tf::tensor(sw::dtype::float32, {std::int64_t{1} << 40, 2}), sw::resource_exhausted_error);
  CHECK_THROWS_AS(tf::tensor(sw::dtype::string, {std::int64_t{1} << 40}), sw::resource_exhausted_error);
}
