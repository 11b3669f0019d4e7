// SPDX-License-Identifier: Apache-2.0
//
// What can be asked.
#pragma once

#include "access.hpp"
#include "board.hpp"
#include "exchange.hpp"

namespace async_server {

/// `GET /status`, `POST /predict`, and with the token `POST /stop`. Anything else is answered with 404, 405, 401 or 400, and
/// whatever `rules` refuse as they say.
[[nodiscard]] answer answer_to(const question& asked, const access_rules& rules, board& news);

}  // namespace async_server
