// SPDX-License-Identifier: Apache-2.0
#include "stepwell/format/checkpoint/detail/ending_file.hpp"

#include "stepwell/format/detail/messages.hpp"
#include "stepwell/format/proto/run_ending.pb.h"

namespace stepwell::format {

std::string encode(const ending_file& ending) {
  ::stepwell::RunEnding message;
  message.set_how(ending.how);
  message.set_cause(ending.cause);
  message.set_text(ending.text);
  message.set_global_step(ending.global_step);
  return print_text(message);
}

result<ending_file> decode_ending_file(std::string_view text) {
  ::stepwell::RunEnding message;
  if (auto parsed = parse_text(message, text, "the ending file"); !parsed) { return parsed.error(); }
  return ending_file{.how = message.how(), .cause = message.cause(), .text = message.text(), .global_step = message.global_step()};
}

}  // namespace stepwell::format
