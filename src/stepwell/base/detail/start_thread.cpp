// SPDX-License-Identifier: Apache-2.0
#include "stepwell/base/detail/start_thread.hpp"

#include <string>
#include <system_error>
#include <utility>

namespace stepwell::detail {

result<std::thread> start_thread(std::string_view name, std::function<void()> body) {
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error& refused) {
    return status(errc::resource_exhausted,
                  "could not start the thread \"" + std::string(name) + "\": " + refused.what() +
                      "; end other threads, or raise the process limit (ulimit -u, or the limit of the container)");
  }
}

}  // namespace stepwell::detail
