// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/base/detail/thread.hpp>

#include <thread>

namespace sw = stepwell;

TEST_CASE("a thread has a name of its own, made from its number until it is given one", "[base][thread_name]") {
  std::string before;
  std::string after;
  const std::string& mine = sw::current_thread_name();
  std::thread([&] {
    before = sw::current_thread_name();
    CHECK(before == "thread " + std::to_string(sw::current_thread_id()));
    sw::set_thread_name("reader");
    after = sw::current_thread_name();
  }).join();
  CHECK(after == "reader");
  CHECK(before != mine);
  CHECK(sw::current_thread_name() == mine);
}

TEST_CASE("no two threads have one number, also not one after the other", "[base][thread_name]") {
  const auto mine = sw::current_thread_id();
  std::uint32_t first = 0;
  std::uint32_t second = 0;
  std::thread([&] { first = sw::current_thread_id(); }).join();
  std::thread([&] { second = sw::current_thread_id(); }).join();
  CHECK(mine > 0);
  CHECK(first > 0);
  CHECK(first != mine);
  CHECK(second != mine);
  CHECK(first != second);
  CHECK(sw::current_thread_id() == mine);
}
