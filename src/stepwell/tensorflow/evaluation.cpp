// SPDX-License-Identifier: Apache-2.0
#include "stepwell/tensorflow/evaluation.hpp"

#include "stepwell/checkpoint/restore.hpp"

#include <utility>

namespace stepwell::tensorflow {

graph_evaluation::graph_evaluation(const graph& over, graph_session_options options) : graph_(over.state()), options_(std::move(options)) {}

graph_session graph_evaluation::open_evaluation(const checkpoint_reader& source, const restore_options& options) const {
  graph_session raw(graph_, options_);
  restore(raw.variables(), source, options);
  raw.push();
  raw.init_local_variables();
  return raw;
}

}  // namespace stepwell::tensorflow
