// SPDX-License-Identifier: Apache-2.0
//
// Private: declarations of Gloo for the header of ProcessGroupGloo. Packages of LibTorch contain Gloo's functions, but not its headers.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace gloo {

class Context {
public:
  void closeConnections();
  void setTimeout(std::chrono::milliseconds timeout);
};

namespace rendezvous {
class Store {
public:
  static constexpr std::chrono::milliseconds kDefaultTimeout = std::chrono::seconds(30);
  virtual ~Store();
  virtual void set(const std::string& key, const std::vector<char>& value) = 0;
  virtual std::vector<char> get(const std::string& key) = 0;
  virtual void wait(const std::vector<std::string>& keys) = 0;
  virtual void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) = 0;
};
}  // namespace rendezvous

namespace transport {
class Device {
public:
  virtual ~Device();
};
class UnboundBuffer {
public:
  virtual ~UnboundBuffer();
};
}  // namespace transport

}  // namespace gloo
