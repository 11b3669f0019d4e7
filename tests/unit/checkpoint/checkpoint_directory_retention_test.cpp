// SPDX-License-Identifier: Apache-2.0
#include <stepwell/checkpoint/detail/checkpoint_directory.hpp>

#include "support/catch.hpp"

using namespace stepwell;
using namespace stepwell::detail;

namespace {

std::vector<listed_checkpoint> ours(std::initializer_list<int> steps) {
  std::vector<listed_checkpoint> list;
  for (const int step : steps) { list.push_back({.name = std::to_string(step), .step = step, .time = 3600.0 * step, .is_ours = true}); }
  return list;
}

std::string names(const std::vector<listed_checkpoint>& list) {
  std::string joined;
  for (const auto& entry : list) { joined += entry.name + " "; }
  return joined;
}

}  // namespace

TEST_CASE("the newest stay, the others go", "[checkpoint][retention]") {
  const auto plan = plan_retention(ours({1, 2, 3, 4}), {.max_to_keep = 2}, 0);
  CHECK(names(plan.listed) == "3 4 ");
  CHECK(names(plan.deleted) == "1 2 ");
}

TEST_CASE("without a limit all stay; the newest stays under every rule", "[checkpoint][retention]") {
  CHECK(names(plan_retention(ours({1, 2, 3}), {}, 0).listed) == "1 2 3 ");
  CHECK(plan_retention({}, {.max_to_keep = 2}, 0).listed.empty());
}

TEST_CASE("checkpoints that the saver did not write are not listed any more, and not deleted", "[checkpoint][retention]") {
  auto list = ours({1, 2, 3});
  list[0].is_ours = false;
  const auto plan = plan_retention(list, {.max_to_keep = 1}, 0);
  CHECK(names(plan.listed) == "3 ");
  CHECK(names(plan.deleted) == "2 ");
}

TEST_CASE("pinned ones and the one restored from stay listed beyond the newest", "[checkpoint][retention]") {
  auto list = ours({1, 2, 3, 4});
  list[1].is_protected = true;
  CHECK(names(plan_retention(list, {.max_to_keep = 1}, 0).listed) == "2 4 ");
}

TEST_CASE("one checkpoint of each period of hours stays forever, and is not listed", "[checkpoint][retention]") {
  const auto plan = plan_retention(ours({1, 2, 3, 4, 5, 6, 7}), {.max_to_keep = 1, .keep_every_n_hours = 2}, 0);
  CHECK(names(plan.deleted) == "1 3 5 ");
  CHECK(names(plan.listed) == "7 ");
  CHECK(plan.last_preserved == 6 * 3600.0);
}
