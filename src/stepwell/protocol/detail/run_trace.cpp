// SPDX-License-Identifier: Apache-2.0
#include "stepwell/protocol/detail/run_trace.hpp"

#include <utility>

namespace stepwell::detail {

void run_trace::make_own() {
  own_ = std::make_shared<trace_recorder>(requests_.facts().time);
  requests_.trace_into(own_);
}

void run_trace::attach_recorder() {
  if (!requests_.trace()) { make_own(); }
  wanted_ = requests_.trace();
  told_ = requests_.trace_begin();
  if (!own_ || wanted_ == own_) { return; }
  for (auto& span : own_->take().spans) { wanted_->add(std::move(span)); }
  own_.reset();
}

void run_trace::tell(run_metadata& observed) {
  observed = wanted_->since(told_);
  told_ += observed.spans.size();
}

void run_trace::tell_more(run_metadata& observed) const {
  auto more = wanted_->since(told_);
  observed.lost = more.lost;
  for (auto& span : more.spans) { observed.spans.push_back(std::move(span)); }
}

}  // namespace stepwell::detail
