// SPDX-License-Identifier: Apache-2.0
//
// Makes a group of one process, with the installed component.
#include <stepwell/mpi/mpi.hpp>

#include <cstdio>

int main(int argc, char* argv[]) {
  const auto group = stepwell::mpi::make_group(&argc, &argv);
  std::printf("rank %d of %d\n", group->rank(), group->size());
  return group->size() == 1 ? 0 : 1;
}
