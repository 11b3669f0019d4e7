// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <options.hpp>

#include <vector>

namespace {

std::optional<digits::options> parsed(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "digits");
  return digits::parse_options(static_cast<int>(arguments.size()), arguments.data());
}

}  // namespace

TEST_CASE("without arguments the defaults apply", "[digits][options]") {
  const auto found = parsed({});
  REQUIRE(found);
  CHECK(found->run_dir == "run");
  CHECK(found->data.empty());
  CHECK_FALSE(found->epochs);
  CHECK(found->threads == 1);
  CHECK_FALSE(found->group);
}

TEST_CASE("every option is taken, in both spellings", "[digits][options]") {
  const auto found = parsed({"--run-dir", "a b", "--steps=7", "--data=d", "--batch-size", "3", "--hidden", "5", "--seed", "11",
                             "--save-steps", "0", "--threads", "2", "--epochs", "4", "--group"});
  REQUIRE(found);
  CHECK(found->run_dir == "a b");
  CHECK(found->steps == 7);
  CHECK(found->data == "d");
  CHECK(found->batch_size == 3);
  CHECK(found->hidden == 5);
  CHECK(found->seed == 11);
  CHECK(found->save_steps == 0);
  CHECK(found->threads == 2);
  CHECK(found->epochs == 4U);
  CHECK(found->group);
}

TEST_CASE("invalid arguments are refused", "[digits][options]") {
  const std::vector<std::vector<const char*>> wrong = {{"--stepz", "3"},
                                                       {"--step", "3"},
                                                       {"bare"},
                                                       {"--steps"},
                                                       {"--steps", "x"},
                                                       {"--steps", "1x"},
                                                       {"--steps", "0"},
                                                       {"--steps", "-1"},
                                                       {"--steps", "1.5"},
                                                       {"--steps", "99999999999999999999"},
                                                       {"--steps", "1", "--steps", "2"},
                                                       {"--epochs", "0"},
                                                       {"--epochs", "1000001"},
                                                       {"--batch-size", "0"},
                                                       {"--hidden", "0"},
                                                       {"--seed", "-1"},
                                                       {"--save-steps", "-1"},
                                                       {"--threads", "0"},
                                                       {"--run-dir="},
                                                       {"--run-dir", ""},
                                                       {"-s", "3"},
                                                       {"--help", "--nonsense"}};
  for (const auto& arguments : wrong) {
    CAPTURE(arguments);
    CHECK_THROWS_AS(parsed(arguments), digits::usage_error);
  }
}

TEST_CASE("help is asked for, and names every option", "[digits][options]") {
  CHECK_FALSE(parsed({"--help"}));
  for (const auto* name :
       {"--run-dir", "--steps", "--epochs", "--data", "--batch-size", "--hidden", "--seed", "--save-steps", "--threads"}) {
    CHECK(digits::help_text().find(name) != std::string::npos);
  }
}
