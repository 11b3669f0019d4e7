// SPDX-License-Identifier: Apache-2.0
//
// A server of TensorFlow's own runtime in this process, for graphs that are placed on several machines.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace stepwell::tensorflow {

/// Options of `server`.
struct server_options {
  /// The addresses of the tasks of each job: `{{"ps", {"host0:2222"}}, {"worker", {"host1:2222", "host2:2222"}}}`.
  std::map<std::string, std::vector<std::string>> cluster = {};
  std::string job = {};  ///< The job of this process.
  int task = 0;          ///< The task of this process: the index of its address.
};

/// A server. It listens at the address of its task from construction until the process ends: TensorFlow cannot stop a server safely.
///
/// A server executes any operation for every program that can connect to it. Use it in a closed network.
/// @threads All functions may be called from any thread.
class server {
public:
  /// Starts the server.
  /// @errors `invalid_argument_error` if the cluster has no such task. Failures of TensorFlow, such as an address in use.
  explicit server(const server_options& options);

  /// Returns the address for `training_options::master`, such as "grpc://host0:2222".
  [[nodiscard]] const std::string& target() const noexcept { return target_; }

private:
  std::string target_;
};

/// Returns "127.0.0.1:PORT" with a port that was free at the time of the call. For clusters within one process, and for tests.
/// @errors Errors of the system.
[[nodiscard]] std::string free_local_address();

}  // namespace stepwell::tensorflow
