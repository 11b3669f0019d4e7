// SPDX-License-Identifier: Apache-2.0
//
// The file system that fails on demand, which is also for tests of users, under the names of the other helpers of our tests.
#pragma once

#include <stepwell/testing/fault_file_system.hpp>

namespace stepwell::test {

using event = testing::file_event;
using fault = testing::file_fault;
using testing::fault_file_system;
using operation = testing::file_operation;

}  // namespace stepwell::test
