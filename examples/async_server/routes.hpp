// SPDX-License-Identifier: Apache-2.0
//
// The requests that the server answers.
#pragma once

#include "board.hpp"

#include <stepwell/board/http.hpp>

namespace async_server {

/// Answers `GET /status`, `POST /predict` and, with the token, `POST /stop`. Returns 404, 405, 401 or 400 for other
/// requests, and the answer of `rules` for a request that they reject.
[[nodiscard]] stepwell::board::answer answer_to(const stepwell::board::request& asked, const stepwell::board::access_rules& rules,
                                                board& news);

}  // namespace async_server
