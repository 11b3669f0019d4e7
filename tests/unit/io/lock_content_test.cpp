// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/io/detail/lock_content.hpp>

#include <string>

using stepwell::io::detail::parse_lock_content;

TEST_CASE("a lock file is read as it was written, and each beginning of it as one whose end is missing", "[io][lock]") {
  const auto plain = stepwell::io::detail::to_line({"12", "a", "2026-01-31T09:30:00"});
  CHECK(plain == "process 12 on host a since 2026-01-31T09:30:00Z");
  for (std::size_t size = 0; size <= plain.size(); ++size) {
    for (const std::size_t zeros : {std::size_t{0}, std::size_t{3}}) {
      const auto found = parse_lock_content(plain.substr(0, size) + std::string(zeros, '\0'));
      REQUIRE(found);
      CHECK(found->is_whole == (size == plain.size()));
    }
  }
  const auto whole = parse_lock_content(plain);
  CHECK(whole->pid == "12");
  CHECK(whole->host == "a");
  CHECK(whole->since == "2026-01-31T09:30:00");
}

TEST_CASE("a file with other content is no lock file", "[io][lock]") {
  for (const std::string other :
       {"x", "process x", "process 1 on host a\n", "process 1 on host a since x", "process 1 on host a since 2026-01-31T09:30:00Z2",
        "process 1 on host a since 2026-01-31T09:30:00x", "process  1"}) {
    INFO(other);
    CHECK_FALSE(parse_lock_content(other));
  }
  CHECK_FALSE(parse_lock_content("process 1 on host " + std::string(600, 'a')));
}
