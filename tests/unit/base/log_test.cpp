// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/log_capture.hpp"

#include <stepwell/base/log.hpp>
#include <stepwell/io/pool.hpp>

#include <string>

namespace sw = stepwell;
using sw::test::log_capture;

TEST_CASE("messages within a scope carry its name, the innermost one", "[base][log]") {
  const log_capture log;
  const std::string outer = "run-1";
  const std::string inner = "eval";
  const std::string none;
  {
    const sw::log_scope first(outer);
    sw::log_info("a");
    {
      const sw::log_scope second(inner);
      const sw::log_scope third(none);
      sw::log_info("b");
    }
    sw::log_info("c");
  }
  sw::log_info("d");
  std::vector<std::string> texts;
  for (const auto& message : log.messages()) { texts.push_back(message.text); }
  CHECK(texts == std::vector<std::string>{"[run-1] a", "[eval] b", "[run-1] c", "d"});
}

TEST_CASE("a job of a pool has the name of the scope in which it was posted", "[base][log]") {
  const log_capture log;
  {
    sw::io::pool pool(1);
    const std::string name = "run-1";
    {
      const sw::log_scope scope(name);
      pool.post([] { sw::log_info("in the background"); });
    }
    pool.join();
  }
  CHECK(log.contains(sw::log_level::info, "[run-1] in the background"));
}
