// SPDX-License-Identifier: Apache-2.0
//
// Requests and answers, independent of sockets.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace async_server {

struct question {
  std::string method;  // "GET"
  std::string target;  // "/status"
  std::string body = {};
  std::uint16_t port = 0;                 // on which the request arrived
  std::vector<std::string> hosts = {};    // each Host header
  std::vector<std::string> origins = {};  // each Origin header
  std::string authorization = {};         // the Authorization header; empty if there is none
};

struct answer {
  int status = 200;
  std::string json;
};

/// Returns the answer without waiting. Called on the event loop. The server answers an exception with 500.
using answering = std::function<answer(const question&)>;

}  // namespace async_server
