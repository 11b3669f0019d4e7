// SPDX-License-Identifier: Apache-2.0
//
// The examination: evaluates the newest snapshot every second while the training continues.
#pragma once

#include "board.hpp"
#include "options.hpp"

#include <boost/asio/awaitable.hpp>

namespace async_server {

/// Evaluates snapshots on points that are not training data, until the training ends. Stores the result in `news` and
/// writes it to the event file of the run directory at the snapshot's step.
/// @lifetime `wanted` and `news` must outlive the operation.
boost::asio::awaitable<void> examine(const options& wanted, board& news);

}  // namespace async_server
