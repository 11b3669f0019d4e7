// SPDX-License-Identifier: Apache-2.0
//
// The training: on a thread of its own, awaited on the event loop.
#pragma once

#include "board.hpp"
#include "options.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

namespace async_server {

/// Trains, from where the run directory stands, until `wanted.steps`, a signal, or `news.stop_training`; tells `news` how it
/// goes. When this ends the last checkpoint is on the disk.
/// @lifetime `wanted` and `news` must outlive it.
boost::asio::awaitable<void> train(const options& wanted, boost::asio::any_io_executor compute, board& news);

}  // namespace async_server
