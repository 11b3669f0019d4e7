// SPDX-License-Identifier: Apache-2.0
#include "stepwell/group/detail/launcher.hpp"

#include "stepwell/base/error.hpp"

#include <fmt/format.h>
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
  const char* name;
  const char* rank;
  const char* size;
  const char* local_rank;
};
// Open MPI before Slurm and PMI: mpirun inside of a Slurm job sets both.
constexpr std::array launchers{
    launcher_variables{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"},
    launcher_variables{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    launcher_variables{"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
    launcher_variables{"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
    launcher_variables{"Kubernetes", "JOB_COMPLETION_INDEX", "STEPWELL_GROUP_SIZE", nullptr},
};

int number_in(const environment& variable, const char* name, int otherwise) {
  const char* text = name == nullptr ? nullptr : variable(name);
  if (text == nullptr) { return otherwise; }
  int value = 0;
  const std::string_view all = text;
  const auto [end, failure] = std::from_chars(all.data(), all.data() + all.size(), value);
  if (failure != std::errc() || end != all.data() + all.size() || value < 0) {
    throw invalid_argument_error(
        fmt::format("could not read the rank of this process: the environment variable {} is \"{}\", not a number", name, all));
  }
  return value;
}

/// Returns the first host of a list such as "n[10,20-22],m3" of Slurm.
std::string first_host(std::string_view list) {
  const auto bracket = list.find('[');
  if (bracket >= list.find(',')) { return std::string(list.substr(0, list.find(','))); }
  if (bracket == std::string_view::npos) { return std::string(list); }
  const auto number = list.substr(bracket + 1);
  return std::string(list.substr(0, bracket)) + std::string(number.substr(0, number.find_first_of(",-]")));
}

void add_address(launched_process& found, const environment& variable) {
  if (const char* host = variable("MASTER_ADDR")) {
    found.host = host;
  } else if (const char* nodes = variable("SLURM_STEP_NODELIST"); nodes != nullptr && found.launcher == "Slurm") {
    found.host = first_host(nodes);
  }
  found.port = number_in(variable, "MASTER_PORT", 0);
  if (found.port > 65535) {
    throw invalid_argument_error(fmt::format("the environment variable MASTER_PORT is {}; a port is at most 65535", found.port));
  }
  const char* has_store = variable("TORCHELASTIC_USE_AGENT_STORE");
  found.has_store = has_store != nullptr && std::strcmp(has_store, "True") == 0;
}

}  // namespace

std::optional<launched_process> find_launcher(const environment& variable) {
  for (const auto& launcher : launchers) {
    if (variable(launcher.rank) == nullptr || variable(launcher.size) == nullptr) { continue; }
    launched_process found{.launcher = launcher.name,
                           .rank = number_in(variable, launcher.rank, 0),
                           .size = number_in(variable, launcher.size, 1),
                           .local_rank = number_in(variable, launcher.local_rank, 0)};
    if (found.rank >= found.size) {
      throw invalid_argument_error(fmt::format("the rank of this process is {} ({}), but the group has {} processes ({})", found.rank,
                                               launcher.rank, found.size, launcher.size));
    }
    add_address(found, variable);
    return found;
  }
  return std::nullopt;
}

std::optional<launched_process> find_launcher() {
  return find_launcher([](const char* name) -> const char* { return std::getenv(name); });  // NOLINT(concurrency-mt-unsafe)
}

}  // namespace stepwell
