// SPDX-License-Identifier: Apache-2.0
#include "routes.hpp"

#include "numbers.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace async_server {

using stepwell::board::access_rules;
using stepwell::board::answer;
using stepwell::board::refusal;
using stepwell::board::request;

namespace {

using json = nlohmann::json;

answer status(const request& /*asked*/, board& news) {
  json all{{"step", news.step},
           {"loss", news.loss},
           {"steps_per_second", news.steps_per_second},
           {"started_from", news.started_from},
           {"is_trained", news.is_trained}};
  if (news.latest) { all["snapshot_step"] = news.latest->taken->step(); }
  if (news.on_test_points) { all["test"] = {{"step", news.on_test_points->step}, {"error", news.on_test_points->error}}; }
  return {200, all.dump()};
}

answer predict(const request& asked, board& news) {
  const auto at = numbers_in(asked.body);
  if (!at) { return refusal(400, "give one or more finite numbers: {\"x\": [0.5, 1]}, or the numbers alone"); }
  if (!news.latest) { return refusal(503, "training has not started; try again later"); }
  const auto now = news.latest;  // one snapshot for the whole answer
  json y = json::array();
  for (const float x : *at) { y.push_back(now->model.at(x)); }
  return {200, json{{"step", now->taken->step()}, {"y", y}}.dump()};
}

answer stop(const request& /*asked*/, board& news) {
  news.stop_training();
  return {200, json{{"stopping_at", news.step}}.dump()};
}

struct route {
  std::string_view target;
  std::string_view method;
  bool needs_token;  // true if the request changes something
  answer (*act)(const request&, board&);
};
constexpr route routes[] = {{"/status", "GET", false, status}, {"/predict", "POST", false, predict}, {"/stop", "POST", true, stop}};

}  // namespace

answer answer_to(const request& asked, const access_rules& rules, board& news) {
  if (auto refused = rules.refusal_of(asked)) { return *std::move(refused); }
  for (const auto& [target, method, needs_token, act] : routes) {
    if (asked.target != target) { continue; }
    if (asked.method != method) { return refusal(405, "use the method " + std::string(method)); }
    if (needs_token && !rules.has_token(asked)) { return refusal(401, "the header Authorization: Bearer TOKEN is required"); }
    return act(asked, news);
  }
  return refusal(404, "not found; use GET /status, POST /predict or POST /stop");
}

}  // namespace async_server
