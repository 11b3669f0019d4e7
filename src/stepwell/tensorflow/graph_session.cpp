// SPDX-License-Identifier: Apache-2.0
#include "stepwell/tensorflow/graph_session.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/checkpoint/restore.hpp"
#include "stepwell/protocol/state_names.hpp"
#include "stepwell/tensorflow/detail/c_api.hpp"
#include "stepwell/tensorflow/detail/graph_state.hpp"
#include "stepwell/tensorflow/detail/session_core.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell::tensorflow {

[[gnu::hot]] void detail::fetched_values::give_back() noexcept {
  for (auto& one : *all_) { one.release(); }
  from_->spare = std::move(all_);
}

graph_session::graph_session(const graph& over, graph_session_options options) : graph_session(over.state(), std::move(options)) {}
graph_session::graph_session(std::shared_ptr<detail::graph_state> over, graph_session_options options)
    : core_(std::make_shared<detail::session_core>(std::move(over), std::move(options))), call_(&core_->call) {}
graph_session::graph_session(graph_session&&) noexcept = default;
graph_session& graph_session::operator=(graph_session&&) noexcept = default;
graph_session::~graph_session() = default;

namespace {
[[noreturn]] void throw_not_fetched(std::string_view name) {
  throw internal_error("the value of \"" + std::string(name) + "\" was read, but not fetched");
}
}  // namespace

[[gnu::hot]] graph_session::outcome_type graph_session::run_call(bool has_caller_fetches, const run_options* options) {
  auto outcome = core_->run(has_caller_fetches, options, step_);
  step_ = outcome.step_after;
  return outcome;
}

const tensor& graph_session::value_in(const outcome_type& outcome, std::string_view name) {
  for (const auto& one : outcome.plan->values) {
    if (one.name == name) [[likely]] { return outcome.values[one.index]; }
  }
  throw_not_fetched(name);
}
[[gnu::hot]] const tensor& graph_session::value_in(const outcome_type& outcome, const char* name) {
  for (const auto& one : outcome.plan->values) {
    if (std::strcmp(one.name.c_str(), name) == 0) [[likely]] { return outcome.values[one.index]; }
  }
  throw_not_fetched(name);
}

variable_list graph_session::variables() {
  variable_list all;
  bool has_step = false;
  for (const auto& one : core_->saved.all) {
    all.emplace_back(one->name(), std::static_pointer_cast<device_elements>(one));
    has_step |= one->name() == global_step_name;
  }
  if (!has_step) { all.push_back(variable_ref(std::string(global_step_name), step_).optional()); }
  return all;
}

std::shared_ptr<void> graph_session::pull() {
  auto& saved = core_->saved;
  std::vector<detail::c::output> outputs;
  for (const auto& variable : saved.all) {
    for (const auto& part : variable->parts) { outputs.push_back(part.value); }
  }
  if (outputs.empty()) { return nullptr; }
  std::vector<detail::c::tensor*> fetched;
  core_->session->run({}, {}, outputs, fetched, {}, "could not fetch the variables of the graph");
  std::size_t next = 0;
  for (const auto& variable : saved.all) {
    for (auto& part : variable->parts) { part.held = tensor::take(fetched[next++], false); }  // copied before the next run
  }
  return {nullptr, [core = core_](std::nullptr_t) {
            for (const auto& variable : core->saved.all) {
              for (auto& part : variable->parts) { part.held = {}; }
            }
          }};
}

void graph_session::push() {
  auto& saved = core_->saved;
  std::vector<detail::c::output> keys;
  std::vector<tensor> fed;
  for (const auto& variable : saved.all) {
    for (auto& part : variable->parts) {
      keys.push_back(part.restored);
      part.held = part.held.for_graph(1);
      fed.push_back(part.held);
    }
  }
  if (keys.empty()) { return; }
  std::vector<detail::c::tensor*> nothing;
  core_->session->run(keys, fed, {}, nothing, saved.restore_ops, "could not restore the variables of the graph");
  for (const auto& variable : saved.all) {
    for (auto& part : variable->parts) { part.held = {}; }
  }
  read_step();
}

std::vector<tensor> graph_session::run_apart(const std::vector<std::string>& fetches, const target_list& targets,
                                             std::vector<named_feed> feeds) const {
  return core_->run_apart(fetches, targets.names, feeds, "could not run the graph");
}
std::size_t graph_session::plan_count() const noexcept { return core_->plans_made; }
const graph_operations& graph_session::operations() const noexcept { return core_->options.operations; }
std::shared_ptr<const detail::session_core> graph_session::core() const noexcept { return core_; }

void graph_session::init_variables() {
  if (!core_->graph->variables_prefix.empty()) {
    restore(variables(), checkpoint_reader(core_->graph->variables_prefix));
    return push();
  }
  if (core_->init_ops.empty()) {
    if (core_->saved.all.empty()) { return; }
    throw failed_precondition_error(
        "could not initialize the graph: it has neither a collection \"init_op\" nor a collection \"variables\"; set the option init_op, "
        "or start from a checkpoint",
        core_->graph->place);
  }
  static_cast<void>(core_->run_operations({}, core_->init_ops, "could not initialize the variables of the graph"));
  read_step();
}
void graph_session::init_local_variables() {
  if (core_->local_init_ops.empty()) { return; }
  static_cast<void>(core_->run_operations({}, core_->local_init_ops, "could not initialize the local variables of the graph"));
}
std::vector<std::string> graph_session::uninitialized_variables() const {
  return core_->uninitialized(core_->options.operations.ready_for_local_init_op, {"variables", "resources"});
}
std::vector<std::string> graph_session::uninitialized_local_variables() const {
  auto names = core_->uninitialized(core_->options.operations.ready_op, {"variables", "resources", "local_variables"});
  if (names.empty()) { read_step(); }
  return names;
}

std::int64_t graph_session::read_global_step() const {
  read_step();
  return step_;
}
void graph_session::read_step() const {
  if (const auto step = core_->step()) { step_ = *step; }
}

void graph_session::close() { core_->session->close(); }

}  // namespace stepwell::tensorflow
