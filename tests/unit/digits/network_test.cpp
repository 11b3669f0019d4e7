// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/thread_group.hpp"

#include <features.hpp>
#include <fingerprint.hpp>
#include <network.hpp>
#include <render.hpp>

#include <stepwell/base/clock.hpp>
#include <stepwell/group/group.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace {

stepwell::update_fence fence;  // no snapshot is taken, so it never waits

digits::batch some_examples(std::size_t count, std::uint64_t first = 0) {
  digits::batch made;
  made.images.resize({count, digits::image_pixels});
  made.labels.resize({count});
  for (std::size_t i = 0; i < count; ++i) {
    const auto drawn = digits::render(3, first + i);
    made.labels(i) = drawn.digit;
    for (std::size_t pixel = 0; pixel < digits::image_pixels; ++pixel) {
      made.images(i, pixel) = static_cast<float>(drawn.pixels[pixel]) / 255.0F;
    }
  }
  return made;
}

/// Returns the loss of a network, computed in double precision with plain loops.
double loss_twin(const digits::network& model, const digits::batch& examples) {
  const auto& kernel1 = model.hidden.kernel.value;
  const auto& kernel2 = model.output.kernel.value;
  double total = 0;
  for (std::size_t i = 0; i < examples.labels.size(); ++i) {
    std::vector<double> logits(10);
    for (std::size_t c = 0; c < 10; ++c) { logits[c] = model.output.bias.value(c); }
    for (std::size_t h = 0; h < kernel1.shape(1); ++h) {
      double sum = model.hidden.bias.value(h);
      for (std::size_t p = 0; p < kernel1.shape(0); ++p) {
        sum += static_cast<double>(examples.images(i, p)) * static_cast<double>(kernel1(p, h));
      }
      for (std::size_t c = 0; c < 10; ++c) { logits[c] += std::max(sum, 0.0) * static_cast<double>(kernel2(h, c)); }
    }
    double sum = 0;
    for (const double logit : logits) { sum += std::exp(logit); }
    total += std::log(sum) - logits[static_cast<std::size_t>(examples.labels(i))];
  }
  return total / static_cast<double>(examples.labels.size());
}

/// Compares some entries of `gradient` with the change of the loss after a small change of `value`.
template<class Tensor>
void check_gradient(const digits::network& model, const digits::batch& examples, Tensor& value, const Tensor& gradient) {
  const std::size_t every = std::max<std::size_t>(1, value.size() / 40);
  for (std::size_t i = every / 2; i < value.size(); i += every) {
    float& moved = value.data()[i];
    const float before = moved;
    moved = before + 1e-3F;
    const double above = loss_twin(model, examples);
    const double width_above = static_cast<double>(moved) - static_cast<double>(before);
    moved = before - 1e-3F;
    const double below = loss_twin(model, examples);
    const double width = width_above + static_cast<double>(before) - static_cast<double>(moved);
    moved = before;
    CHECK(static_cast<double>(gradient.data()[i]) == Approx((above - below) / width).epsilon(1e-2).margin(1e-5));
  }
}

void check_all_gradients(std::size_t hidden, std::size_t examples_count) {
  const auto examples = some_examples(examples_count);
  digits::network model(hidden, 4);
  for (std::size_t i = 0; i < hidden; ++i) { model.hidden.bias.value(i) = 0.05F * static_cast<float>(i % 3); }
  auto trained = model;
  const auto told = trained.step(examples, fence);
  CHECK(static_cast<double>(told.loss) == Approx(loss_twin(model, examples)).epsilon(1e-5));
  check_gradient(model, examples, model.hidden.kernel.value, trained.hidden.kernel.gradient);
  check_gradient(model, examples, model.hidden.bias.value, trained.hidden.bias.gradient);
  check_gradient(model, examples, model.output.kernel.value, trained.output.kernel.gradient);
  check_gradient(model, examples, model.output.bias.value, trained.output.bias.gradient);
}

}  // namespace

TEST_CASE("the gradients are those of the loss", "[digits][network]") { check_all_gradients(7, 6); }

TEST_CASE("a hidden layer of one unit and a batch of one example are matrices like any other", "[digits][network]") {
  check_all_gradients(1, 4);
  check_all_gradients(5, 1);
}

TEST_CASE("a group of processes gets the gradients and the score of the whole batch", "[digits][network]") {
  constexpr std::size_t rows = 7;
  const auto examples = some_examples(rows);
  digits::network alone(5, 4);
  const auto expected = alone.step(examples, fence);
  stepwell::test::thread_job job(3);
  std::vector<std::unique_ptr<digits::network>> trained(3);
  std::vector<digits::score> told(3);
  job.run_well([&](const std::shared_ptr<stepwell::group>& group) {
    group->form({.time = stepwell::system_clock(), .stop = {}}, {});
    const auto rank = static_cast<std::size_t>(group->rank());
    const std::size_t first = rank == 0 ? 0 : rank == 1 ? 3 : rows;  // the part of the last process is empty
    const std::size_t last = rank == 0 ? 3 : rows;
    trained[rank] = std::make_unique<digits::network>(5, 4);
    trained[rank]->group = group;
    told[rank] = trained[rank]->step(some_examples(last - first, first), fence);
  });
  for (std::size_t rank = 0; rank < 3; ++rank) {
    CHECK(told[rank].loss == Approx(expected.loss));
    CHECK(told[rank].accuracy == Approx(expected.accuracy));
    CHECK((trained[rank]->hidden.kernel.value == trained[0]->hidden.kernel.value));
    const auto& gradient = trained[rank]->hidden.kernel.gradient;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      CHECK(gradient.data()[i] == Approx(alone.hidden.kernel.gradient.data()[i]).margin(1e-6));
    }
  }
}

TEST_CASE("a network learns its examples", "[digits][network]") {
  const auto examples = some_examples(64);
  digits::network model(32, 1);
  const auto before = model.evaluate(examples);
  for (int i = 0; i < 200; ++i) { model.step(examples, fence); }
  const auto after = model.evaluate(examples);
  CHECK(before.loss > 1.5F);
  CHECK(after.loss < 0.2F);
  CHECK(after.accuracy > 0.95F);
}

TEST_CASE("the result of a step is that before the update, and an evaluation changes nothing", "[digits][network]") {
  const auto examples = some_examples(10);
  digits::network model(8, 1);
  const auto print = digits::fingerprint(model.variables());
  const auto before = model.evaluate(examples);
  CHECK(digits::fingerprint(model.variables()) == print);
  const auto told = model.step(examples, fence);
  CHECK(told.loss == before.loss);
  CHECK(told.accuracy == before.accuracy);
  CHECK(digits::fingerprint(model.variables()) != print);
}

TEST_CASE("the same seed and batches give the same bits; another seed gives others", "[digits][network]") {
  digits::network one(16, 9), two(16, 9), other(16, 10);
  CHECK(digits::fingerprint(one.variables()) != digits::fingerprint(other.variables()));
  for (std::uint64_t i = 0; i < 20; ++i) {
    const auto examples = some_examples(12, 12 * i);
    one.step(examples, fence);
    const auto elsewhere = examples;  // different memory and alignment
    two.step(elsewhere, fence);
  }
  CHECK(digits::fingerprint(one.variables()) == digits::fingerprint(two.variables()));
}

TEST_CASE("the variables are the whole model: another model with their values continues with the same bits", "[digits][network]") {
  digits::network first(16, 9), second(16, 1234);
  for (std::uint64_t i = 0; i < 10; ++i) { first.step(some_examples(12, 12 * i), fence); }
  const auto from = first.variables();
  const auto to = second.variables();
  REQUIRE(from.size() == to.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    REQUIRE(from[i].bytes().size() == to[i].bytes().size());
    std::memcpy(to[i].writable_bytes().data(), from[i].bytes().data(), from[i].bytes().size());
  }
  for (std::uint64_t i = 10; i < 20; ++i) {
    first.step(some_examples(12, 12 * i), fence);
    second.step(some_examples(12, 12 * i), fence);
  }
  CHECK(digits::fingerprint(first.variables()) == digits::fingerprint(second.variables()));
}

TEST_CASE("variables have the names and shapes TensorFlow gives them", "[digits][network]") {
  digits::network model(16, 9);
  std::set<std::string> names;
  for (const auto& variable : model.variables()) { names.insert(variable.name() + stepwell::to_string(variable.shape())); }
  CHECK(names == std::set<std::string>{"beta1_power[]", "beta2_power[]", "hidden/bias/Adam[16]", "hidden/bias/Adam_1[16]",
                                       "hidden/bias[16]", "hidden/kernel/Adam[784,16]", "hidden/kernel/Adam_1[784,16]",
                                       "hidden/kernel[784,16]", "output/bias/Adam[10]", "output/bias/Adam_1[10]", "output/bias[10]",
                                       "output/kernel/Adam[16,10]", "output/kernel/Adam_1[16,10]", "output/kernel[16,10]"});
}

TEST_CASE("a dataset is evaluated whole, in parts of unequal size", "[digits][network]") {
  constexpr std::uint32_t count = 1203;
  digits::idx_array images{{count, 28, 28}, {}}, labels{{count}, {}};
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto drawn = digits::render(3, i);
    images.elements.insert(images.elements.end(), drawn.pixels.begin(), drawn.pixels.end());
    labels.elements.push_back(drawn.digit);
  }
  digits::network model(8, 1);
  const auto whole = model.evaluate(some_examples(count));
  const auto parts = digits::evaluate(model, digits::dataset(images, labels));
  CHECK(parts.loss == Approx(whole.loss));
  CHECK(parts.accuracy == Approx(whole.accuracy));
}

TEST_CASE("cross-entropy knows its textbook values", "[digits][cross_entropy]") {
  digits::matrix logits{{0.0F, 0.0F}, {3.0F, 0.0F}};
  const auto told = digits::cross_entropy(logits, xt::xtensor<std::int32_t, 1>{0, 1});
  const double sure = 1.0 / (1.0 + std::exp(-3.0));
  CHECK(told.loss == Approx((std::log(2.0) + 3.0 + std::log(1.0 + std::exp(-3.0))) / 2.0));
  CHECK(told.accuracy == 0.5F);
  CHECK(logits(0, 0) == Approx(-0.25));
  CHECK(logits(1, 0) == Approx(sure / 2.0));
  CHECK(logits(1, 1) == Approx(-sure / 2.0));
}

TEST_CASE("cross-entropy of huge logits stays finite", "[digits][cross_entropy]") {
  digits::matrix logits{{1e30F, -1e30F, 0.0F}};
  const auto told = digits::cross_entropy(logits, xt::xtensor<std::int32_t, 1>{0});
  CHECK(told.loss == 0.0F);
  CHECK(logits(0, 1) == 0.0F);
}

TEST_CASE("the features of a network are pictures of its first units, zero being gray", "[digits][features]") {
  digits::network model(2, 1);
  for (std::size_t pixel = 0; pixel < digits::image_pixels; ++pixel) {
    model.hidden.kernel.value(pixel, 0) = pixel == 5 ? -4.0F : pixel == 6 ? 2.0F : 0.0F;
    model.hidden.kernel.value(pixel, 1) = 0.0F;
  }
  const auto pictures = digits::features(model, 3);  // the model has only two units
  REQUIRE(pictures.shape() == std::array<std::size_t, 4>{2, 28, 28, 1});
  CHECK(pictures(0, 0, 5, 0) == 0.0F);
  CHECK(pictures(0, 0, 6, 0) == 0.75F);
  CHECK(pictures(0, 27, 27, 0) == 0.5F);
  CHECK(pictures(1, 0, 5, 0) == 0.5F);
}
