// SPDX-License-Identifier: Apache-2.0
//
// A fully connected layer: forward and backward pass, update, and variables.
#pragma once

#include "adam.hpp"
#include "matrix.hpp"

#include <stepwell/base/random.hpp>
#include <stepwell/base/variable.hpp>

#include <cstddef>

namespace digits {

/// A trained tensor. The moments are Adam's slots.
template<std::size_t Rank>
struct parameter {
  xt::xtensor<float, Rank> value;
  xt::xtensor<float, Rank> gradient;
  xt::xtensor<float, Rank> first_moment;
  xt::xtensor<float, Rank> second_moment;

  explicit parameter(const typename xt::xtensor<float, Rank>::shape_type& shape);
  void learn(const adam& optimizer);
};

struct dense {
  parameter<2> kernel;
  parameter<1> bias;

  /// Initialises the weights uniformly between -`limit` and `limit`, and the biases with zero.
  dense(std::size_t inputs, std::size_t outputs, float limit, stepwell::random_stream random);

  /// Computes outputs = inputs kernel + bias, one example a row.
  void forward(const matrix& inputs, matrix& outputs) const;
  /// Computes the gradients of kernel and bias from the gradient of the outputs.
  void backward(const matrix& inputs, const matrix& output_gradient);
  /// Computes the gradient of the inputs.
  void backward_inputs(const matrix& output_gradient, matrix& input_gradient) const;

  void learn(const adam& optimizer);

  /// Returns the variables with TensorFlow's names for a dense layer and its Adam slots: kernel, kernel/Adam,
  /// kernel/Adam_1, bias, ...
  [[nodiscard]] stepwell::variable_list variables();
};

}  // namespace digits
