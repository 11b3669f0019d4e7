// SPDX-License-Identifier: Apache-2.0
#include "dense.hpp"

#include <algorithm>
#include <span>

namespace digits {
namespace {

template<class Tensor>
auto elements(Tensor& tensor) {
  return std::span(tensor.data(), tensor.size());
}

std::span<float> row_of(matrix& values, std::size_t index) {
  return std::span(values.data(), values.size()).subspan(index * values.shape(1), values.shape(1));
}

std::span<const float> row_of(const matrix& values, std::size_t index) {
  return std::span(values.data(), values.size()).subspan(index * values.shape(1), values.shape(1));
}

}  // namespace

template<std::size_t Rank>
parameter<Rank>::parameter(const typename xt::xtensor<float, Rank>::shape_type& shape)
    : value(shape, 0.0F), gradient(shape, 0.0F), first_moment(shape, 0.0F), second_moment(shape, 0.0F) {}

template<std::size_t Rank>
void parameter<Rank>::learn(const adam& optimizer) {
  optimizer.update(elements(value), elements(gradient), elements(first_moment), elements(second_moment));
}

template struct parameter<1>;
template struct parameter<2>;

dense::dense(std::size_t inputs, std::size_t outputs, float limit, stepwell::random_stream random)
    : kernel({inputs, outputs}), bias({outputs}) {
  std::ranges::generate(elements(kernel.value), [&] { return limit * static_cast<float>(2.0 * random.uniform() - 1.0); });
}

void dense::forward(const matrix& inputs, matrix& outputs) const {
  outputs.resize({inputs.shape(0), bias.value.size()});
  multiply(inputs, kernel.value, outputs);
  for (std::size_t i = 0; i < outputs.shape(0); ++i) {
    const auto row = row_of(outputs, i);
    std::ranges::transform(row, elements(bias.value), row.begin(), std::plus{});
  }
}

void dense::backward(const matrix& inputs, const matrix& output_gradient) {
  multiply_transposed_left(inputs, output_gradient, kernel.gradient);
  const auto sum = elements(bias.gradient);
  std::ranges::fill(sum, 0.0F);
  for (std::size_t i = 0; i < output_gradient.shape(0); ++i) {
    std::ranges::transform(sum, row_of(output_gradient, i), sum.begin(), std::plus{});
  }
}

void dense::backward_inputs(const matrix& output_gradient, matrix& input_gradient) const {
  input_gradient.resize({output_gradient.shape(0), kernel.value.shape(0)});
  multiply_transposed_right(output_gradient, kernel.value, input_gradient);
}

void dense::learn(const adam& optimizer) {
  kernel.learn(optimizer);
  bias.learn(optimizer);
}

stepwell::variable_list dense::variables() {
  return stepwell::variables({{"kernel", kernel.value},
                              {"kernel/Adam", kernel.first_moment},
                              {"kernel/Adam_1", kernel.second_moment},
                              {"bias", bias.value},
                              {"bias/Adam", bias.first_moment},
                              {"bias/Adam_1", bias.second_moment}});
}

}  // namespace digits
