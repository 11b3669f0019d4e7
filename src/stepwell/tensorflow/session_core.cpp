// SPDX-License-Identifier: Apache-2.0
#include "stepwell/tensorflow/detail/session_core.hpp"
#include "stepwell/base/detail/locks.hpp"

#include "stepwell/base/detail/thread.hpp"
#include "stepwell/base/detail/visit_dtype.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/protocol/run_request.hpp"
#include "stepwell/tensorflow/detail/cluster_tasks.hpp"
#include "stepwell/tensorflow/detail/config.hpp"
#include "stepwell/tensorflow/detail/flush_denormals.hpp"
#include "stepwell/tensorflow/runtime.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell::tensorflow::detail {
namespace {

bool is_before(const c::output& a, const c::output& b) noexcept {
  return a.oper == b.oper ? a.index < b.index : std::less<>()(a.oper, b.oper);
}

template<class T>
bool contains(const std::vector<T>& all, const T& one) {
  return std::ranges::find(all, one) != all.end();
}

/// Returns true if `given` may be fed where the graph has the shape `wanted`. Allocates nothing.
bool fits(const c::tensor* given, const tensor_shape& wanted) {
  const auto& tf = functions();
  if (tf.num_dims(given) != static_cast<int>(wanted.size())) { return false; }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] >= 0 && tf.dim(given, static_cast<int>(i)) != wanted[i]) { return false; }
  }
  return true;
}

using stored_half = stepwell::detail::stored_number<dtype::half>;
using stored_bfloat16 = stepwell::detail::stored_number<dtype::bfloat16>;

/// A number of 16 bits, for which C++20 has no type.
template<class T>
inline constexpr bool is_stored_number = std::is_same_v<T, stored_half> || std::is_same_v<T, stored_bfloat16>;

/// Returns `use` of a value of the type of numbers or booleans: an arithmetic type, or one of `is_stored_number`. Returns false for other
/// types.
template<class Use>
bool with_number_type(dtype type, const Use& use) {
  bool result = false;
  stepwell::detail::visit_dtype(type, [&]<class T>(std::type_identity<T>) {
    if constexpr (is_stored_number<T>) {
      result = use(T{});
    } else if constexpr (std::is_arithmetic_v<T>) {
      result = dtype_of<T> == type && use(T{});
    }
  });
  return result;
}

/// Returns the bits of the number that is nearest to `value`. If two numbers are equally near, returns the one whose last bit is 0. A number
/// beyond the range becomes infinite.
template<class Stored>
std::uint16_t rounded_bits(double value) noexcept {
  constexpr bool is_half = std::is_same_v<Stored, stored_half>;
  constexpr int fraction_bits = is_half ? 10 : 7;
  constexpr int least_exponent = is_half ? -14 : -126;  // of normal numbers
  constexpr int greatest_exponent = is_half ? 15 : 127;
  constexpr unsigned infinity = is_half ? 0x7c00U : 0x7f80U;
  unsigned bits = infinity;
  const double size = std::abs(value);
  if (std::isnan(value)) {
    bits |= 1U << static_cast<unsigned>(fraction_bits - 1);
  } else if (size < std::ldexp(1.0, greatest_exponent + 1)) {
    const int exponent = size < std::ldexp(1.0, least_exponent) ? least_exponent : std::ilogb(size);
    const auto units = static_cast<unsigned>(std::nearbyint(std::ldexp(size, fraction_bits - exponent)));
    // The first bit of the units of a normal number adds 1 to its exponent, and so does a carry, up to infinity.
    bits = (static_cast<unsigned>(exponent - least_exponent) << static_cast<unsigned>(fraction_bits)) + units;
  }
  return static_cast<std::uint16_t>(bits | (std::signbit(value) ? 0x8000U : 0U));
}

/// Converts a number. Floating-point numbers are rounded. Numbers of 16 bits are rounded as by numpy, where integers are rounded, too, and a
/// number beyond the range becomes infinite. Returns false if the result has another type and an integer would change, or a finite number
/// would become infinite.
template<class To, class From>
bool convert_number(From value, To& to) noexcept {
  if constexpr (is_stored_number<From>) {
    return convert_number(stepwell::detail::to_float(value), to);
  } else if constexpr (std::is_same_v<To, stored_half>) {
    to.bits = rounded_bits<To>(static_cast<double>(value));
    return true;
  } else if constexpr (std::is_same_v<To, stored_bfloat16>) {
    to.bits = rounded_bits<To>(static_cast<double>(static_cast<float>(value)));  // as the type of numpy, which rounds to a float before
    return true;
  } else if constexpr (std::is_floating_point_v<From> && std::is_floating_point_v<To>) {
    if (std::isfinite(value) && std::abs(static_cast<double>(value)) > static_cast<double>(std::numeric_limits<To>::max())) {
      return false;
    }
    to = static_cast<To>(value);
    return true;
  } else if constexpr (std::is_floating_point_v<From>) {
    const bool is_inside = value >= static_cast<From>(std::numeric_limits<To>::min()) &&
                           value < std::ldexp(From{1}, std::numeric_limits<To>::digits);  // false for NaN
    to = is_inside ? static_cast<To>(value) : To{};
    return is_inside && static_cast<From>(to) == value;
  } else {
    to = static_cast<To>(value);  // NOLINT(bugprone-signed-char-misuse): an int8 is a number here
    return static_cast<long double>(to) == static_cast<long double>(value);  // represents every integer of 64 bits
  }
}

/// Returns `fed` with the elements converted to `type`. Empty if one of them is no number, or would change.
std::optional<tensor> converted(const tensor& fed, dtype type) {
  std::optional<tensor> made;
  const bool is_done = with_number_type(fed.dtype(), [&]<class From>(From) {
    return with_number_type(type, [&]<class To>(To) {
      const auto from = fed.bytes();
      auto* const to = static_cast<To*>(functions().tensor_data(made.emplace(type, fed.shape()).raw()));
      for (std::size_t i = 0; i < from.size() / sizeof(From); ++i) {
        if (!convert_number(stepwell::detail::element_at<From>(from, i), to[i])) { return false; }
      }
      return true;
    });
  });
  return is_done ? std::move(made) : std::nullopt;
}

/// Returns a shape of the graph as text: "[?,64]".
std::string text_of(const tensor_shape& shape) {
  std::string text = "[";
  for (const auto size : shape) { text.append(text.size() > 1 ? "," : "").append(size < 0 ? "?" : std::to_string(size)); }
  return text.append("]");
}

std::int64_t step_in(const c::tensor* value, dtype type) {
  const void* const data = functions().tensor_data(value);
  if (type == dtype::int32) {
    std::int32_t step = 0;
    std::memcpy(&step, data, sizeof(step));
    return step;
  }
  std::int64_t step = 0;
  std::memcpy(&step, data, sizeof(step));
  return step;
}

}  // namespace

session_handle::~session_handle() {
  const call_status ignored;
  functions().delete_session(raw, ignored.get());
}

open_session::open_session(const graph_state& graph, const graph_session_options& options)
    : master_(options.target.master), flushes_denormals_(master_.empty() && runs_in_caller(options)) {
  const auto& tf = functions();
  auto* const made = tf.new_session_options();
  const call_status outcome;
  const auto config = config_bytes(options, graph.tasks);
  tf.set_config(made, config.data(), config.size(), outcome.get());
  c::session* raw = nullptr;
  if (outcome.ok()) {
    if (!master_.empty()) {
      tf.set_target(made, master_.c_str());
      limit_ = timeout_of(options);
    }
    raw = tf.new_session(graph.raw, made, outcome.get());
  }
  tf.delete_session_options(made);
  outcome.check("could not open a session of TensorFlow over", graph.place);
  handle_ = std::make_shared<session_handle>(raw);
}

open_session::~open_session() {
  if (limit_.count() == 0) { return; }
  // If closing has not ended, its thread is the last owner.
  static_cast<void>(stepwell::detail::ends_within(limit_, "a call of TensorFlow",
                                                  [handle = std::exchange(handle_, nullptr)]() mutable { handle.reset(); }));
}

void open_session::close() {
  const auto close = [handle = handle_] {
    const call_status ignored;  // a session that failed may not close; it is deleted in any case
    functions().close_session(handle->raw, ignored.get());
  };
  if (limit_.count() == 0) { return close(); }
  if (stepwell::detail::ends_within(limit_, "a call of TensorFlow", close)) { return; }
  throw_abandoned("could not close the session of TensorFlow", limit_, "session");
}

/// Throws the error that a call has not ended after `waited`, and names the tasks that do not answer.
void open_session::throw_abandoned(const std::string& tried, std::chrono::milliseconds waited, const std::string& abandoned) const {
  throw deadline_exceeded_error(tried + " within " + std::to_string(waited.count()) + " ms: " + sentence_about_tasks(master_, limit_) +
                                    "; the " + abandoned + " is abandoned, and its memory is not released before its servers answer",
                                master_);
}

/// Throws a failure. If it may come from a task that does not answer, names these tasks.
void open_session::fail(const call_status& outcome, std::string_view tried) const {
  const auto code = outcome.code();
  const bool is_lost = code == errc::deadline_exceeded || code == errc::unavailable;
  outcome.fail(tried, {}, is_lost && !master_.empty() ? sentence_about_tasks(master_, limit_) : std::string());
}

namespace {

/// A run of the library, with everything that it uses, so that it may outlive its caller. Deletes the values that nobody takes.
struct owned_run {
  owned_run() = default;
  owned_run(const owned_run&) = delete;
  owned_run& operator=(const owned_run&) = delete;
  ~owned_run() {
    for (auto* const one : values) {
      if (one != nullptr) { functions().delete_tensor(one); }
    }
    if (metadata != nullptr) { functions().delete_buffer(metadata); }
  }

  void operator()() {
    std::vector<c::tensor*> raw_fed;
    for (const auto& one : fed) { raw_fed.push_back(one.raw()); }
    const c::buffer given{options.data(), options.size(), nullptr};
    const flush_denormals flushed(flushes_denormals);
    functions().session_run(handle->raw, options.empty() ? nullptr : &given, feeds.data(), raw_fed.data(), static_cast<int>(feeds.size()),
                            outputs.data(), values.data(), static_cast<int>(outputs.size()), targets.data(),
                            static_cast<int>(targets.size()), metadata, outcome.get());
  }

  std::shared_ptr<session_handle> handle;
  bool flushes_denormals = false;
  std::string options;  // encoded
  std::vector<c::output> feeds;
  std::vector<tensor> fed;
  std::vector<c::output> outputs;
  std::vector<c::operation*> targets;
  std::vector<c::tensor*> values;
  c::buffer* metadata = nullptr;
  call_status outcome;
};

}  // namespace

void open_session::run(const std::vector<c::output>& feeds, const std::vector<tensor>& fed, const std::vector<c::output>& outputs,
                       std::vector<c::tensor*>& values, const std::vector<c::operation*>& targets, std::string_view tried,
                       const c::buffer* run_options, c::buffer* metadata) const {
  const auto call = std::make_shared<owned_run>();
  call->handle = handle_;
  call->flushes_denormals = flushes_denormals_;
  if (run_options != nullptr) { call->options.assign(static_cast<const char*>(run_options->data), run_options->length); }
  call->feeds = feeds;
  call->fed = fed;
  call->outputs = outputs;
  call->targets = targets;
  call->values.assign(outputs.size(), nullptr);
  if (metadata != nullptr) { call->metadata = functions().new_buffer(); }
  if (limit_.count() == 0) {
    (*call)();
  } else if (!stepwell::detail::ends_within(2 * limit_, "a call of TensorFlow", [call] { (*call)(); })) {
    throw_abandoned(std::string(tried) + ": TensorFlow has not ended", 2 * limit_, "run");
  }
  if (!call->outcome.ok()) [[unlikely]] { fail(call->outcome, tried); }
  values = std::exchange(call->values, {});
  if (metadata != nullptr) { std::swap(*metadata, *call->metadata); }
}

session_core::session_core(std::shared_ptr<graph_state> over, graph_session_options given)
    : graph(std::move(over)), options(std::move(given)), saved(variables_of(*graph)) {
  find_step();
  find_operations();
  session.emplace(*graph, options);
}

void session_core::find_step() {
  const auto& tf = functions();
  const auto listed = graph->variables("global_step");
  if (listed.size() > 1) {
    throw failed_precondition_error("More than one item in the collection \"global_step\"; a graph has one global step", graph->place);
  }
  auto* const found = listed.empty() ? graph->find("global_step")
                                     : graph->get(split_tensor_name(listed.front().variable_name).first, "collection \"global_step\":");
  if (found == nullptr || tf.num_outputs(found) != 1) { return; }
  const c::output variable{found, 0};
  const bool is_resource = graph->dtype_of(variable) == dtype::resource;
  if (!is_resource && !graph->is_reference(variable)) { return; }  // another operation of that name
  auto element = graph->dtype_of(variable);
  if (is_resource) {
    c::data_type type = 0;
    const call_status outcome;
    tf.attr_type(found, "dtype", &type, outcome.get());
    outcome.check("could not find the type of the global step of", graph->place);
    element = static_cast<dtype>(type);
  }
  if (element != dtype::int64 && element != dtype::int32) {
    throw invalid_argument_error("the global step \"" + std::string(tf.operation_name(found)) + "\" of the graph is a " +
                                     std::string(to_string(element)) + "; it must be an int64 or an int32",
                                 graph->place);
  }
  step_variable_ = step_source{variable, is_resource, element};
  step_read_ = make_step_read({}, "");
}

/// Makes an operation that reads the global step when all operations of `after` are done. Reuses one that an earlier session made.
c::output session_core::make_step_read(const std::vector<c::operation*>& after, const std::string& key) const {
  const auto& tf = functions();
  const stepwell::detail::mutex_lock lock(graph->making);
  auto& known = graph->added["global_step after\n" + key];
  if (known != nullptr) { return {known, 0}; }
  auto* const made = tf.new_operation(graph->raw, step_variable_->is_resource ? "ReadVariableOp" : "Identity",
                                      graph->new_name("stepwell/global_step").c_str());
  tf.add_input(made, step_variable_->variable);
  for (auto* const one : after) { tf.add_control_input(made, one); }
  tf.set_attr_type(made, step_variable_->is_resource ? "dtype" : "T", static_cast<int>(step_variable_->type));
  if (const char* const device = tf.operation_device(step_variable_->variable.oper); *device != '\0') { tf.set_device(made, device); }
  const call_status outcome;
  known = tf.finish_operation(made, outcome.get());
  outcome.check("could not add a read of the global step to", graph->place);
  return {known, 0};
}

std::vector<c::operation*> session_core::initializers(const std::string& name, const std::vector<std::string>& variables,
                                                      const std::vector<std::string>& tables) const {
  if (!name.empty()) { return {graph->get(split_tensor_name(name).first, "init operation")}; }
  std::vector<c::operation*> all;
  for (const auto& collection : variables) {
    for (const auto& one : graph->variables(collection)) { all.push_back(graph->get(one.initializer_name, "initializer of a variable")); }
  }
  for (const auto& collection : tables) {
    for (const auto& one : graph->collection(collection)) {
      all.push_back(graph->get(split_tensor_name(one).first, "initializer of a table"));
    }
  }
  return all;
}

void session_core::find_operations() {
  auto& use = options.operations;
  const auto choose = [&](std::string& name, std::string_view collection) {
    if (name.empty()) { name = graph->only_name_in(collection).value_or(std::string()); }
    if (!name.empty()) { static_cast<void>(graph->get(split_tensor_name(name).first, collection)); }
  };
  choose(use.init_op, "init_op");
  choose(use.ready_op, "ready_op");
  choose(use.ready_for_local_init_op, "ready_for_local_init_op");
  choose(use.local_init_op, "local_init_op");
  choose(use.local_init_op, "saved_model_main_op");
  choose(use.local_init_op, "legacy_init_op");
  choose(use.summary_op, "summary_op");
  // Every optimiser adds its operation to the collection, so several are no mistake. A step without a target then needs the option.
  if (!use.train_op.empty() || graph->collection("train_op").size() == 1) { choose(use.train_op, "train_op"); }
  for (const auto& [name, option] : {std::pair(&use.ready_op, "ready_op"), {&use.ready_for_local_init_op, "ready_for_local_init_op"}}) {
    check_type(*name, option, {dtype::string, dtype::int32});  // contract SM-2: an int32 is the empty list of old graphs
  }
  check_type(use.summary_op, "summary_op", {dtype::string});
  init_ops = initializers(use.init_op, {"variables", "resources"}, {});
  local_init_ops = initializers(use.local_init_op, {"local_variables"}, {"table_initializer"});
}

/// @errors `invalid_argument_error`: the operation `name` has a value that is of none of the types.
void session_core::check_type(const std::string& name, const std::string& option, std::initializer_list<dtype> types) const {
  if (name.empty() || functions().num_outputs(graph->get(split_tensor_name(name).first, option)) == 0) { return; }
  const auto type = graph->dtype_of(graph->get_output(name, option));
  if (std::ranges::find(types, type) != types.end()) { return; }
  throw invalid_argument_error(option + " \"" + name + "\": the tensor holds " + std::string(to_string(type)) + ", but " +
                                   std::string(to_string(*types.begin())) + " is needed; name another tensor in the options of the session",
                               graph->place);
}

/// Returns the plan for `call`, whose signature is not that of the previous request.
call_plan& session_core::make_or_find_plan() {
  const auto& signature = call.signature();
  auto found = calls_.find(signature);
  if (found == calls_.end()) { found = calls_.emplace(signature, make(signature)).first; }
  call.keep_plan(*found->second);
  return *found->second;
}

std::unique_ptr<call_plan> session_core::make(const std::string& signature) {
  auto made = std::make_unique<call_plan>();
  struct wanted_value {
    std::string name;
    c::output from;
  };
  std::vector<wanted_value> fetches;
  std::vector<c::output> feeds;
  std::vector<c::operation*> targets;
  for (std::size_t at = 0; at < signature.size();) {
    const auto [mark, text, end] = graph_call::name_at(signature, at);
    const std::string name(text);
    at = end;
    if (mark == graph_call::feed_mark) {
      const auto to = graph->get_output(name, "feed");
      if (contains(feeds, to)) { stepwell::detail::throw_fed_twice(true, graph_state::name_of(to)); }
      feeds.push_back(to);
      static std::atomic<std::int64_t> number = 0;
      made->feeds.push_back({graph_state::name_of(to), graph->dtype_of(to), graph->shape_of(to), ++number});
    } else if (mark == graph_call::target_mark || mark == graph_call::train_op_mark) {
      const auto& target = mark == graph_call::target_mark ? name : options.operations.train_op;
      auto* const one = graph->get(split_tensor_name(target).first, "target");
      if (!contains(targets, one)) { targets.push_back(one); }
    } else {
      const auto from = graph->get_output(name, "fetch");
      const auto expected = static_cast<dtype>(mark - graph_call::fetch_mark);
      const auto type = graph->dtype_of(from);
      if (expected != dtype::invalid && type != expected) {
        throw invalid_argument_error("fetch \"" + name + "\": the tensor holds " + std::string(to_string(type)) + ", but " +
                                         std::string(to_string(expected)) + " was requested; fetch it with its C++ type",
                                     graph->place);
      }
      if (type == dtype::resource || type == dtype::variant) {
        throw invalid_argument_error("fetch \"" + name + "\": a tensor of " + std::string(to_string(type)) + " cannot be fetched",
                                     graph->place);
      }
      fetches.push_back({name, from});
    }
  }
  std::vector<c::output> outputs;
  for (const auto& one : fetches) {
    if (!contains(feeds, one.from) && !contains(outputs, one.from)) { outputs.push_back(one.from); }
  }
  auto sorted = feeds;
  std::ranges::sort(sorted, is_before);
  for (const auto& one : sorted) {
    const auto index = static_cast<std::size_t>(std::ranges::find(feeds, one) - feeds.begin());
    made->feed_order.push_back({index, made->feeds[index].number});
  }
  made->plan = find_or_make(std::move(outputs), std::move(sorted), std::move(targets));
  const std::size_t fetched = made->plan->outputs.size() - (made->plan->reads_step ? 1 : 0);
  for (const auto& one : fetches) {
    const auto fed = static_cast<std::size_t>(std::ranges::find(feeds, one.from) - feeds.begin());
    if (fed < feeds.size()) {
      const auto known = std::ranges::find(made->fetched_feeds, fed);
      made->values.push_back({one.name, fetched + static_cast<std::size_t>(known - made->fetched_feeds.begin())});
      if (known == made->fetched_feeds.end()) { made->fetched_feeds.push_back(fed); }
    } else {
      const auto found = std::ranges::find(made->plan->outputs, one.from) - made->plan->outputs.begin();
      made->values.push_back({one.name, static_cast<std::size_t>(found)});
    }
  }
  made->fed.resize(made->feed_order.size());
  made->fetched.resize(made->plan->outputs.size());
  made->memory.count = made->plan->types.size() + made->fetched_feeds.size();
  return made;
}

const run_plan* session_core::find_or_make(std::vector<c::output> outputs, std::vector<c::output> feeds,
                                           std::vector<c::operation*> targets) {
  std::ranges::sort(outputs, is_before);
  std::ranges::sort(targets, std::less<>());
  auto made =
      std::make_unique<run_plan>(run_plan{std::move(outputs), std::move(feeds), std::move(targets), {}, false, graph->has_references});
  if (const auto* const known = wider_plan(*made)) { return known; }
  for (const auto& one : made->outputs) { made->types.push_back(graph->dtype_of(one)); }
  if (step_variable_) {
    auto after = made->targets;
    std::string key;
    for (const auto& one : made->outputs) {
      if (!contains(after, one.oper)) { after.push_back(one.oper); }
    }
    std::ranges::sort(after, std::less<>());
    for (auto* const one : after) { key.append(functions().operation_name(one)).push_back('\n'); }
    made->outputs.push_back(make_step_read(after, key));
    made->reads_step = true;
  }
  ++plans_made;
  return plans_.emplace_back(std::move(made)).get();
}

/// Returns an existing plan with the same feeds and targets that fetches everything that `wanted` does, or null. A plan that fetches more
/// is used only if the rest is small and has no side effects, because a new plan costs TensorFlow several milliseconds.
const run_plan* session_core::wider_plan(const run_plan& wanted) const {
  const run_plan* best = nullptr;
  for (const auto& plan : plans_) {
    if (plan->feeds != wanted.feeds || plan->targets != wanted.targets) { continue; }
    const bool has_all = std::ranges::all_of(wanted.outputs, [&](const c::output& one) { return contains(plan->outputs, one); });
    if (!has_all || (best != nullptr && best->outputs.size() <= plan->outputs.size())) { continue; }
    if (is_harmless(wanted, *plan)) { best = plan.get(); }
  }
  return best;
}

bool session_core::is_harmless(const run_plan& wanted, const run_plan& wider) const {
  constexpr std::int64_t small = 256;
  const auto& tf = functions();
  static const std::set<std::string_view> readers = {"ReadVariableOp", "VarHandleOp", "VariableV2", "Variable", "Placeholder"};
  std::set<c::operation*> known;
  std::vector<c::operation*> open;
  const auto look_at = [&](c::operation* one) {
    if (known.insert(one).second) { open.push_back(one); }
  };
  const auto walk = [&](auto&& visit) {
    while (!open.empty()) {
      auto* const one = open.back();
      open.pop_back();
      if (!visit(one)) { return false; }
      for (int i = 0; i < tf.num_inputs(one); ++i) {
        const auto input = tf.operation_input({one, i});
        if (!contains(wanted.feeds, input)) { look_at(input.oper); }
      }
      std::vector<c::operation*> before(static_cast<std::size_t>(tf.num_control_inputs(one)));
      tf.control_inputs(one, before.data(), static_cast<int>(before.size()));
      for (auto* const control : before) { look_at(control); }
    }
    return true;
  };
  for (const auto& one : wanted.outputs) { look_at(one.oper); }
  for (auto* const one : wanted.targets) { look_at(one); }
  walk([](c::operation*) { return true; });
  const auto fetched = wider.outputs.size() - (wider.reads_step ? 1 : 0);
  for (std::size_t i = 0; i < fetched; ++i) {
    const auto& more = wider.outputs[i];
    if (contains(wanted.outputs, more)) { continue; }
    const auto shape = graph->shape_of(more);
    if (!shape || graph->dtype_of(more) == dtype::string) { return false; }
    std::int64_t count = 1;
    for (const auto size : *shape) {
      if (size < 0 || size > small) { return false; }
      count *= std::max<std::int64_t>(size, 1);
      if (count > small) { return false; }
    }
    look_at(more.oper);
  }
  const auto& library = known_operations();
  return walk([&](c::operation* one) {
    const std::string_view type = tf.operation_type(one);
    if (readers.contains(type)) { return true; }
    return library.all.contains(type) && !library.stateful.contains(type);  // other types are functions of the graph, with any content
  });
}

void session_core::convert_feed(const call_plan::checked_feed& wanted, std::size_t index) {
  const auto& fed = call.fed()[index].get();
  if (auto made = fed.dtype() == wanted.type ? std::nullopt : converted(fed, wanted.type)) { call.replace_fed(index, std::move(*made)); }
  check_feed(wanted, call.fed()[index].get());
}

void session_core::check_feed(const call_plan::checked_feed& wanted, const tensor& fed) const {
  if (fed.dtype() != wanted.type) [[unlikely]] {
    const bool are_numbers =
        with_number_type(wanted.type, [](auto) { return true; }) && with_number_type(fed.dtype(), [](auto) { return true; });
    throw invalid_argument_error("feed \"" + wanted.name + "\": the tensor holds " + std::string(to_string(wanted.type)) + ", but " +
                                     std::string(to_string(fed.dtype())) + " was fed" +
                                     (are_numbers ? ", and a number in it would change in a conversion" : ""),
                                 graph->place);
  }
  if (wanted.shape && !fits(fed.raw(), *wanted.shape)) [[unlikely]] {
    throw invalid_argument_error(
        "feed \"" + wanted.name + "\": the tensor has the shape " + text_of(*wanted.shape) + ", but " + to_string(fed.shape()) + " was fed",
        graph->place);
  }
  fed.check(wanted.number);
}

[[gnu::hot]] graph_session::outcome_type session_core::run(bool has_caller_fetches, const run_options* given, std::int64_t step) {
  if (!has_caller_fetches && !call.has_targets()) {
    if (options.operations.train_op.empty()) [[unlikely]] { throw_no_train_op(); }
    call.add_train_op();
  }
  auto* how = call.kept_plan();
  if (how == nullptr) [[unlikely]] { how = &make_or_find_plan(); }
  const auto& plan = *how->plan;
  const auto& fed = call.fed();
  auto* raw = how->fed.data();
  for (const auto [index, number] : how->feed_order) {
    if (!fed[index].get().is_checked(number)) [[unlikely]] { convert_feed(how->feeds[index], index); }
    *raw++ = fed[index].get().raw();
  }
  if (given == nullptr) [[likely]] {
    run_tensorflow(*how, nullptr, nullptr);
  } else {
    const run_with_options with(*given);
    run_tensorflow(*how, with.options(), with.metadata());
    with.record();
  }
  graph_session::outcome_type outcome{{}, step, step, fetched_values(how->memory), how};
  auto* value = outcome.values.data();
  auto* const* fetched = how->fetched.data();
  for (const auto type : plan.types) { value++->refill(*fetched++, type, plan.may_alias); }
  for (const auto index : how->fetched_feeds) { *value++ = fed[index].get(); }
  call.release_feeds();
  if (plan.reads_step) [[likely]] {
    outcome.step_after = step_in(*fetched, step_variable_->type);
    functions().delete_tensor(*fetched);
  } else {
    outcome.step_after = step + (has_step() ? 0 : 1);
  }
  return outcome;
}

/// Runs `how` with the tensors `how.fed`. Sets `how.fetched`.
inline void session_core::run_tensorflow(call_plan& how, const c::buffer* run_options, c::buffer* metadata) {
  if (!how.has_run) [[unlikely]] { return prepare_and_run(how, run_options, metadata); }
  const auto& tf = functions();
  const auto& plan = *how.plan;
  const flush_denormals flushed(session->flushes_denormals());
  tf.session_run(session->raw(), run_options, plan.feeds.data(), how.fed.data(), static_cast<int>(how.fed.size()), plan.outputs.data(),
                 how.fetched.data(), static_cast<int>(how.fetched.size()), plan.targets.data(), static_cast<int>(plan.targets.size()),
                 metadata, status_.get());
  if (tf.get_code(status_.get()) != 0) [[unlikely]] { session->fail(status_, "could not run a step of the graph"); }
}

/// Like `run_tensorflow`, for the first run of `how`, which TensorFlow also prepares. If `how` has neither outputs nor targets, does nothing,
/// because TensorFlow rejects such a run. Every run of `how` is then the first one.
void session_core::prepare_and_run(call_plan& how, const c::buffer* run_options, c::buffer* metadata) {
  const auto& plan = *how.plan;
  if (plan.outputs.empty() && plan.targets.empty()) { return; }
  const auto& fed = call.fed();
  std::vector<tensor> kept;
  for (const auto& one : how.feed_order) { kept.push_back(fed[one.index].get()); }
  session->run(plan.feeds, kept, plan.outputs, how.fetched, plan.targets, "could not run a step of the graph", run_options, metadata);
  how.has_run = true;
}

void session_core::throw_no_train_op() const {
  throw failed_precondition_error(
      "could not run a step: the graph has no collection \"train_op\" with exactly one operation; set the option "
      "train_op, or run with a target: run(target(\"...\"))",
      graph->place);
}

std::vector<tensor> session_core::run_operations(const std::vector<c::output>& outputs, const std::vector<c::operation*>& targets,
                                                 std::string_view tried) const {
  std::vector<c::tensor*> fetched;
  session->run({}, {}, outputs, fetched, targets, tried);
  std::vector<tensor> values;
  for (auto* const one : fetched) { values.push_back(tensor::take(one, graph->has_references)); }
  return values;
}

std::vector<tensor> session_core::run_apart(const std::vector<std::string>& fetches, const std::vector<std::string>& targets,
                                            const std::vector<named_feed>& feeds, std::string_view tried) const {
  call_plan how;
  std::vector<c::output> wanted;
  std::vector<c::output> keys;
  std::vector<c::operation*> operations;
  std::vector<tensor> fed;
  for (const auto& name : fetches) { wanted.push_back(graph->get_output(name, "fetch")); }
  for (const auto& name : targets) { operations.push_back(graph->get(split_tensor_name(name).first, "target")); }
  for (const auto& one : feeds) {
    const auto to = graph->get_output(one.key, "feed");
    how.feeds.push_back({graph_state::name_of(to), graph->dtype_of(to), graph->shape_of(to), 0});
    keys.push_back(to);
    fed.push_back(one.value.for_graph(0));
  }
  for (std::size_t i = 0; i < fed.size(); ++i) {
    if (auto made = fed[i].dtype() == how.feeds[i].type ? std::nullopt : converted(fed[i], how.feeds[i].type)) {
      fed[i] = std::move(*made);
    }
    check_feed(how.feeds[i], fed[i]);
  }
  std::vector<c::output> outputs;  // TensorFlow rejects a run that fetches a fed tensor, and a run with nothing to do
  std::ranges::copy_if(wanted, std::back_inserter(outputs), [&](const c::output& one) { return !contains(keys, one); });
  std::vector<c::tensor*> fetched;
  if (!outputs.empty() || !operations.empty()) { session->run(keys, fed, outputs, fetched, operations, tried); }
  std::vector<tensor> values;
  auto next = fetched.begin();
  for (const auto& one : wanted) {
    const auto known = std::ranges::find(keys, one);
    values.push_back(known == keys.end() ? tensor::take(*next++, graph->has_references)
                                         : fed[static_cast<std::size_t>(known - keys.begin())]);
  }
  return values;
}

std::optional<std::int64_t> session_core::step() const {
  if (!step_variable_) { return std::nullopt; }
  try {
    std::vector<c::tensor*> fetched;
    session->run({}, {}, {step_read_}, fetched, {}, "could not read the global step");
    const auto step = step_in(fetched.front(), step_variable_->type);
    functions().delete_tensor(fetched.front());
    return step;
  } catch (const failed_precondition_error&) { return std::nullopt; }
}

std::vector<std::string> session_core::uninitialized(const std::string& ready, const std::vector<std::string>& collections) const {
  if (!ready.empty()) {
    auto* const one = graph->get(split_tensor_name(ready).first, "ready operation");
    if (functions().num_outputs(one) == 0) {  // ready if it succeeds; contract SM-2
      static_cast<void>(run_operations({}, {one}, "could not run the ready operation \"" + ready + "\""));
      return {};
    }
    const auto values = run_apart({ready}, {}, {}, "could not run the ready operation \"" + ready + "\"");
    return values.front().dtype() == dtype::string ? values.front().strings() : std::vector<std::string>();
  }
  const auto& tf = functions();
  std::vector<std::string> names;
  std::vector<c::output> checks;
  for (const auto& collection : collections) {
    for (const auto& one : graph->variables(collection)) {
      const auto variable = graph->get_output(one.variable_name, "variable");
      const stepwell::detail::mutex_lock lock(graph->making);
      auto& known = graph->added["is_initialized " + one.variable_name];
      if (known == nullptr) {
        auto* const made = tf.new_operation(graph->raw, graph->is_reference(variable) ? "IsVariableInitialized" : "VarIsInitializedOp",
                                            graph->new_name("stepwell/is_initialized").c_str());
        tf.add_input(made, variable);
        if (const char* const device = tf.operation_device(variable.oper); *device != '\0') { tf.set_device(made, device); }
        const call_status outcome;
        known = tf.finish_operation(made, outcome.get());
        outcome.check("could not add a check of the variable", one.variable_name);
      }
      names.push_back(split_tensor_name(one.variable_name).first);
      checks.push_back({known, 0});
    }
  }
  if (checks.empty()) { return {}; }
  const auto values = run_operations(checks, {}, "could not check which variables are initialized");
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!values[i].as<bool>()) { missing.push_back(names[i]); }
  }
  return missing;
}

}  // namespace stepwell::tensorflow::detail
