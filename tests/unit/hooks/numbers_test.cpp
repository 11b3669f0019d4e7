// SPDX-License-Identifier: Apache-2.0
//
// Values of all numeric types, in all hooks that read a value as a number.
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"
#include "unit/hooks/event_reading.hpp"

#include <stepwell/base/tensor.hpp>
#include <stepwell/checkpoint/find_checkpoints.hpp>
#include <stepwell/hooks/best_checkpoint_hook.hpp>
#include <stepwell/hooks/early_stopping_hook.hpp>
#include <stepwell/hooks/evaluate_every.hpp>
#include <stepwell/hooks/logging_tensor_hook.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/progress_hook.hpp>
#include <stepwell/hooks/scheduled_hook.hpp>
#include <stepwell/hooks/summary_saver_hook.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <array>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace sw = stepwell;
using namespace sw::test;

namespace {

/// A 16-bit number of another library: it converts to float, and has no dtype.
struct foreign_number {
  std::uint16_t bits;
  explicit operator float() const { return sw::detail::bfloat16_number(bits); }
};

enum class grade : std::uint8_t { low = 1, high = 2 };

/// One type of numbers, with the bytes of the number 2 in this type.
struct sample_type {
  sw::dtype type;
  std::vector<std::uint8_t> two;
};
const std::vector<sample_type> all_types = {
    {sw::dtype::float32, {0, 0, 0, 0x40}},
    {sw::dtype::float64, {0, 0, 0, 0, 0, 0, 0, 0x40}},
    {sw::dtype::half, {0, 0x40}},
    {sw::dtype::bfloat16, {0, 0x40}},
    {sw::dtype::float8_e5m2, {0x40}},
    {sw::dtype::float8_e4m3fn, {0x40}},
    {sw::dtype::float8_e4m3fnuz, {0x48}},
    {sw::dtype::float8_e4m3b11fnuz, {0x60}},
    {sw::dtype::float8_e5m2fnuz, {0x44}},
    {sw::dtype::float4_e2m1fn, {0x04}},
    {sw::dtype::int4, {2}},
    {sw::dtype::uint4, {2}},
    {sw::dtype::int8, {2}},
    {sw::dtype::uint8, {2}},
    {sw::dtype::int16, {2, 0}},
    {sw::dtype::uint16, {2, 0}},
    {sw::dtype::int32, {2, 0, 0, 0}},
    {sw::dtype::uint32, {2, 0, 0, 0}},
    {sw::dtype::int64, {2, 0, 0, 0, 0, 0, 0, 0}},
    {sw::dtype::uint64, {2, 0, 0, 0, 0, 0, 0, 0}},
    {sw::dtype::qint8, {2}},
    {sw::dtype::quint16, {2, 0}},
};

sw::tensor twos(const sample_type& of, sw::tensor_shape shape) {
  sw::tensor made(of.type, std::move(shape));
  for (std::size_t i = 0; i < made.bytes().size(); ++i) { made.bytes()[i] = std::byte(of.two[i % of.two.size()]); }
  return made;
}

struct model {
  struct result {
    sw::tensor number;
    sw::tensor numbers;
    foreign_number foreign{0x4000};
    std::vector<foreign_number> foreigners = {{0x4000}, {0x4000}};
    std::vector<std::int16_t> whole = {2, 2};
    grade rank = grade::high;
    std::optional<sw::tensor> maybe = std::nullopt;
  };
  sample_type type = all_types.front();
  double rate = 1;
  std::int64_t steps = 0;

  result step() {
    ++steps;
    return {twos(type, {}), twos(type, {3})};
  }
  sw::variable_list variables() { return sw::variables({{"rate", rate}, {"steps", steps}}); }
};
using result = model::result;

/// Returns the first histogram of a tag.
sw::format::histogram_value histogram_in(const std::string& directory, const std::string& tag) {
  return std::get<sw::format::histogram_value>(tagged_in(directory, tag).at(0).second.value);
}

}  // namespace

TEST_CASE("every hook that reads a number reads a tensor of one element, of each type", "[hooks][numbers]") {
  for (const auto& type : all_types) {
    CAPTURE(sw::to_string(type.type));
    const temporary_directory directory;
    const log_capture log;
    std::string shown;
    std::optional<double> logged;
    model trained{type};
    sw::training_options options{.checkpoint_dir = directory.path(), .saves = {.save_steps = 1}};
    auto session = sw::monitored_training_session(
        trained, options, sw::early_stopping_hook{{.patience = 3}, &result::number}, sw::best_checkpoint_hook{&result::number},
        sw::reduce_on_plateau_hook{{.plateau = {.patience = 1}}, &model::rate, &result::number},
        sw::progress_hook{{.last_step = 4, .is_terminal = false, .output = [&](std::string_view text) { shown += text; }}, &result::number},
        sw::summary_saver_hook{
            {.save_steps = 1}, sw::summary::scalar("number", &result::number), sw::summary::histogram("all", &result::numbers)},
        sw::logging_tensor_hook{{.every_n_iter = 1,
                                 .formatter =
                                     [&](const std::map<std::string, sw::logged_value>& all) {
                                       logged = all.at("number").number;
                                       return all.at("number").text;
                                     }},
                                sw::tag("number", &result::number)},
        sw::evaluate_every(
            1, [&](const model&) { return twos(type, {}); }, sw::measure("mean", [](const sw::tensor& one) { return one; })),
        sw::nan_tensor_hook{&result::numbers});
    CHECK(session.run_all().steps == 4);
    session.close();
    CHECK(session.stop_reason().cause == sw::stop_cause::no_progress);
    CHECK(sw::best_checkpoint(directory.path())->value == 2);
    CHECK(trained.rate < 1);
    CHECK(shown.find("loss 2") != std::string::npos);
    CHECK(log.contains(sw::log_level::info, "2"));
    CHECK(logged == 2);
    CHECK(log.contains(sw::log_level::info, "mean = 2"));
    CHECK(scalars_in(directory.path(), "number") == std::map<std::int64_t, float>{{1, 2}, {2, 2}, {3, 2}, {4, 2}});
    CHECK(histogram_in(directory.path(), "all").num == 3);
    CHECK(histogram_in(directory.path(), "all").sum == 6);
  }
}

TEST_CASE("every hook that reads a number reads numbers of other libraries, integers and enumerators", "[hooks][numbers]") {
  const temporary_directory directory;
  const log_capture log;
  std::string shown;
  model trained;
  auto session = sw::monitored_training_session(
      trained, {.checkpoint_dir = directory.path()}, sw::early_stopping_hook{{.patience = 3}, &result::foreign},
      sw::best_checkpoint_hook{&result::rank},
      sw::progress_hook{{.last_step = 4, .is_terminal = false, .output = [&](std::string_view text) { shown += text; }},
                        &result::foreign,
                        sw::tag("rank", &result::rank)},
      sw::summary_saver_hook{{.save_steps = 1},
                             sw::summary::scalar("foreign", &result::foreign),
                             sw::summary::histogram("foreigners", &result::foreigners),
                             sw::summary::histogram("whole", &result::whole)},
      sw::log_every(1, sw::tag("foreign", &result::foreign), sw::tag("all", &result::foreigners), sw::tag("grade", &result::rank)),
      sw::evaluate_every(
          1, [](const model&) { return grade::high; }, sw::measure("rank", [](grade one) { return one; })),
      sw::nan_tensor_hook{&result::foreign}, sw::nan_tensor_hook{&result::foreigners}, sw::nan_tensor_hook{&result::whole});
  CHECK(session.run_all().steps == 4);
  session.close();
  CHECK(sw::best_checkpoint(directory.path())->value == 2);
  CHECK(shown.find("loss 2  rank 2") != std::string::npos);
  CHECK(log.contains(sw::log_level::info, "foreign = 2, all = [2 2], grade = 2"));
  CHECK(log.contains(sw::log_level::info, "rank = 2"));
  CHECK(scalars_in(directory.path(), "foreign").at(1) == 2);
  CHECK(histogram_in(directory.path(), "foreigners").sum == 4);
  CHECK(histogram_in(directory.path(), "whole").sum == 4);
}

TEST_CASE("a NaN is seen in a number of another library, and in a range of them", "[hooks][numbers][nan]") {
  const log_capture log;
  model trained;
  const foreign_number not_a_number{0x7fff};
  const auto fails = [&](auto watched) {
    sw::monitored_session session(trained, sw::nan_tensor_hook{watched});
    CHECK_THROWS_AS(session.run(), sw::nan_loss_error);
  };
  fails([&](const result&) { return not_a_number; });
  fails([&](const result&) { return std::vector<foreign_number>{{0x4000}, not_a_number}; });
}

TEST_CASE("a tensor that is not one real number is an error of the first run that reads it", "[hooks][numbers]") {
  const temporary_directory directory;
  const auto error_of = [&](auto hook) -> std::string {
    model trained;
    sw::monitored_session session(trained, std::move(hook));
    try {
      session.run();
    } catch (const sw::invalid_argument_error& error) { return error.what(); }
    return "no error";
  };
  const auto complex = [](const result&) { return sw::tensor::scalar(std::complex<float>(2, 1)); };
  CHECK_THAT(error_of(sw::early_stopping_hook{{.patience = 3}, &result::numbers}),
             ContainsSubstring("a hook reads this value as one number, but the value is a tensor with 3 elements of float32"));
  CHECK_THAT(error_of(sw::early_stopping_hook{{.patience = 3}, complex}), ContainsSubstring("elements of complex64 are not real numbers"));
  CHECK_THAT(error_of(sw::summary_saver_hook{{.output_dir = directory.path()}, sw::summary::histogram("all", complex)}),
             ContainsSubstring("summary \"all\": a histogram is made of real numbers, but the elements are of complex64"));
}
