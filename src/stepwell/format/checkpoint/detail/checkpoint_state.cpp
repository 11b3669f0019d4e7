// SPDX-License-Identifier: Apache-2.0
#include "stepwell/format/checkpoint/detail/checkpoint_state.hpp"

#include "stepwell/format/detail/messages.hpp"
#include "stepwell/format/proto/checkpoint_state.pb.h"

#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <iterator>

namespace stepwell::format {
namespace {

constexpr std::size_t max_path = 4096;  // operating systems reject longer paths

bool is_too_long(const std::string& path) { return path.size() > max_path; }

}  // namespace

std::string encode(const checkpoint_state& state) {
  ::tensorflow::CheckpointState message;
  message.set_model_checkpoint_path(state.model_checkpoint_path);
  for (const auto& path : state.all_model_checkpoint_paths) { message.add_all_model_checkpoint_paths(path); }
  for (const auto time : state.all_model_checkpoint_timestamps) { message.add_all_model_checkpoint_timestamps(time); }
  message.set_last_preserved_timestamp(state.last_preserved_timestamp);
  return print_text(message);
}

result<checkpoint_state> decode_checkpoint_state(std::string_view text) {
  ::tensorflow::CheckpointState message;
  if (auto parsed = parse_text(message, text, "the state file"); !parsed) { return parsed.error(); }
  if (message.model_checkpoint_path().empty()) { return status(errc::data_loss, "the state file has no model_checkpoint_path"); }
  if (is_too_long(message.model_checkpoint_path()) || std::ranges::any_of(message.all_model_checkpoint_paths(), is_too_long)) {
    return status(errc::data_loss, fmt::format("the state file has a path of more than {} bytes", max_path));
  }
  auto& paths = *message.mutable_all_model_checkpoint_paths();
  checkpoint_state state{.model_checkpoint_path = message.model_checkpoint_path(),
                         .all_model_checkpoint_paths = {std::make_move_iterator(paths.begin()), std::make_move_iterator(paths.end())},
                         .all_model_checkpoint_timestamps = {message.all_model_checkpoint_timestamps().begin(),
                                                             message.all_model_checkpoint_timestamps().end()},
                         .last_preserved_timestamp = message.last_preserved_timestamp()};
  if (state.all_model_checkpoint_timestamps.size() != state.all_model_checkpoint_paths.size()) {
    state.all_model_checkpoint_timestamps.clear();
  }
  return state;
}

}  // namespace stepwell::format
