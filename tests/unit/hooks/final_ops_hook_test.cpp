// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/toy_model.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/hooks/function_hooks.hpp>
#include <stepwell/model/model_session.hpp>
#include <stepwell/session/training_session.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <tuple>
#include <vector>

namespace sw = stepwell;
using sw::test::adding_model;

TEST_CASE("HOOK-FINAL-1 D-19 final ops are called with the model at the end, and their values are kept", "[hooks][final_ops]") {
  int calls = 0;
  adding_model model;
  sw::final_ops_hook hook{&adding_model::sum, &adding_model::weights, [&calls](const adding_model& m) {
                            ++calls;
                            return m.sum * 2;
                          }};
  sw::monitored_session session(model, std::ref(hook));
  session.run(std::int64_t{3});
  CHECK_FALSE(hook.final_ops_values().has_value());
  CHECK(calls == 0);
  session.close();
  CHECK(hook.final_ops_values() == std::tuple(3.0f, std::vector<float>{2, 3, 4}, 6.0f));
  session.close();
  CHECK(calls == 1);
  model.weights.clear();  // the values are copies
  CHECK(std::get<1>(*hook.final_ops_values()).size() == 3);
}

TEST_CASE("HOOK-FINAL-1 without final ops, or after an error, there are no values", "[hooks][final_ops]") {
  adding_model model;
  sw::monitored_session session(model, sw::final_ops_hook{});
  session.run(std::int64_t{1});
  session.close();
  CHECK_FALSE(session.hook<sw::final_ops_hook<>>().final_ops_values().has_value());

  sw::test::log_capture log;
  sw::final_ops_hook hook{&adding_model::sum};
  sw::monitored_session failing(model, std::ref(hook));
  failing.abandon(std::make_exception_ptr(sw::aborted_error("gone")));
  CHECK_FALSE(hook.final_ops_values().has_value());
}

TEST_CASE("HOOK-FINAL-1 no other session steps the model while final ops read it", "[hooks][final_ops]") {
  struct shared_raw {
    adding_model& model;
    bool* is_alone;

    adding_model& subject() const { return model; }
    auto exclusive() const {
      *is_alone = true;
      return std::shared_ptr<void>(nullptr, [state = is_alone](void*) { *state = false; });
    }
  };
  struct ending_session {
    shared_raw raw;
    shared_raw& raw_session() { return raw; }
  };
  adding_model model;
  bool is_alone = false;
  ending_session session{{model, &is_alone}};
  sw::final_ops_hook hook{[&](const adding_model&) { return is_alone; }};
  hook.end(session);
  CHECK(hook.final_ops_values() == std::tuple(true));
  CHECK_FALSE(is_alone);
}

TEST_CASE("HOOK-FINAL-1 a hook that begins again has no earlier values", "[hooks][final_ops]") {
  sw::final_ops_hook hook{[](adding_model& m) { return m.weights.size(); }};
  adding_model model;
  {
    sw::monitored_session session(model, std::ref(hook));
    session.close();
  }
  CHECK(hook.final_ops_values() == std::tuple(std::size_t{3}));
  const sw::monitored_session session(model, std::ref(hook));
  CHECK_FALSE(hook.final_ops_values().has_value());
}

TEST_CASE("HOOK-FINAL-2 an end of data from a final op causes a warning, and is an error", "[hooks][final_ops]") {
  sw::test::log_capture log;
  adding_model model;
  SECTION("out_of_range_error") {
    sw::monitored_session session(model,
                                  sw::final_ops_hook{[](const adding_model&) -> int { throw sw::out_of_range_error("no more batches"); }});
    CHECK_THROWS_AS(sw::with(session, [](auto& self) { self.run(std::int64_t{1}); }), sw::out_of_range_error);
  }
  SECTION("stop_iteration") {
    sw::monitored_session session(model, sw::final_ops_hook{[](const adding_model&) -> int { throw sw::stop_iteration("enough"); }});
    CHECK_THROWS_AS(sw::with(session, [](auto& self) { self.run(std::int64_t{1}); }), sw::stop_iteration);
  }
  CHECK(log.contains(sw::log_level::warning, "dependency back to some input source"));
}

TEST_CASE("any other failure of a final op comes out of close as it is", "[hooks][final_ops]") {
  sw::test::log_capture log;
  adding_model model;
  sw::monitored_session session(model, sw::final_ops_hook{[](const adding_model&) -> int { throw sw::data_loss_error("torn"); }});
  CHECK_THROWS_AS(session.close(), sw::data_loss_error);
  CHECK_FALSE(log.contains(sw::log_level::warning, "dependency"));
}
