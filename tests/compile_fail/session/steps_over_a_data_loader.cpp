// expect: stepwell: a data loader of LibTorch cannot continue where it stopped
// SPDX-License-Identifier: Apache-2.0
// at most: 4000 bytes
#include <stepwell/model/model_session.hpp>

/// The members of torch::data::StatelessDataLoader and its iterator that a loop uses.
struct batch_iterator {
  batch_iterator& operator++();
  int& operator*();
  bool operator==(const batch_iterator&) const;
};
struct data_loader {
  batch_iterator begin();
  batch_iterator end();
  void join();
  const int& options() const noexcept;
};

struct model {
  int step(const int& batch) { return batch; }
  stepwell::variable_list variables() { return {}; }
};

int main() {
  model trained;
  stepwell::monitored_session session(trained);
  data_loader loader;
  session.run_all(loader);
  for (const auto& step : session.steps(loader)) { return step.value; }
}
