// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/checkpoint/snapshot.hpp>

#include <string>
#include <vector>

namespace sw = stepwell;

TEST_CASE("variables have the same checksum exactly if names, dtypes, shapes and bits are the same", "[checkpoint][checksum]") {
  std::vector<float> weights = {1, 2, 0};
  std::vector<std::string> words = {"ab", "c"};
  double rate = 0.5;
  const auto all = [&](const std::string& name) { return sw::variables({{name, weights}, {"words", words}, {"rate", rate}}); };
  const auto before = sw::checksum(all("weights"));
  CHECK(sw::checksum(all("weights")) == before);
  CHECK(sw::checksum(all("weight")) != before);

  SECTION("an element") { weights[2] = -0.0f; }
  SECTION("a shape") { weights = {1, 2, 0, 0}; }
  SECTION("the border between two strings") { words = {"a", "bc"}; }
  SECTION("a number") { rate = 0.25; }
  CHECK(sw::checksum(all("weights")) != before);
}

TEST_CASE("the checksum depends on the dtype and on the order", "[checkpoint][checksum]") {
  float one = 0;
  int other = 0;
  CHECK(sw::checksum(sw::variables({{"a", one}})) != sw::checksum(sw::variables({{"a", other}})));
  CHECK(sw::checksum(sw::variables({{"a", one}, {"b", other}})) != sw::checksum(sw::variables({{"b", other}, {"a", one}})));
}

TEST_CASE("nested variables count with their full names", "[checkpoint][checksum]") {
  float one = 1;
  CHECK(sw::checksum(sw::variables({{"layer", sw::variables({{"w", one}})}})) == sw::checksum(sw::variables({{"layer/w", one}})));
}
