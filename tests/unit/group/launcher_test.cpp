// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/group/detail/launcher.hpp>

#include <map>
#include <string>

namespace sw = stepwell;

namespace {

std::optional<sw::launched_process> launched_with(const std::map<std::string, std::string>& variables) {
  return sw::find_launcher([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

}  // namespace

TEST_CASE("a process without the variables of a launcher trains alone", "[group][launcher]") {
  CHECK_FALSE(launched_with({}));
  CHECK_FALSE(launched_with({{"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}}));
  CHECK_FALSE(launched_with({{"SLURM_PROCID", "0"}}));  // a batch script of one task
}

TEST_CASE("a rank without the number of processes is an error that names both variables", "[group][launcher]") {
  CHECK_THROWS_AS(launched_with({{"RANK", "1"}}), sw::invalid_argument_error);
  CHECK_THROWS_WITH(launched_with({{"RANK", "1"}}), ContainsSubstring("RANK is \"1\"") && ContainsSubstring("WORLD_SIZE is not set"));
  CHECK_THROWS_WITH(launched_with({{"OMPI_COMM_WORLD_RANK", "0"}}), ContainsSubstring("OMPI_COMM_WORLD_SIZE is not set"));
  CHECK_THROWS_WITH(launched_with({{"PMI_RANK", "0"}}), ContainsSubstring("PMI_SIZE is not set"));
  CHECK_THROWS_WITH(launched_with({{"JOB_COMPLETION_INDEX", "0"}}), ContainsSubstring("STEPWELL_GROUP_SIZE is not set"));
  CHECK(launched_with({{"JOB_COMPLETION_INDEX", "0"}, {"RANK", "0"}, {"WORLD_SIZE", "2"}})->launcher == "torchrun");
}

TEST_CASE("torchrun gives rank, size, local rank and the address of rank 0", "[group][launcher]") {
  const auto found =
      launched_with({{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}});
  REQUIRE(found);
  CHECK(found->launcher == "torchrun");
  CHECK(found->rank == 5);
  CHECK(found->size == 8);
  CHECK(found->local_rank == 1);
  CHECK(found->host == "node1");
  CHECK(found->port == 29500);
  CHECK_FALSE(found->has_store);
}

TEST_CASE("torchrun says whether it serves the store itself", "[group][launcher]") {
  CHECK(launched_with({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}})->has_store);
  CHECK_FALSE(launched_with({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"TORCHELASTIC_USE_AGENT_STORE", "False"}})->has_store);
}

TEST_CASE("ranks of Open MPI, MPICH, Slurm and Kubernetes are found", "[group][launcher]") {
  const auto open_mpi = launched_with({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}});
  REQUIRE(open_mpi);
  CHECK(open_mpi->launcher == "Open MPI");
  CHECK(open_mpi->rank == 2);
  CHECK(open_mpi->size == 4);
  CHECK(open_mpi->local_rank == 1);
  CHECK(open_mpi->host.empty());
  CHECK(open_mpi->port == 0);

  const auto mpich = launched_with({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}});
  REQUIRE(mpich);
  CHECK(mpich->launcher == "MPICH");
  CHECK(mpich->rank == 1);

  const auto slurm =
      launched_with({{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "0"}, {"SLURM_STEP_NODELIST", "n[1-2]"}});
  REQUIRE(slurm);
  CHECK(slurm->launcher == "Slurm");
  CHECK(slurm->rank == 3);

  const auto kubernetes = launched_with({{"JOB_COMPLETION_INDEX", "1"}, {"STEPWELL_GROUP_SIZE", "3"}, {"MASTER_ADDR", "job-0.service"}});
  REQUIRE(kubernetes);
  CHECK(kubernetes->launcher == "Kubernetes");
  CHECK(kubernetes->rank == 1);
  CHECK(kubernetes->size == 3);
  CHECK(kubernetes->local_rank == 0);
  CHECK(kubernetes->host == "job-0.service");
}

TEST_CASE("mpirun inside of a Slurm job is found before Slurm", "[group][launcher]") {
  const auto found =
      launched_with({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}});
  REQUIRE(found);
  CHECK(found->launcher == "Open MPI");
  CHECK(found->rank == 1);
}

TEST_CASE("the host of rank 0 is the first one of Slurm's list unless MASTER_ADDR is set", "[group][launcher]") {
  const auto first_of = [](const std::string& list) {
    return launched_with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}, {"SLURM_STEP_NODELIST", list}})->host;
  };
  CHECK(first_of("n7") == "n7");
  CHECK(first_of("n7,m3") == "n7");
  CHECK(first_of("n[10,20-22],m3") == "n10");
  CHECK(first_of("n[07-09]") == "n07");
  CHECK(first_of("a,n[1,2]") == "a");
  CHECK(first_of("node[01-04]-ib") == "node01-ib");  // each as `scontrol show hostnames` expands it
  CHECK(first_of("node[3,5]-ib,m") == "node3-ib");
  CHECK(first_of("r[1-2]n[07-08]x,m") == "r1n07x");
  CHECK(first_of("a[1]") == "a1");
  CHECK(first_of("n[10") == "n10");  // malformed
  const auto chosen =
      launched_with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}, {"SLURM_STEP_NODELIST", "n7"}, {"MASTER_ADDR", "other"}});
  CHECK(chosen->host == "other");
}

TEST_CASE("srun that speaks MPICH's protocol is Slurm, and MPICH's mpirun inside of a Slurm job is not", "[group][launcher]") {
  std::map<std::string, std::string> variables{
      {"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"SLURM_STEP_NODELIST", "n[01-02]"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}};
  CHECK(launched_with(variables)->launcher == "Slurm");
  CHECK(launched_with(variables)->host == "n01");
  variables["PMI_RANK"] = "5", variables["PMI_SIZE"] = "8";  // mpirun starts four processes a node through srun
  CHECK(launched_with(variables)->launcher == "MPICH");
  CHECK(launched_with(variables)->rank == 5);
}

TEST_CASE("several tasks in a batch script of Slurm without srun are an error that names srun", "[group][launcher]") {
  CHECK_THROWS_AS(launched_with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}), sw::invalid_argument_error);
  CHECK_THROWS_WITH(launched_with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}), ContainsSubstring("start the program with srun"));
  CHECK(launched_with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}})->size == 1);
  CHECK(launched_with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"RANK", "1"}, {"WORLD_SIZE", "2"}})->launcher == "torchrun");
}

TEST_CASE("MASTER_ADDR is a host alone", "[group][launcher]") {
  const auto host_of = [](const std::string& address) {
    return launched_with({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", address}})->host;
  };
  CHECK(host_of("train-0.train") == "train-0.train");
  CHECK(host_of("10.0.0.1") == "10.0.0.1");
  CHECK(host_of("::1") == "::1");
  CHECK(host_of("[fe80::1%eth0]") == "fe80::1%eth0");
  for (const auto* address : {"", "node1:29500", "tcp://node1", "[::1]:29500", "node 1", "[", "a:b:c"}) {
    CAPTURE(address);
    CHECK_THROWS_AS(host_of(address), sw::invalid_argument_error);
    CHECK_THROWS_WITH(host_of(address), ContainsSubstring("MASTER_ADDR") && ContainsSubstring("MASTER_PORT"));
  }
}

TEST_CASE("a variable that is no number is an error that names it", "[group][launcher]") {
  CHECK_THROWS_WITH(launched_with({{"RANK", "one"}, {"WORLD_SIZE", "2"}}), ContainsSubstring("RANK") && ContainsSubstring("one"));
  CHECK_THROWS_AS(launched_with({{"RANK", "one"}, {"WORLD_SIZE", "2"}}), sw::invalid_argument_error);
  CHECK_THROWS_WITH(launched_with({{"RANK", "0"}, {"WORLD_SIZE", "2x"}}), ContainsSubstring("WORLD_SIZE"));
  CHECK_THROWS_WITH(launched_with({{"RANK", "0"}, {"WORLD_SIZE", ""}}), ContainsSubstring("WORLD_SIZE"));
  CHECK_THROWS_WITH(launched_with({{"RANK", "-1"}, {"WORLD_SIZE", "2"}}), ContainsSubstring("RANK"));
  CHECK_THROWS_WITH(launched_with({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "?"}}), ContainsSubstring("LOCAL_RANK"));
  CHECK_THROWS_WITH(launched_with({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "http"}}), ContainsSubstring("MASTER_PORT"));
  CHECK_THROWS_WITH(launched_with({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", ""}}), ContainsSubstring("MASTER_PORT is \"\""));
  CHECK_THROWS_WITH(launched_with({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "65536"}}), ContainsSubstring("65536"));
}

TEST_CASE("a rank that is not below the size is an error", "[group][launcher]") {
  CHECK_THROWS_AS(launched_with({{"RANK", "2"}, {"WORLD_SIZE", "2"}}), sw::invalid_argument_error);
  CHECK_THROWS_WITH(launched_with({{"RANK", "2"}, {"WORLD_SIZE", "2"}}), ContainsSubstring("RANK") && ContainsSubstring("WORLD_SIZE"));
  CHECK_THROWS_AS(launched_with({{"RANK", "0"}, {"WORLD_SIZE", "0"}}), sw::invalid_argument_error);
}
