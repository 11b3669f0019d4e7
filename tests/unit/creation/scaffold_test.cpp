// SPDX-License-Identifier: Apache-2.0
#include <stepwell/creation/scaffold.hpp>

#include "support/catch.hpp"
#include "support/toy_model.hpp"
#include "support/two_part_model.hpp"

#include <stepwell/model/model_session.hpp>

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace sw = stepwell;
using sw::test::counting_model;
using sw::test::two_part_model;
using two_parts = sw::scaffold<two_part_model>;
using names = std::vector<std::string>;

namespace {

bool has_nothing(const two_parts& made) {
  return !made.init_op() && !made.init_fn() && !made.ready_op() && !made.ready_for_local_init_op() && !made.local_init_op() &&
         !made.summary_op() && !made.saver();
}

auto tells(std::string what) {
  return [what = std::move(what)](two_part_model& model) { model.tell(what); };
}

}  // namespace

TEST_CASE("SCAF-1 finalize creates the absent parts except init_fn, an empty summary and a saver", "[session][scaffold]") {
  two_parts made;
  CHECK(&made.finalize() == &made);
  CHECK(made.is_finalized());
  CHECK(made.init_op());
  CHECK_FALSE(made.init_fn());
  CHECK(made.ready_op());
  CHECK(made.ready_for_local_init_op());
  CHECK(made.local_init_op());
  CHECK_FALSE(made.summary_op());
  CHECK_FALSE(made.saver());  // the session's options decide
}

TEST_CASE("SCAF-2 a scaffold that is not finalized has nothing, and has asked the model for nothing", "[session][scaffold]") {
  const two_parts made;
  CHECK(has_nothing(made));
  CHECK_FALSE(made.is_finalized());
  const two_parts of_options(sw::scaffold_options<two_part_model>{});
  CHECK(has_nothing(of_options));
}

TEST_CASE("SCAF-3 SCAF-5 given functions are used unchanged, and finalize returns the scaffold itself", "[session][scaffold]") {
  two_part_model model;
  two_parts made({.init_op = tells("my init"),
                  .ready_op = [](const two_part_model&) { return names{"never"}; },
                  .ready_for_local_init_op = [](const two_part_model&) { return names{"local never"}; },
                  .local_init_op = tells("my local init"),
                  .saver = sw::saver_options{.basename = "mine"}});
  CHECK(&made.finalize() == &made);
  made.init_op()(model);
  made.local_init_op()(model);
  CHECK(model.story == "my init my local init");
  CHECK(made.ready_op()(model) == names{"never"});
  CHECK(made.ready_for_local_init_op()(model) == names{"local never"});
  CHECK(made.saver()->basename == "mine");
}

TEST_CASE("SCAF-4 two default scaffolds of one model have the same functions", "[session][scaffold]") {
  two_part_model model;
  two_parts one;
  two_parts other;
  one.finalize();
  other.finalize();
  CHECK(one.ready_op()(model) == other.ready_op()(model));
  one.init_op()(model);
  other.init_op()(model);
  one.local_init_op()(model);
  other.local_init_op()(model);
  CHECK(model.story == "init init local_init local_init");
  CHECK(one.ready_op()(model).empty());
  CHECK(other.ready_op()(model).empty());
}

TEST_CASE("SCAF-6 finalizing again changes nothing", "[session][scaffold]") {
  two_part_model model;
  two_parts made({.init_op = tells("my init")});
  made.finalize();
  made.finalize();
  CHECK(made.is_finalized());
  made.init_op()(model);
  CHECK(model.story == "my init");
}

TEST_CASE("SCAF-8 D-21 init_fn is given by the user with two arguments and called with one: its scaffold is bound", "[session][scaffold]") {
  two_part_model model;
  const two_parts* owner = nullptr;
  const two_parts made({.init_fn = [&](const two_parts& mine, two_part_model& given) {
    owner = &mine;
    given.tell("init_fn");
  }});
  made.init_fn()(model);
  CHECK(owner == &made);
  CHECK(model.story == "init_fn");
}

TEST_CASE("SCAF-8 D-21 an init_fn sets the global step of a model that counts itself", "[session][scaffold]") {
  struct own_count_model {
    std::int64_t count = 0;
    void step() { ++count; }
    std::int64_t& global_step() { return count; }
    sw::variable_list variables() { return {}; }
  };
  using scaffold = sw::scaffold<own_count_model>;
  own_count_model model;
  const auto warm = std::make_shared<scaffold>(
      sw::scaffold_options<own_count_model>{.init_fn = [](const scaffold&, own_count_model& given) { given.count = 100; }});
  sw::monitored_session session(sw::chief_session_creator<own_count_model>(model, warm));
  CHECK(session.global_step() == 100);
  session.run();
  CHECK(session.global_step() == 101);
}

TEST_CASE("SCAF-9 a scaffold takes from another what it was not given itself, as it is at that moment", "[session][scaffold]") {
  two_part_model model;
  const two_parts* owner = nullptr;
  two_parts other({.init_op = tells("other init"),
                   .init_fn = [&](const two_parts& mine, two_part_model&) { owner = &mine; },
                   .local_init_op = tells("other local init"),
                   .saver = sw::saver_options{.basename = "other"}});
  SECTION("what was given wins; the user's init_fn is copied and gets the new scaffold") {
    const two_parts made({.init_op = tells("my init"), .copy_from_scaffold = &other});
    made.init_op()(model);
    made.local_init_op()(model);
    made.init_fn()(model);
    CHECK(model.story == "my init other local init");
    CHECK(owner == &made);
    CHECK(made.saver()->basename == "other");
  }
  SECTION("one that is not finalized contributes only what its user gave") {
    const two_parts made({.copy_from_scaffold = &other});
    CHECK_FALSE(made.ready_op());
    other.finalize();
    CHECK_FALSE(made.ready_op());
  }
  SECTION("one that is finalized contributes its defaults too") {
    other.finalize();
    const two_parts made({.copy_from_scaffold = &other});
    CHECK(made.ready_op());
    CHECK_FALSE(made.is_finalized());
  }
}

TEST_CASE("SCAF-9 a scaffold can only be copied from a scaffold of the same model", "[session][scaffold]") {
  using source = decltype(sw::scaffold_options<two_part_model>::copy_from_scaffold);
  STATIC_REQUIRE(std::is_assignable_v<source&, const two_parts*>);
  STATIC_REQUIRE_FALSE(std::is_assignable_v<source&, const sw::scaffold<counting_model>*>);
  STATIC_REQUIRE_FALSE(std::is_assignable_v<source&, const std::string*>);
}

TEST_CASE("SCAF-10 the ready operations name what is not initialised, and are empty once the init operations ran", "[session][scaffold]") {
  two_part_model model;
  two_parts made;
  made.finalize();
  CHECK(made.ready_op()(model) == names{"my_var", "my_local_var"});
  CHECK(made.ready_for_local_init_op()(model) == names{"my_var"});
  made.init_op()(model);
  CHECK(made.ready_for_local_init_op()(model).empty());
  CHECK(made.ready_op()(model) == names{"my_local_var"});
  made.local_init_op()(model);
  CHECK(made.ready_op()(model).empty());
}

TEST_CASE("SCAF-10 a model without functions for initialisation counts as initialised and ready", "[session][scaffold]") {
  sw::scaffold<counting_model> made;
  made.finalize();
  CHECK_FALSE(made.init_op());
  CHECK_FALSE(made.ready_op());
  CHECK_FALSE(made.ready_for_local_init_op());
  CHECK_FALSE(made.local_init_op());
}

TEST_CASE("SCAF-11 the default local initialisation can be grouped with one's own, which else takes its place", "[session][scaffold]") {
  two_part_model model;
  two_parts alone({.local_init_op = tells("mine")});
  alone.finalize().local_init_op()(model);
  CHECK(model.story == "mine");
  two_parts grouped({.local_init_op = [](two_part_model& given) {
    two_parts::default_local_init_op()(given);
    given.tell("mine too");
  }});
  grouped.finalize().local_init_op()(model);
  CHECK(model.story == "mine local_init mine too");
}
