// SPDX-License-Identifier: Apache-2.0
#include "stepwell/tensorflow/server.hpp"

#include "stepwell/base/detail/platform.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/tensorflow/detail/c_api.hpp"
#include "stepwell/tensorflow/detail/cluster_tasks.hpp"
#include "stepwell/tensorflow/detail/status.hpp"
#include "stepwell/tensorflow/proto/config.pb.h"
#include "stepwell/tensorflow/runtime.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string>

namespace stepwell::tensorflow {

server::server(const server_options& options) {
  const auto own = options.cluster.find(options.job);
  if (own == options.cluster.end() || options.task < 0 || static_cast<std::size_t>(options.task) >= own->second.size()) {
    throw invalid_argument_error("could not start a server: the cluster has no task " + std::to_string(options.task) + " of job \"" +
                                 options.job + "\"");
  }
  wire::ServerDef definition;
  for (const auto& [name, addresses] : options.cluster) {
    auto& job = *definition.mutable_cluster()->add_job();
    job.set_name(name);
    for (std::size_t i = 0; i < addresses.size(); ++i) { (*job.mutable_tasks())[static_cast<int>(i)] = addresses[i]; }
  }
  definition.set_job_name(options.job);
  definition.set_task_index(options.task);
  definition.set_protocol("grpc");
  const auto bytes = definition.SerializeAsString();
  const auto name = options.job + ":" + std::to_string(options.task);
  const auto& tf = detail::functions();
  const detail::call_status outcome;
  auto* const made = tf.new_server(bytes.data(), bytes.size(), outcome.get());
  outcome.check("could not make the server", name);
  tf.server_start(made, outcome.get());
  outcome.check("could not start the server", name);
  detail::add_cluster(options.cluster);
  target_ = tf.server_target(made);  // `made` is not deleted: the library crashes if a server is deleted while calls are open
}

std::string free_local_address() {
  const int listening = stepwell::detail::platform::open_socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  const bool is_bound = listening >= 0 && ::bind(listening, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
                        ::getsockname(listening, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  const int failure = errno;
  if (listening >= 0) { ::close(listening); }
  if (!is_bound) { throw_status(status_from_errno(failure, "could not find a free port", "127.0.0.1")); }
  return "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
}

}  // namespace stepwell::tensorflow
