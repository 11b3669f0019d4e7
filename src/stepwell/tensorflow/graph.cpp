// SPDX-License-Identifier: Apache-2.0
#include "stepwell/tensorflow/graph.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/checkpoint/find_checkpoints.hpp"
#include "stepwell/io/detail/read_file.hpp"
#include "stepwell/io/file_system.hpp"
#include "stepwell/tensorflow/detail/c_api.hpp"
#include "stepwell/tensorflow/detail/graph_state.hpp"
#include "stepwell/tensorflow/detail/meta_graph.hpp"
#include "stepwell/tensorflow/detail/saved_variables.hpp"
#include "stepwell/tensorflow/detail/status.hpp"
#include "stepwell/tensorflow/runtime.hpp"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell::tensorflow {
namespace {

constexpr std::uint64_t largest_file = std::uint64_t{2} << 30;  // protobuf's limit of a message

std::string read(const std::string& file) { return value_or_throw(io::read_text_file(*io::posix_file_system(), file, largest_file)); }

/// Throws the failure of a parser, with the file as its place.
template<class T>
T parsed_or_throw(result<T>&& outcome, const std::string& place) {
  if (!outcome) {
    auto failure = std::move(outcome).error();
    failure.place = place;
    throw_status(std::move(failure));
  }
  return std::move(outcome).value();
}

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

/// @errors `unimplemented_error` that lists all types of operations that the library does not have.
void check_operations(std::string_view graph_def, const std::string& place) {
  std::string missing;
  for (const auto& [type, node] : parsed_or_throw(detail::operation_types(graph_def), place)) {
    if (detail::known_operations().all.contains(type)) { continue; }
    missing.append(missing.empty() ? "" : ", ").append(type).append(" (\"").append(node).append("\")");
  }
  if (missing.empty()) { return; }
  throw unimplemented_error("could not import the graph: TensorFlow " + runtime::open().version() + " does not have the operations " +
                                missing + "; load a library that has them, or save the graph without them",
                            place);
}

/// Imports `parts.graph_def` into the library.
void import(detail::graph_state& state) {
  check_operations(state.parts.graph_def, state.place);
  const auto& tf = detail::functions();
  const detail::c::buffer bytes{state.parts.graph_def.data(), state.parts.graph_def.size(), nullptr};
  auto* const options = tf.new_import_options();
  const detail::call_status outcome;
  tf.import_graph_def(state.raw, &bytes, options, outcome.get());
  tf.delete_import_options(options);
  outcome.check("could not import the graph", state.place);
  state.note_operations();
}

std::shared_ptr<detail::graph_state> import_graph(std::string graph_def, std::string place) {
  auto state = std::make_shared<detail::graph_state>();
  state->place = std::move(place);
  state->parts.graph_def = std::move(graph_def);
  import(*state);
  state->meta_graph_bytes = detail::encode_meta_graph(state->parts, runtime::open().version());
  return state;
}

std::shared_ptr<detail::graph_state> import_meta(std::string bytes, const std::string& file) {
  auto state = std::make_shared<detail::graph_state>();
  state->place = file;
  state->parts = parsed_or_throw(detail::parse_meta_graph(bytes_of(bytes)), file);
  if (!state->parts.saver) {
    if (const auto found = state->parts.messages.find("savers"); found != state->parts.messages.end() && found->second.size() == 1) {
      state->parts.saver = parsed_or_throw(detail::parse_saver(found->second.front()), file);
    }
  }
  import(*state);
  state->meta_graph_bytes = std::move(bytes);
  return state;
}

std::string joined(const std::vector<std::string>& all) {
  std::string text;
  for (const auto& one : all) { text.append(text.empty() ? "" : ", ").append(one); }
  return text;
}

/// Returns the task or the job that a device names: "/job:ps/task:0" for "/job:ps/replica:0/task:0/device:CPU:0". Empty if it names none.
std::string task_in(std::string_view device) {
  std::string task;
  for (const std::string_view part : {"/job:", "/task:"}) {
    const auto begin = device.find(part);
    if (begin == std::string_view::npos) { return task; }
    task.append(device.substr(begin, device.find('/', begin + 1) - begin));
  }
  return task;
}

}  // namespace

namespace detail {

const operation_list& known_operations() {
  static const auto all = [] {
    const auto& tf = functions();
    auto* const list = tf.get_all_op_list();
    auto parsed = parse_operations({static_cast<const std::byte*>(list->data), list->length});
    tf.delete_buffer(list);
    return value_or_throw(std::move(parsed));
  }();
  return all;
}

graph_state::graph_state() : raw(functions().new_graph()) {}
graph_state::~graph_state() { functions().delete_graph(raw); }

std::pair<std::string, int> split_tensor_name(std::string_view name) {
  const auto colon = name.rfind(':');
  if (colon == std::string_view::npos) { return {std::string(name), 0}; }
  const auto digits = name.substr(colon + 1);
  int index = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (failed != std::errc() || end != digits.data() + digits.size() || index < 0) {
    throw invalid_argument_error("\"" + std::string(name) + "\" is no name of a tensor; a name is \"operation\" or \"operation:0\"");
  }
  return {std::string(name.substr(0, colon)), index};
}

void graph_state::note_operations() {
  const auto& tf = functions();
  std::size_t position = 0;
  while (auto* const one = tf.next_operation(raw, &position)) {
    for (int i = 0; i < tf.num_outputs(one); ++i) { has_references |= is_reference({one, i}); }
    if (auto task = task_in(tf.operation_device(one)); !task.empty()) { tasks.insert(std::move(task)); }
  }
}

c::operation* graph_state::find(std::string_view name) const { return functions().operation_by_name(raw, std::string(name).c_str()); }

c::operation* graph_state::get(std::string_view name, std::string_view what) const {
  if (auto* const found = find(name)) { return found; }
  throw_no_operation(name, what);
}
void graph_state::throw_no_operation(std::string_view name, std::string_view what) const {
  throw not_found_error(std::string(what) + " \"" + std::string(name) + "\": the graph has no operation of this name; check its spelling",
                        place);
}

c::output graph_state::get_output(std::string_view name, std::string_view what) const {
  const auto [node, index] = split_tensor_name(name);
  auto* const found = find(node);
  if (found == nullptr) { throw_no_operation(name, what); }
  const int count = functions().num_outputs(found);
  if (index < count) { return {found, index}; }
  const std::string named = std::string(what) + " \"" + std::string(name) + "\": ";
  if (count == 0) {
    throw invalid_argument_error(named + "\"" + node + "\" is an operation without a value; run it with target(\"" + node + "\")", place);
  }
  throw not_found_error(named + "the operation has " + std::to_string(count) + " outputs", place);
}

dtype graph_state::dtype_of(c::output of) const {
  const int type = functions().output_type(of);
  return static_cast<dtype>(type > reference_offset ? type - reference_offset : type);
}
bool graph_state::is_reference(c::output of) const { return functions().output_type(of) > reference_offset; }

std::optional<tensor_shape> graph_state::shape_of(c::output of) const {
  const auto& tf = functions();
  const call_status outcome;
  const int rank = tf.tensor_num_dims(raw, of, outcome.get());
  if (!outcome.ok() || rank < 0) { return std::nullopt; }
  tensor_shape shape(static_cast<std::size_t>(rank));
  tf.tensor_shape(raw, of, shape.data(), rank, outcome.get());
  return outcome.ok() ? std::optional(std::move(shape)) : std::nullopt;
}

std::string graph_state::name_of(c::output of) { return std::string(functions().operation_name(of.oper)) + ":" + std::to_string(of.index); }

std::vector<std::string> graph_state::collection(std::string_view name) const {
  const auto found = parts.nodes.find(name);
  return found == parts.nodes.end() ? std::vector<std::string>() : found->second;
}

std::vector<variable_def> graph_state::variables(std::string_view collection) const {
  std::vector<variable_def> all;
  const auto found = parts.messages.find(collection);
  if (found == parts.messages.end()) { return all; }
  for (const auto& bytes : found->second) { all.push_back(parsed_or_throw(parse_variable(bytes), place)); }
  return all;
}

std::optional<std::string> graph_state::only_name_in(std::string_view collection) const {
  const auto all = this->collection(collection);
  std::set<std::string> names(all.begin(), all.end());
  if (names.empty() && parts.messages.contains(collection)) {
    throw data_loss_error("the collection \"" + std::string(collection) + "\" holds encoded messages, not the names of operations", place);
  }
  if (names.empty()) { return std::nullopt; }
  if (names.size() > 1) {
    throw failed_precondition_error(
        "More than one item in the collection \"" + std::string(collection) + "\"; name the one to use in the options of the session",
        place);
  }
  return *names.begin();
}

}  // namespace detail

std::string operation::name() const { return detail::functions().operation_name(raw_); }
std::string operation::type() const { return detail::functions().operation_type(raw_); }
std::string operation::device() const { return detail::functions().operation_device(raw_); }
int operation::output_count() const { return detail::functions().num_outputs(raw_); }

tensorflow::output operation::output(int index) const {
  if (index < 0 || index >= output_count()) {
    throw out_of_range_error("operation \"" + name() + "\" has no output number " + std::to_string(index) + "; it has " +
                             std::to_string(output_count()));
  }
  return {*this, index};
}

graph::graph(std::shared_ptr<detail::graph_state> state) noexcept : state_(std::move(state)) {}
graph::graph(graph&&) noexcept = default;
graph& graph::operator=(graph&&) noexcept = default;
graph::~graph() = default;

graph graph::import_meta_graph(const std::string& file) { return graph(import_meta(read(file), file)); }

graph graph::load_saved_model(const std::string& directory, const std::vector<std::string>& tags) {
  const auto file = io::join_path(directory, "saved_model.pb");
  const std::set<std::string> wanted(tags.begin(), tags.end());
  std::string others;
  for (auto& bytes : parsed_or_throw(detail::parse_saved_model(bytes_of(read(file))), file)) {
    const auto meta = parsed_or_throw(detail::parse_meta_graph(bytes_of(bytes)), file);
    if (std::set<std::string>(meta.tags.begin(), meta.tags.end()) != wanted) {
      others.append(others.empty() ? "" : "; ").append(joined(meta.tags));
      continue;
    }
    auto state = import_meta(std::move(bytes), file);
    if (const auto prefix = io::join_path(directory, "variables/variables"); checkpoint_exists(prefix)) {
      state->variables_prefix = prefix;
    }
    if (!state->variables_prefix.empty() && detail::variables_of(*state).all.empty()) {
      throw unimplemented_error("the variables of this model are saved by functions of TensorFlow 2; save it with tf.compat.v1.saved_model",
                                file);
    }
    return graph(std::move(state));
  }
  throw not_found_error("no graph of this model has the tags \"" + joined(tags) + "\"; there is: " + others, file);
}

graph graph::import_graph_def(const std::string& file) {
  auto content = read(file);
  if (file.ends_with(".pbtxt")) { content = parsed_or_throw(detail::graph_of_text(content), file); }
  return graph(import_graph(std::move(content), file));
}
graph graph::import_graph_def(std::span<const std::byte> bytes) {
  return graph(import_graph(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), "a graph in memory"));
}

tensorflow::operation graph::operation(std::string_view name) const { return {state_, state_->get(name, "operation")}; }
std::vector<tensorflow::operation> graph::operations() const {
  std::vector<tensorflow::operation> all;
  std::size_t position = 0;
  while (auto* const one = detail::functions().next_operation(state_->raw, &position)) { all.push_back({state_, one}); }
  return all;
}

tensorflow::output graph::tensor(std::string_view name) const {
  const auto found = state_->get_output(name, "tensor");
  return {tensorflow::operation(state_, found.oper), found.index};
}
stepwell::dtype graph::dtype(const tensorflow::output& of) const { return state_->dtype_of({of.operation().raw(), of.index()}); }
std::optional<tensor_shape> graph::shape(const tensorflow::output& of) const {
  return state_->shape_of({of.operation().raw(), of.index()});
}

std::vector<std::string> graph::collection(std::string_view name) const { return state_->collection(name); }
const std::string& graph::place() const noexcept { return state_->place; }

}  // namespace stepwell::tensorflow
