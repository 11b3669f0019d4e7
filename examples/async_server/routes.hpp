// SPDX-License-Identifier: Apache-2.0
//
// What can be asked.
#pragma once

#include "board.hpp"
#include "exchange.hpp"

namespace async_server {

/// `GET /status`, `POST /predict`, `POST /stop`; anything else is answered with 404, 405 or 400.
[[nodiscard]] answer answer_to(const question& asked, board& news);

}  // namespace async_server
