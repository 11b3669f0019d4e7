// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace stepwell::board {

/// Removes the first elements if there are more than `most`.
template<class Sequence>
void keep_newest(Sequence& all, std::size_t most) {
  if (all.size() > most) { all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(most)); }
}

}  // namespace stepwell::board
