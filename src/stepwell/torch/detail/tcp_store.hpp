// SPDX-License-Identifier: Apache-2.0
//
// Private: the store of a group in the process of rank 0, through `c10d::TCPStore`.
#pragma once

#include "stepwell/group/detail/group_store.hpp"

#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <chrono>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace stepwell::libtorch::detail {

/// Returns the text of an exception of LibTorch without its stack trace.
[[nodiscard]] std::string text_of_torch(const std::exception_ptr& failure);

/// A `group_store` whose calls have a time limit. `TCPStore` itself waits without a limit for a server that is stopped.
class tcp_store final : public group_store {
public:
  /// A key and its value. Each connection sets it first.
  struct greeting {
    std::string key;
    std::string value;
  };
  tcp_store(std::string host, int port, std::chrono::milliseconds limit, greeting first);
  ~tcp_store() override;

  /// Starts the server in this process.
  /// @errors `unavailable_error` if the port is not free.
  void serve();
  void set(const std::string& key, const std::string& value) override;
  [[nodiscard]] std::optional<std::string> get(const std::string& key) override;
  std::optional<std::string> compare_set(const std::string& key, const std::optional<std::string>& expected,
                                         const std::string& desired) override;

  /// Returns the address of this process on the network that leads to rank 0.
  /// @errors `unavailable_error` before the first call that has reached the store.
  [[nodiscard]] const std::string& own_address() const;
  /// Returns another connection to the store, whose calls have LibTorch's own limit only.
  /// @errors Those of `c10d::TCPStore`.
  [[nodiscard]] c10::intrusive_ptr<c10d::Store> new_client() const;

private:
  using action = std::function<std::optional<std::string>(c10d::TCPStore&)>;
  std::optional<std::string> call(std::string_view tried, action act);

  std::string host_;
  int port_;
  std::chrono::milliseconds limit_;
  greeting first_;
  c10::intrusive_ptr<c10d::TCPStore> server_;
  c10::intrusive_ptr<c10d::TCPStore> client_;  // null before a connection and after a failure
  std::string own_address_;
  std::string logged_;  // the last failure that was logged
};

}  // namespace stepwell::libtorch::detail
