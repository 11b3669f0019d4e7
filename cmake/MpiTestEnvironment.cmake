# SPDX-License-Identifier: Apache-2.0
#
# Sets mpi_environment: variables for tests that let Open MPI run as root, and with more processes than processors. Other libraries ignore them.
set(mpi_environment
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe)
