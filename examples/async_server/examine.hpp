// SPDX-License-Identifier: Apache-2.0
//
// The examination: each second the newest snapshot is measured, beside the training that goes on.
#pragma once

#include "board.hpp"
#include "options.hpp"

#include <boost/asio/awaitable.hpp>

namespace async_server {

/// Measures snapshots on points that are never trained with, until the training ends. `news` is told, and so is the event file
/// of the run directory, with the step of the snapshot.
/// @lifetime `wanted` and `news` must outlive it.
boost::asio::awaitable<void> examine(const options& wanted, board& news);

}  // namespace async_server
