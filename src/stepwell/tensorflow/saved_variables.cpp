// SPDX-License-Identifier: Apache-2.0
#include "stepwell/tensorflow/detail/saved_variables.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/tensorflow/detail/graph_state.hpp"
#include "stepwell/tensorflow/detail/status.hpp"
#include "stepwell/tensorflow/runtime.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell::tensorflow::detail {
namespace {

/// Where a slice lies in its variable. Without sizes it is the whole variable.
struct slice_place {
  tensor_shape whole;
  tensor_shape starts;
  tensor_shape sizes;
  [[nodiscard]] bool is_whole() const noexcept { return sizes.empty(); }
};

/// Parses "12 6 0,4:0,6" or "12 6 0,4:-": the shape of the variable, then begin and size in each dimension, or "-" for all of it.
class slice_parser {
public:
  slice_parser(const std::string& spec, const std::string& variable, const std::string& place)
      : spec_(spec), variable_(variable), place_(place), rest_(spec) {}

  slice_place parse() {
    slice_place made;
    if (spec_.empty()) { return made; }
    for (auto space = rest_.find(' '); space != std::string_view::npos; space = rest_.find(' ')) {
      made.whole.push_back(number(rest_.substr(0, space)));
      rest_.remove_prefix(space + 1);
    }
    std::int64_t count = 1;
    for (const auto size : made.whole) {
      if (size != 0 && count > most_elements / size) { fail(); }
      count *= size;
      add_extent(made, size);
    }
    if (!rest_.empty()) { fail(); }
    return made;
  }

private:
  static constexpr std::int64_t most_elements = std::int64_t{1} << 48;

  void add_extent(slice_place& made, std::int64_t size) {
    const auto extent = rest_.substr(0, rest_.find(':'));
    rest_.remove_prefix(std::min(rest_.size(), extent.size() + 1));
    const auto comma = extent.find(',');
    const bool is_all = extent == "-";
    if (!is_all && comma == std::string_view::npos) { fail(); }
    const auto start = is_all ? 0 : number(extent.substr(0, comma));
    const auto count = is_all ? size : number(extent.substr(comma + 1));
    if (start > size || count > size - start) { fail(); }
    made.starts.push_back(start);
    made.sizes.push_back(count);
  }
  std::int64_t number(std::string_view text) const {
    std::int64_t value = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failed != std::errc() || end != text.data() + text.size() || value < 0) { fail(); }
    return value;
  }
  [[noreturn]] void fail() const {
    throw data_loss_error(
        "the saver of the graph has the slice \"" + spec_ + "\" for the variable \"" + variable_ + "\", which is no slice of it", place_);
  }

  const std::string& spec_;
  const std::string& variable_;
  const std::string& place_;
  std::string_view rest_;
};

/// Finds the operations of one type from which `from` can be reached. Does not look behind them.
std::vector<c::operation*> operations_behind(c::operation* from, std::string_view type) {
  const auto& tf = functions();
  std::vector<c::operation*> found;
  std::vector<c::operation*> open = {from};
  std::set<c::operation*> seen = {from};
  const auto look_at = [&](c::operation* one) {
    if (one != nullptr && seen.insert(one).second) { open.push_back(one); }
  };
  while (!open.empty()) {
    auto* const one = open.back();
    open.pop_back();
    if (tf.operation_type(one) == type) {
      found.push_back(one);
      continue;
    }
    for (int i = 0; i < tf.num_inputs(one); ++i) { look_at(tf.operation_input({one, i}).oper); }
    std::vector<c::operation*> before(static_cast<std::size_t>(tf.num_control_inputs(one)));
    tf.control_inputs(one, before.data(), static_cast<int>(before.size()));
    for (auto* const control : before) { look_at(control); }
  }
  std::ranges::sort(found, {}, [&](c::operation* one) { return std::string_view(tf.operation_name(one)); });
  return found;
}

/// The variables of a SaverDef.
class saver_reader {
public:
  explicit saver_reader(const graph_state& graph) : graph_(graph), saver_(*graph.parts.saver) {}

  saved_variables read() {
    constexpr int v2 = 2;
    if (saver_.version != v2) {
      throw unimplemented_error("the saver of the graph writes format V" + std::to_string(saver_.version) +
                                    "; only V2 is supported; save the graph with tf.compat.v1.train.Saver(write_version=V2)",
                                graph_.place);
    }
    const auto save = graph_.get_output(saver_.save_tensor, "save_tensor_name of the saver");
    auto* const restore = graph_.get(saver_.restore_op, "restore_op_name of the saver");
    const auto saving = operations_behind(save.oper, "SaveV2");
    for (auto* const one : saving) { add_saved(one); }
    made_.shards = std::max(1, static_cast<int>(saving.size()));
    for (auto* const one : operations_behind(restore, "RestoreV2")) { add_restored(one); }
    for (const auto& [name, variable] : by_name_) {
      check(*variable);
      made_.all.push_back(variable);
    }
    made_.restore_ops = {restore};
    return std::move(made_);
  }

private:
  static constexpr int first_tensor = 3;  // of SaveV2: after prefix, names and slices

  void add_saved(c::operation* save) {
    const auto& tf = functions();
    const auto names = strings_of_input(save, 1);
    const auto slices = strings_of_input(save, 2);
    const auto count = static_cast<std::size_t>(std::max(0, tf.num_inputs(save) - first_tensor));
    if (names.size() != count || slices.size() != count) { fail(save, "has other numbers of names, slices and tensors"); }
    for (std::size_t i = 0; i < count; ++i) {
      const auto value = tf.operation_input({save, first_tensor + static_cast<int>(i)});
      add_part(names[i], slices[i], value);
    }
  }
  void add_part(const std::string& name, const std::string& spec, c::output value) {
    const auto type = graph_.dtype_of(value);
    if (type == dtype::variant || type == dtype::resource) { throw_opaque(name, value, type); }
    auto place = slice_parser(spec, name, graph_.place).parse();
    if (place.is_whole()) { place.whole = known_shape(name, value); }
    auto& variable = by_name_[name];
    if (!variable) { variable = std::make_shared<saved_variable>(name, graph_.dtype_of(value), place.whole); }
    if (variable->shape() != place.whole || variable->type() != graph_.dtype_of(value) || (place.is_whole() && !variable->parts.empty())) {
      throw data_loss_error("the saver of the graph saves the variable \"" + name + "\" twice, differently", graph_.place);
    }
    parts_[{name, spec}] = {variable.get(), variable->parts.size()};
    variable->parts.push_back({value, {}, std::move(place.starts), std::move(place.sizes), {}});
  }
  /// Throws an error about a value whose elements only TensorFlow can read.
  [[noreturn]] void throw_opaque(const std::string& name, c::output value, dtype type) const {
    const bool is_iterator = std::string_view(functions().operation_type(value.oper)) == "SerializeIterator";
    throw unimplemented_error(
        "the saver of the graph saves \"" + name + "\", a " + std::string(to_string(type)) +
            (is_iterator ? ", which is the state of an iterator of tf.data" : "") +
            "; the C library of TensorFlow gives no access to its bytes, so stepwell cannot save it; " +
            (is_iterator
                 ? "do not add make_saveable_from_iterator to the collection SAVEABLE_OBJECTS, and feed the batches from a seekable "
                   "source of stepwell, whose position is part of the checkpoints"
                 : "leave it out of the saver"),
        graph_.place);
  }
  tensor_shape known_shape(const std::string& name, c::output value) const {
    auto shape = graph_.shape_of(value);
    if (!shape || std::ranges::any_of(*shape, [](std::int64_t size) { return size < 0; })) {
      throw unimplemented_error("the variable \"" + name +
                                    "\" has no static shape, so that it cannot be checked before a restore; set its "
                                    "shape where the graph is made, or leave it out of the saver",
                                graph_.place);
    }
    return *std::move(shape);
  }

  void add_restored(c::operation* restore) {
    const auto names = strings_of_input(restore, 1);
    const auto slices = strings_of_input(restore, 2);
    if (names.size() != slices.size() || static_cast<int>(names.size()) != functions().num_outputs(restore)) {
      fail(restore, "has other numbers of names, slices and outputs");
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto found = parts_.find({names[i], slices[i]});
      if (found == parts_.end()) { fail(restore, "restores \"" + names[i] + "\", which the saver does not save"); }
      found->second.first->parts[found->second.second].restored = {restore, static_cast<int>(i)};
    }
  }
  void check(const saved_variable& variable) const {
    std::int64_t elements = 0;
    for (const auto& part : variable.parts) {
      elements += element_count(part.sizes.empty() ? variable.shape() : part.sizes);
      if (part.restored.oper == nullptr) {
        throw not_found_error("the saver of the graph saves the variable \"" + variable.name() + "\", but does not restore it",
                              graph_.place);
      }
    }
    if (elements != element_count(variable.shape())) {
      throw data_loss_error("the slices of the variable \"" + variable.name() + "\" in the saver of the graph do not cover it once",
                            graph_.place);
    }
  }

  /// Returns the strings of a constant that is input number `index` of `of`.
  std::vector<std::string> strings_of_input(c::operation* of, int index) const {
    const auto& tf = functions();
    if (index >= tf.num_inputs(of)) { fail(of, "has too few inputs"); }
    auto* const constant = tf.operation_input({of, index}).oper;
    c::tensor* value = nullptr;
    const call_status outcome;
    if (std::string_view(tf.operation_type(constant)) == "Const") { tf.attr_tensor(constant, "value", &value, outcome.get()); }
    if (value == nullptr || !outcome.ok()) {
      throw unimplemented_error("\"" + std::string(tf.operation_name(of)) + "\" of the saver takes its names from \"" +
                                    tf.operation_name(constant) + "\", which is not a constant",
                                graph_.place);
    }
    const auto held = tensor::take(value, false);
    if (held.dtype() != dtype::string) { fail(of, "has names that are no strings"); }
    return held.strings();
  }
  [[noreturn]] void fail(c::operation* one, const std::string& why) const {
    throw data_loss_error("\"" + std::string(functions().operation_name(one)) + "\" of the saver of the graph " + why, graph_.place);
  }

  const graph_state& graph_;
  const saver_def& saver_;
  saved_variables made_;
  std::map<std::string, std::shared_ptr<saved_variable>> by_name_;
  std::map<std::pair<std::string, std::string>, std::pair<saved_variable*, std::size_t>> parts_;
};

/// The variables of the collection `variables`: a value is sent by feeding the initial value and running the initializer.
saved_variables variables_of_collection(const graph_state& graph) {
  saved_variables made;
  for (const auto& one : graph.variables("variables")) {
    const auto name = split_tensor_name(one.variable_name).first;
    const auto what = "collection \"variables\", variable \"" + name + "\":";
    const auto value = graph.get_output(one.snapshot_name, what);
    const auto initial = graph.get_output(one.initial_value_name, what);
    const auto shape = graph.shape_of(value);
    if (!shape || std::ranges::any_of(*shape, [](std::int64_t size) { return size < 0; })) {
      throw unimplemented_error("the variable \"" + name + "\" has no static shape; set it where the graph is made", graph.place);
    }
    auto variable = std::make_shared<saved_variable>(name, graph.dtype_of(value), *shape);
    variable->parts.push_back({value, initial, {}, {}, {}});
    made.all.push_back(std::move(variable));
    made.restore_ops.push_back(graph.get(one.initializer_name, what));
  }
  return made;
}

/// Calls `copy(offset in the part, offset in the whole, count)` for each row of a slice, in elements.
template<class Copy>
void for_each_row(const tensor_shape& whole, const variable_part& part, Copy&& copy) {
  const auto rank = whole.size();
  if (element_count(part.sizes) == 0) { return; }
  tensor_shape at(rank, 0);
  const auto row = rank == 0 ? 1 : part.sizes[rank - 1];
  std::int64_t in_part = 0;
  while (true) {
    std::int64_t in_whole = 0;
    for (std::size_t i = 0; i < rank; ++i) { in_whole = in_whole * whole[i] + part.starts[i] + at[i]; }
    copy(static_cast<std::size_t>(in_part), static_cast<std::size_t>(in_whole), static_cast<std::size_t>(row));
    in_part += row;
    std::size_t next = rank < 2 ? 0 : rank - 1;  // the dimensions before the last one count up
    while (next > 0 && ++at[next - 1] == part.sizes[next - 1]) { at[--next] = 0; }
    if (next == 0) { return; }
  }
}

}  // namespace

saved_variables variables_of(const graph_state& graph) {
  return graph.parts.saver ? saver_reader(graph).read() : variables_of_collection(graph);
}

const tensor& saved_variable::held_in(const variable_part& part) const {
  const auto& held = part.held;
  const auto& shape = part.sizes.empty() ? shape_ : part.sizes;
  if (held.dtype() != type_ || held.shape() != shape) {
    throw internal_error("the variable \"" + name_ + "\" was fetched as " + std::string(to_string(held.dtype())) + " " +
                         to_string(held.shape()) + ", not as " + std::string(to_string(type_)) + " " + to_string(shape));
  }
  return held;
}

void saved_variable::copy_to(std::span<std::byte> to) const {
  if (parts.front().sizes.empty()) {
    const auto from = held_in(parts.front()).bytes();
    if (!from.empty()) { std::memcpy(to.data(), from.data(), from.size()); }
    return;
  }
  const auto size = size_of(type_);
  for (const auto& part : parts) {
    const auto from = held_in(part).bytes();
    for_each_row(shape_, part, [&](std::size_t in_part, std::size_t in_whole, std::size_t count) {
      std::memcpy(&to[in_whole * size], &from[in_part * size], count * size);
    });
  }
}

std::span<const std::byte> saved_variable::host_bytes() const {
  if (type_ == dtype::string || !parts.front().sizes.empty()) { return {}; }
  return held_in(parts.front()).bytes();
}

void saved_variable::copy_from(std::span<const std::byte> from) {
  if (parts.front().sizes.empty()) {
    parts.front().held = tensor(stepwell::tensor_view{type_, shape_, from});
    return;
  }
  const auto size = size_of(type_);
  for (auto& part : parts) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(element_count(part.sizes)) * size);
    for_each_row(shape_, part, [&](std::size_t in_part, std::size_t in_whole, std::size_t count) {
      std::memcpy(&bytes[in_part * size], &from[in_whole * size], count * size);
    });
    part.held = tensor(stepwell::tensor_view{type_, part.sizes, bytes});
  }
}

void saved_variable::copy_strings_to(std::span<std::string> to) const {
  if (parts.front().sizes.empty()) {
    std::ranges::copy(held_in(parts.front()).strings(), to.begin());
    return;
  }
  for (const auto& part : parts) {
    const auto from = held_in(part).strings();
    for_each_row(shape_, part,
                 [&](std::size_t in_part, std::size_t in_whole, std::size_t count) { std::copy_n(&from[in_part], count, &to[in_whole]); });
  }
}

void saved_variable::copy_strings_from(std::span<const std::string> from) {
  if (parts.front().sizes.empty()) {
    parts.front().held = tensor::of_strings(from, shape_);
    return;
  }
  for (auto& part : parts) {
    std::vector<std::string> strings(static_cast<std::size_t>(element_count(part.sizes)));
    for_each_row(shape_, part, [&](std::size_t in_part, std::size_t in_whole, std::size_t count) {
      std::copy_n(&from[in_whole], count, &strings[in_part]);
    });
    part.held = tensor::of_strings(strings, part.sizes);
  }
}

}  // namespace stepwell::tensorflow::detail
