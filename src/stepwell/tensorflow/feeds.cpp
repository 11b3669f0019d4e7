// SPDX-License-Identifier: Apache-2.0
#include "stepwell/tensorflow/feeds.hpp"

#include "stepwell/base/error.hpp"

#include <cstring>
#include <string>
#include <string_view>

namespace stepwell::tensorflow::detail {

[[gnu::hot]] void graph_call::add(char mark, const char* name) {
  if (is_same_) [[likely]] {
    const char* const at = signature_.c_str() + position_;
    if (*at == mark && std::strcmp(at + head_size, name) == 0) [[likely]] {
      position_ += head_size + size_of_name(at) + 1;
      return;
    }
  }
  add_other(mark, name);
}

void graph_call::add_other(char mark, std::string_view name) {
  if (is_same_) { begin_other(); }
  if (name.find('\0') != std::string_view::npos) {
    throw invalid_argument_error("the name \"" + std::string(name.data()) + "...\" of a fetch, feed or target contains a zero byte");
  }
  const auto size = name.size();
  signature_.push_back(mark);
  signature_.append(reinterpret_cast<const char*>(&size), sizeof(size)).append(name).push_back('\0');
}

}  // namespace stepwell::tensorflow::detail
