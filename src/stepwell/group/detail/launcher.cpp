// SPDX-License-Identifier: Apache-2.0
#include "stepwell/group/detail/launcher.hpp"

#include "stepwell/base/error.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <system_error>

namespace stepwell {

namespace {

using environment = std::function<const char*(const char*)>;

/// The variables of one launcher. `local_rank` may be null.
struct launcher_variables {
  std::string_view name;
  const char* rank;
  const char* size;
  const char* local_rank;
};
constexpr std::string_view mpich = "MPICH";
constexpr std::string_view slurm = "Slurm";
// Open MPI before Slurm and PMI: mpirun inside of a Slurm job sets both.
constexpr std::array launchers{
    launcher_variables{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"},
    launcher_variables{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    launcher_variables{mpich, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
    launcher_variables{slurm, "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
    launcher_variables{"Kubernetes", "JOB_COMPLETION_INDEX", "STEPWELL_GROUP_SIZE", nullptr},
};

int number_in(const environment& variable, const char* name, int otherwise) {
  const char* text = name == nullptr ? nullptr : variable(name);
  if (text == nullptr) { return otherwise; }
  int value = 0;
  const std::string_view all = text;
  const auto [end, failure] = std::from_chars(all.data(), all.data() + all.size(), value);
  if (failure != std::errc() || end != all.data() + all.size() || value < 0) {
    throw invalid_argument_error(fmt::format(
        "could not find the processes of the group: the environment variable {} is \"{}\", not a number; set it or unset it", name, all));
  }
  return value;
}

/// Returns the first name of a list of Slurm, as `scontrol show hostnames` prints it: "n[10,20-22]-ib,m3" begins with "n10-ib".
std::string first_host(std::string_view list) {
  std::string host;
  while (!list.empty() && list.front() != ',') {
    if (list.front() != '[') {
      host += list.front();
      list.remove_prefix(1);
      continue;
    }
    const auto end = list.find(']');
    const auto numbers = list.substr(1, end == std::string_view::npos ? end : end - 1);
    host += numbers.substr(0, numbers.find_first_of(",-"));
    list.remove_prefix(end == std::string_view::npos ? list.size() : end + 1);
  }
  return host;
}

/// Returns the host that MASTER_ADDR names. The brackets of an IPv6 address are removed.
/// @errors `invalid_argument_error` if it is empty, or also contains a scheme or a port.
std::string host_in(std::string_view address) {
  std::string_view host = address;
  if (host.starts_with('[') && host.ends_with(']')) { host = host.substr(1, host.size() - 2); }
  in6_addr ignored{};
  const bool is_ipv6 = ::inet_pton(AF_INET6, std::string(host.substr(0, host.find('%'))).c_str(), &ignored) == 1;
  if (host.empty() || host.find_first_of("[]/ \t\n") != std::string_view::npos || (host.find(':') != std::string_view::npos && !is_ipv6)) {
    throw invalid_argument_error(
        fmt::format("could not find the processes of the group: the environment variable MASTER_ADDR is \"{}\", not a "
                    "host; set it to a name or an address alone, and MASTER_PORT to the port",
                    address));
  }
  return std::string(host);
}

/// Slurm sets this variable for a process that `srun` starts. In a batch script it is absent, although a rank and a size are there.
constexpr auto slurm_nodes = "SLURM_STEP_NODELIST";

void add_address(launched_process& found, const environment& variable) {
  if (const char* host = variable("MASTER_ADDR")) {
    found.host = host_in(host);
  } else if (const char* nodes = variable(slurm_nodes); nodes != nullptr && found.launcher == slurm) {
    found.host = first_host(nodes);
  }
  found.port = number_in(variable, "MASTER_PORT", 0);
  if (found.port > 65535) {
    throw invalid_argument_error(fmt::format("the environment variable MASTER_PORT is {}; a port is at most 65535", found.port));
  }
  const char* has_store = variable("TORCHELASTIC_USE_AGENT_STORE");
  found.has_store = has_store != nullptr && std::strcmp(has_store, "True") == 0;
}

launched_process launched_by(const launcher_variables& launcher, const environment& variable) {
  return {.launcher = std::string(launcher.name),
          .rank = number_in(variable, launcher.rank, 0),
          .size = number_in(variable, launcher.size, 1),
          .local_rank = number_in(variable, launcher.local_rank, 0)};
}

bool is_complete(const launcher_variables& launcher, const environment& variable) {
  return variable(launcher.rank) != nullptr && variable(launcher.size) != nullptr;
}

/// Returns the launcher whose variables are complete, or null. `srun --mpi=pmi2` sets those of MPICH, too, with the same values.
const launcher_variables* complete_launcher(const environment& variable) {
  const auto* found = std::ranges::find_if(launchers, [&](const auto& each) { return is_complete(each, variable); });
  if (found == launchers.end()) { return nullptr; }
  const auto* step = std::ranges::find(launchers, slurm, &launcher_variables::name);
  if (found->name == mpich && variable(slurm_nodes) != nullptr && is_complete(*step, variable)) {
    const auto pmi = launched_by(*found, variable);
    const auto srun = launched_by(*step, variable);
    if (pmi.rank == srun.rank && pmi.size == srun.size) { return step; }
  }
  return found;
}

/// @errors `invalid_argument_error` if a launcher has given a rank and no size: each process would train alone, in the directory of all.
void check_no_rank(const environment& variable) {
  for (const auto& launcher : launchers) {
    if (variable(launcher.rank) == nullptr || launcher.name == slurm) { continue; }  // Slurm sets a rank in each batch script
    throw invalid_argument_error(fmt::format(
        "could not find the processes of the group: the environment variable {} is \"{}\", but {} is not set; set it to the number of "
        "processes, or unset {} to train with one process",
        launcher.rank, variable(launcher.rank), launcher.size, launcher.rank));
  }
}

}  // namespace

std::optional<launched_process> find_launcher(const environment& variable) {
  const auto* launcher = complete_launcher(variable);
  if (launcher == nullptr) {
    check_no_rank(variable);
    return std::nullopt;
  }
  auto found = launched_by(*launcher, variable);
  if (found.rank >= found.size) {
    throw invalid_argument_error(fmt::format("the rank of this process is {} ({}), but the group has {} processes ({})", found.rank,
                                             launcher->rank, found.size, launcher->size));
  }
  if (launcher->name == slurm && found.size > 1 && variable(slurm_nodes) == nullptr) {
    throw invalid_argument_error(fmt::format(
        "could not find the processes of the group: this is a batch script of Slurm, which starts this process once, although {} is {}; start "
        "the program with srun, or unset {} to train with one process",
        launcher->size, found.size, launcher->size));
  }
  add_address(found, variable);
  return found;
}

std::optional<launched_process> find_launcher() {
  return find_launcher([](const char* name) -> const char* { return std::getenv(name); });  // NOLINT(concurrency-mt-unsafe)
}

}  // namespace stepwell
