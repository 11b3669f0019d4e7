// SPDX-License-Identifier: Apache-2.0
#include "stepwell/protocol/detail/boundary_requests.hpp"

#include "stepwell/summary/writer.hpp"

#include <algorithm>

namespace stepwell {

std::shared_ptr<summary::writer> session_facts::event_writer() const {
  if (event_directory.empty()) { return nullptr; }
  return make_event_writer ? make_event_writer() : summary::writer::shared(event_directory);
}

void boundary_requests::request_save(boundary_work& work) {
  if (std::ranges::find(saves_, &work) == saves_.end()) { saves_.push_back(&work); }
}

std::vector<boundary_work*> boundary_requests::take_saves() {
  for (const auto& work : works_.registered()) {
    if (work->is_save_due()) { request_save(*work); }
  }
  return std::exchange(saves_, {});
}

void boundary_requests::trace_into(std::shared_ptr<trace_recorder> recorder) noexcept {
  trace_begin_ = recorder ? recorder->position() : 0;
  trace_ = std::move(recorder);
}

void boundary_requests::end_trace() noexcept {
  if (std::exchange(trace_, nullptr)) { works_.end_trace(); }
}

}  // namespace stepwell
