// expect: stepwell: a data loader of LibTorch cannot continue where it stopped
// SPDX-License-Identifier: Apache-2.0
#include "support/toy_model.hpp"

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

int main() {
  stepwell::test::counting_model model;
  stepwell::monitored_session session(model);
  data_loader loader;
  for (const auto& step : session.steps(loader)) { return step.value; }
}
