// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hook/detail/session_facts.hpp"

#include "stepwell/summary/writer.hpp"

namespace stepwell {

std::shared_ptr<summary::writer> session_facts::event_writer() const {
  if (event_directory.empty()) { return nullptr; }
  return make_event_writer ? make_event_writer() : summary::writer::shared(event_directory);
}

}  // namespace stepwell
