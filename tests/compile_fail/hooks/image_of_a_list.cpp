// expect: stepwell: an image is a tensor [height,width], [height,width,channels]
// SPDX-License-Identifier: Apache-2.0
#include <stepwell/hooks/summary_saver_hook.hpp>
#include <stepwell/model/model_session.hpp>

#include <vector>

struct painter {
  std::vector<double> pixels = std::vector<double>(16);

  void step() {}
  stepwell::variable_list variables() { return stepwell::variables({{"pixels", pixels}}); }
};

int main() {
  painter model;
  stepwell::summary_saver_options options{.output_dir = "run"};
  stepwell::monitored_session session(model, stepwell::summary_saver_hook{options, stepwell::summary::image("p", &painter::pixels)});
  session.run();
}
