// SPDX-License-Identifier: Apache-2.0
//
// Requests and answers without sockets.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace async_server {

struct question {
  std::string method;  // "GET"
  std::string target;  // "/status"
  std::string body = {};
  std::vector<std::string> hosts = {};  // each Host header
  std::string origin = {};              // the Origin header; empty: none
  std::string authorization = {};       // the Authorization header; empty: none
};

struct answer {
  int status = 200;
  std::string json;
};

/// Answers at once. Called on the event loop. An exception is answered with 500.
using answering = std::function<answer(const question&)>;

}  // namespace async_server
