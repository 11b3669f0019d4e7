// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hooks/detail/kept_value.hpp"

#include <algorithm>

namespace stepwell {

void kept_value::keep_elements(tensor_view tensor) {
  const auto size = std::min(tensor.bytes.size(), shown_elements * size_of(tensor.dtype));
  std::ranges::copy(tensor.bytes.first(size), bytes_.begin());
  shown_ = std::move(tensor);
  shown_.bytes = {};
}

logged_value kept_value::logged() const {
  if (shown_.dtype == dtype::invalid) { return {text_, number_}; }
  tensor_view view = shown_;
  view.bytes = bytes_;
  return {tensor_text(view), number_};
}

}  // namespace stepwell
