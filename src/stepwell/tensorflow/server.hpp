// SPDX-License-Identifier: Apache-2.0
//
// A server of TensorFlow in this process. Sessions of this and other processes execute graphs on it, or on several such servers.
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
  std::string job = {};  ///< The job of this server, a key of `cluster`.
  int task = 0;          ///< The task of this server: the index of its address in `cluster[job]`.
};

/// A server of TensorFlow, which executes graphs for sessions. It listens at the address of its task from its construction until the
/// process ends, even if this object is destroyed before: TensorFlow cannot stop a server safely.
///
/// A server executes any operation for every program that can connect to it. Use servers only in a closed network.
/// @threads All functions may be called from any thread.
class server {
public:
  /// Starts the server.
  /// @errors `invalid_argument_error` if `cluster` has no job `job`, or if this job has no task `task`. Errors of TensorFlow, for example
  ///   if the address is in use.
  explicit server(const server_options& options);

  /// Returns the value for `training_options::master`, such as "grpc://host0:2222".
  [[nodiscard]] const std::string& target() const noexcept { return target_; }

private:
  std::string target_;
};

/// Returns "127.0.0.1:PORT" with a port that was free at the time of the call. Use it for clusters on one machine, and for tests.
/// @errors Errors of the operating system, if no port can be opened.
[[nodiscard]] std::string free_local_address();

}  // namespace stepwell::tensorflow
