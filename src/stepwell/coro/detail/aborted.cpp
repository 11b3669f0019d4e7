// SPDX-License-Identifier: Apache-2.0
#include "stepwell/coro/detail/aborted.hpp"

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

namespace stepwell::coro {

void throw_aborted() { throw boost::system::system_error(boost::asio::error::operation_aborted, "stepwell"); }

bool is_aborted(const std::exception_ptr& failure) noexcept {
  try {
    std::rethrow_exception(failure);
  } catch (const boost::system::system_error& error) { return error.code() == boost::asio::error::operation_aborted; } catch (...) {
    return false;
  }
}

}  // namespace stepwell::coro
