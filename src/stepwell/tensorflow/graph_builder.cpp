// SPDX-License-Identifier: Apache-2.0
#include "stepwell/tensorflow/graph_builder.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/tensorflow/detail/c_api.hpp"
#include "stepwell/tensorflow/detail/graph_state.hpp"
#include "stepwell/tensorflow/detail/meta_graph.hpp"
#include "stepwell/tensorflow/detail/status.hpp"
#include "stepwell/tensorflow/runtime.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell::tensorflow {
namespace {

detail::c::output raw_of(const output& from) { return {from.operation().raw(), from.index()}; }
std::vector<detail::c::output> raw_of(const std::vector<output>& all) {
  std::vector<detail::c::output> made;
  for (const auto& one : all) { made.push_back(raw_of(one)); }
  return made;
}

}  // namespace

operation_builder::operation_builder(std::shared_ptr<detail::graph_state> graph, const std::string& type, std::string name)
    : graph_(std::move(graph)), name_(std::move(name)), open_(detail::functions().new_operation(graph_->raw, type.c_str(), name_.c_str())) {
}

// The library has no function that discards a description: it is finished, and its failure is ignored. What was begun and not built is a
// mistake of the program, and its graph is unusable either way.
void operation_builder::discard::operator()(detail::c::operation_description* one) const noexcept {
  const detail::call_status ignored;
  static_cast<void>(detail::functions().finish_operation(one, ignored.get()));
}
operation_builder::~operation_builder() = default;

detail::c::operation_description* operation_builder::open() const {
  if (!open_) { throw failed_precondition_error("the operation \"" + name_ + "\" is built already"); }
  return open_.get();
}

operation_builder& operation_builder::input(const tensorflow::output& from) {
  detail::functions().add_input(open(), raw_of(from));
  return *this;
}
operation_builder& operation_builder::inputs(const std::vector<tensorflow::output>& from) {
  const auto raw = raw_of(from);
  detail::functions().add_input_list(open(), raw.data(), static_cast<int>(raw.size()));
  return *this;
}
operation_builder& operation_builder::control_input(const tensorflow::operation& before) {
  detail::functions().add_control_input(open(), before.raw());
  return *this;
}
operation_builder& operation_builder::device(const std::string& where) {
  detail::functions().set_device(open(), where.c_str());
  return *this;
}

void operation_builder::set_bool(const char* name, bool value) { detail::functions().set_attr_bool(open(), name, value ? 1 : 0); }
void operation_builder::set_int(const char* name, std::int64_t value) { detail::functions().set_attr_int(open(), name, value); }
void operation_builder::set_float(const char* name, float value) { detail::functions().set_attr_float(open(), name, value); }
void operation_builder::set_type(const char* name, stepwell::dtype value) {
  detail::functions().set_attr_type(open(), name, static_cast<int>(value));
}
void operation_builder::set_shape(const char* name, const tensor_shape& value) {
  detail::functions().set_attr_shape(open(), name, value.data(), static_cast<int>(value.size()));
}
void operation_builder::set_tensor(const char* name, const tensor& value) {
  const detail::call_status outcome;
  detail::functions().set_attr_tensor(open(), name, value.raw(), outcome.get());
  outcome.check("could not set the attribute", std::string(name) + " of \"" + name_ + "\"");
}
void operation_builder::set_string(const char* name, std::string_view value) {
  detail::functions().set_attr_string(open(), name, value.data(), value.size());
}

tensorflow::operation operation_builder::build() {
  static_cast<void>(open());
  const detail::call_status outcome;
  auto* const made = detail::functions().finish_operation(open_.release(), outcome.get());
  outcome.check("could not add the operation", "\"" + name_ + "\"");
  return {graph_, made};
}

graph_builder::graph_builder() : state_(std::make_shared<detail::graph_state>()) { state_->place = "a graph made in C++"; }

operation_builder graph_builder::add(const std::string& type, const std::string& name) {
  if (state_->find(name) != nullptr) {
    throw already_exists_error("could not add the operation \"" + name + "\": the graph has one of this name; choose another name");
  }
  return {state_, type, name};
}

output graph_builder::constant(const std::string& name, const tensor& value) {
  return add("Const", name).attr("dtype", value.dtype()).attr("value", value);
}

graph_variable graph_builder::variable(const std::string& name, const tensor& initial, const std::string& device) {
  const auto type = initial.dtype();
  const auto value = constant(name + "/initial_value", initial);
  const auto add_here = [&](const char* kind, const std::string& called) {
    auto made = add(kind, called);
    if (!device.empty()) { made.device(device); }
    return made;
  };
  const output handle = add_here("VarHandleOp", name).attr("dtype", type).attr("shape", initial.shape()).attr("shared_name", name);
  const operation assign = add_here("AssignVariableOp", name + "/assign").input(handle).input(value).attr("dtype", type);
  const output read = add_here("ReadVariableOp", name + "/read").input(handle).attr("dtype", type);
  state_->parts.messages["variables"].push_back(detail::encode_variable({name + ":0", assign.name(), read.name(), value.name(), true}));
  if (name == "global_step") { state_->parts.messages["global_step"].push_back(state_->parts.messages["variables"].back()); }
  return {handle, read};
}

std::vector<output> graph_builder::gradients(const std::vector<output>& of, const std::vector<output>& by) {
  auto ys = raw_of(of);
  auto xs = raw_of(by);
  std::vector<detail::c::output> made(xs.size());
  const detail::call_status outcome;
  detail::functions().add_gradients(state_->raw, ys.data(), static_cast<int>(ys.size()), xs.data(), static_cast<int>(xs.size()), nullptr,
                                    outcome.get(), made.data());
  outcome.check("could not add gradients to", state_->place);
  std::vector<output> all;
  for (const auto& one : made) { all.emplace_back(operation(state_, one.oper), one.index); }
  return all;
}

void graph_builder::add_to_collection(const std::string& collection, const std::string& name) {
  state_->parts.nodes[collection].push_back(name);
}

graph graph_builder::finish() && {
  const auto& tf = detail::functions();
  auto* const bytes = tf.new_buffer();
  const detail::call_status outcome;
  tf.graph_to_graph_def(state_->raw, bytes, outcome.get());
  if (outcome.ok()) { state_->parts.graph_def.assign(static_cast<const char*>(bytes->data), bytes->length); }
  tf.delete_buffer(bytes);
  outcome.check("could not finish", state_->place);
  state_->note_operations();
  state_->meta_graph_bytes = detail::encode_meta_graph(state_->parts, runtime::open().version());
  return graph(std::move(state_));
}

}  // namespace stepwell::tensorflow
