// SPDX-License-Identifier: Apache-2.0
//
// A program that displays progress on its terminal, for progress_on_terminal_test.cpp. Its argument is the scenario.
#include "support/toy_model.hpp"

#include <stepwell/base/clock.hpp>
#include <stepwell/base/log.hpp>
#include <stepwell/hooks/progress_hook.hpp>
#include <stepwell/model/model_session.hpp>

#include <sys/resource.h>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace sw = stepwell;
using namespace std::chrono_literals;
using sw::test::adding_model;

namespace {

const auto manual = std::make_shared<sw::manual_clock>();

/// Returns a session that displays the loss under its name.
auto session_of(adding_model& model, const std::string& name) {
  return sw::monitored_session(sw::training_options{.name = name, .clock = manual}, model,
                               sw::progress_hook{{.last_step = 4}, sw::tag(name, &adding_model::result::loss)});
}
void run(auto& session) {
  manual->advance(1s);
  session.run(std::int64_t{1});
}

/// Two nested sessions, with a log line and a line of the user's while both display their progress.
void nest(adding_model& outer_model) {
  auto outer = session_of(outer_model, "outer");
  run(outer);
  {
    adding_model inner_model;
    auto inner = session_of(inner_model, "inner");
    run(inner);
    sw::log_info("a message");
    sw::print_line("a line of the user's");
    run(inner);
    inner.close();
  }
  run(outer);
  outer.close();
}

/// A session whose line has a bar.
void draw_bar(adding_model& model) {
  sw::monitored_session session(sw::training_options{.clock = manual}, model, sw::progress_hook{{.last_step = 4}});
  run(session);
  session.close();
}

/// A session that the program leaves with an exception, which nothing catches.
void fail(adding_model& model, bool in_the_step) {
  auto session = session_of(model, "failing");
  run(session);
  const auto error = [](auto&&...) { throw std::runtime_error("boom"); };
  if (in_the_step) { model.before = error; }
  run(session);
  error();
}

}  // namespace

int main(int /*count*/, char** words) {
  const rlimit no_core{};
  ::setrlimit(RLIMIT_CORE, &no_core);
  const std::string_view scenario(words[1]);
  adding_model model;
  if (scenario == "nested") { nest(model); }
  if (scenario == "bar") { draw_bar(model); }
  if (scenario == "step_fails") { fail(model, true); }
  if (scenario == "loop_fails") { fail(model, false); }
}
