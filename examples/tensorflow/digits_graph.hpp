// SPDX-License-Identifier: Apache-2.0
//
// The network of examples/digits as a graph of TensorFlow: 784 pixels, one hidden layer, ten logits, trained with Adam.
#pragma once

#include <stepwell/tensorflow/graph.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace digits {

/// Returns the graph. It takes "images" (rows of pixels) and "labels" (digits), and returns "loss" and "accuracy". Its step is "train_op".
/// The same seed gives the same initial weights.
[[nodiscard]] stepwell::tensorflow::graph make_graph(std::size_t hidden_size, std::uint64_t seed);

/// Returns the names of the variables of that graph, with Adam's slots.
[[nodiscard]] std::vector<std::string> variable_names();

}  // namespace digits
