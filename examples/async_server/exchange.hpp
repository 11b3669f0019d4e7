// SPDX-License-Identifier: Apache-2.0
//
// A question and its answer, as far as they matter to those who know nothing of sockets.
#pragma once

#include <functional>
#include <string>

namespace async_server {

struct question {
  std::string method;  // "GET"
  std::string target;  // "/status"
  std::string body;
};

struct answer {
  int status = 200;
  std::string json;
};

/// Answers at once; it is called on the event loop. What it throws is answered with 500.
using answering = std::function<answer(const question&)>;

}  // namespace async_server
