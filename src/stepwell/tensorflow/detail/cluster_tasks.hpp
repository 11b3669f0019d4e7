// SPDX-License-Identifier: Apache-2.0
//
// The tasks of the clusters that this process has servers in, and which of them do not answer. An error of TensorFlow about a time-out does
// not name the task that did not answer.
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::tensorflow::detail {

/// Adds the tasks of a cluster to those that `silent_tasks` asks. @threads Any.
void add_cluster(const std::map<std::string, std::vector<std::string>>& cluster);

/// Returns the task whose server is `master`, such as "/job:chief/task:0" for "grpc://host:2222". Empty if no cluster has this address.
/// @threads Any.
[[nodiscard]] std::string name_of_task(std::string_view master);

/// Returns the tasks of all clusters, and the server `master` such as "grpc://host:2222", that do not answer within `limit`: for example
/// `/job:ps/task:0 at host:2222`. A server answers if it accepts a connection and sends the first frame of HTTP/2. If `among` is not null,
/// only `master` and the tasks with these names, such as "/job:ps/task:0", are asked.
/// @threads Any.
[[nodiscard]] std::vector<std::string> silent_tasks(std::string_view master, std::chrono::milliseconds limit,
                                                    const std::set<std::string>* among = nullptr);

/// Returns a sentence about the silent tasks for an error message, or an empty text if all answer. Waits at most for `limit`, and for 1 s.
[[nodiscard]] std::string sentence_about_tasks(std::string_view master, std::chrono::milliseconds limit,
                                               const std::set<std::string>* among = nullptr);

}  // namespace stepwell::tensorflow::detail
