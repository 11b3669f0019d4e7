// SPDX-License-Identifier: Apache-2.0
//
// The training. Its steps run on a thread of their own, and the event loop awaits them.
#pragma once

#include "board.hpp"
#include "options.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

namespace async_server {

/// Trains from the newest checkpoint of the run directory until `wanted.steps`, a signal, or `news.stop_training`.
/// Publishes its progress in `news`. The last checkpoint is on disk when the operation completes.
/// @lifetime `wanted` and `news` must outlive the operation.
boost::asio::awaitable<void> train(const options& wanted, boost::asio::any_io_executor compute, board& news);

}  // namespace async_server
