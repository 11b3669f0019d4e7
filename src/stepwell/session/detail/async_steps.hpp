// SPDX-License-Identifier: Apache-2.0
//
// The steps over one source as an object: each call of `next` does one step.
#pragma once

#include "stepwell/coro/detail/initiate.hpp"
#include "stepwell/session/detail/async_driver.hpp"
#include "stepwell/session/detail/async_impl.hpp"

#include <boost/asio/use_awaitable.hpp>

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace stepwell::detail {

/// The result of `async_steps`. `Source` is a reference type if the caller passed an lvalue.
template<class Step, class Async, class Source>
class async_step_sequence {
public:
  async_step_sequence(std::shared_ptr<Async> self, Source&& source)
      : async_(std::move(self)), source_(std::forward<Source>(source)), holder_(*async_, source_) {
    async_->sources().release(source_);
  }
  async_step_sequence(const async_step_sequence&) = delete;
  async_step_sequence& operator=(const async_step_sequence&) = delete;

  /// Does the next step. Returns an empty value when the loop is over; see `async_monitored_session::async_next`.
  /// @lifetime The object must live until the operation has ended.
  template<class Token = boost::asio::use_awaitable_t<>>
  auto next(Token&& token = Token()) {
    return coro::initiate<std::optional<Step>>(
        std::forward<Token>(token), async_, [this] { return async_->how().executor(); },
        [self = async_.get(), to = &holder_] { return detail::next_of<Step>(self, to); });
  }

private:
  std::shared_ptr<Async> async_;
  Source source_;
  source_registration<Async, std::remove_reference_t<Source>> holder_;
};

}  // namespace stepwell::detail
