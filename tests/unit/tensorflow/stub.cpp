// SPDX-License-Identifier: Apache-2.0
//
// A library with the functions of TensorFlow's C API that the adapter uses, over one fixed graph: a line is fitted, loss = w[0] * x + w[1],
// and each run of train_op subtracts rate * loss from w[0] and counts the global step. The bytes of an imported graph are ignored.
// TF_NewOperation adds reads of the step and checks of variables.
#include "stub.hpp"

#include "stepwell/tensorflow/detail/c_api.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace c = stepwell::tensorflow::detail::c;

namespace {

enum : int {
  float32 = 1,
  int32 = 3,
  int64 = 9,
  string = 7,
  boolean = 10,
  bfloat16 = 14,
  half = 19,
  resource = 20,
  variant = 21,
  float8_e5m2 = 24
};

struct stub_output {
  int type = 0;
  std::vector<std::int64_t> shape;
};

struct values {
  float w[2] = {0, 0};
  std::int64_t step = 0;
  bool is_initialized = false;
};

std::mutex guard;
int runs = 0;
int train_runs = 0;
int last_outputs = 0;
int last_targets = 0;
int fails_at = 0;
int fail_code = 0;
std::string fail_message;
std::string device_of_train_op;
int type_of_step = int64;
std::string name_of_step = "global_step";
bool flushes_denormals = false;  // in the last run
bool blocks_closing = false;
bool blocks_runs = false;
std::condition_variable changed;  // with `guard`: `blocks_closing`, `blocks_runs` or `sessions`
std::atomic<int> sessions = 0;
std::atomic<int> tensors = 0;
thread_local int depth = 0;  // of calls that allocate memory

/// A call of a function of the library that allocates memory.
struct inside {
  inside() { ++depth; }
  inside(const inside&) = delete;
  inside& operator=(const inside&) = delete;
  ~inside() { --depth; }
};

}  // namespace

// The incomplete types of the API, as this library defines them.
namespace stepwell::tensorflow::detail::c {
struct status {
  int code = 0;
  std::string message;
};
struct tensor {
  int type = 0;
  std::vector<std::int64_t> shape;
  std::vector<std::uint64_t> words;  // aligned storage
  std::size_t size = 0;
};
struct operation {
  std::string name;
  std::string type;
  std::string device;
  std::vector<output> inputs;
  std::vector<operation*> controls;
  std::vector<stub_output> outputs;
  std::vector<std::string> strings;  // of a constant
};
struct operation_description {
  graph* owner = nullptr;
  std::unique_ptr<operation> made;
};
struct graph {
  std::vector<std::unique_ptr<operation>> all;
  std::atomic<int> users = 1;  // its owner, and its sessions: it lives until the last of them is deleted, as in TensorFlow

  operation* add(operation made) { return all.emplace_back(std::make_unique<operation>(std::move(made))).get(); }
  operation* find(const std::string& name) {
    const auto found = std::ranges::find(all, name, [](const auto& one) { return one->name; });
    return found == all.end() ? nullptr : found->get();
  }
};
struct session_options {};
struct import_options {};
struct session {
  graph* over = nullptr;
  values state;
  bool is_closed = false;
};
struct server {};
}  // namespace stepwell::tensorflow::detail::c

namespace {

// Strings of the stub own a std::string.
static_assert(sizeof(c::string) >= sizeof(void*));
std::string*& held(c::string* one) { return *reinterpret_cast<std::string**>(one->bytes); }
const std::string* held(const c::string* one) { return *reinterpret_cast<std::string* const*>(one->bytes); }

c::tensor* allocate(int type, std::vector<std::int64_t> shape, std::size_t size) {
  ++tensors;
  auto* const made = new c::tensor{type, std::move(shape), std::vector<std::uint64_t>(size / 8 + 1), size};
  return made;
}
template<class T>
c::tensor* tensor_of(int type, std::vector<std::int64_t> shape, std::initializer_list<T> elements) {
  auto* const made = allocate(type, std::move(shape), elements.size() * sizeof(T));
  std::memcpy(made->words.data(), std::data(elements), made->size);
  return made;
}
c::tensor* tensor_of_strings(std::vector<std::int64_t> shape, const std::vector<std::string>& elements) {
  auto* const made = allocate(string, std::move(shape), elements.size() * sizeof(c::string));
  auto* const at = reinterpret_cast<c::string*>(made->words.data());
  for (std::size_t i = 0; i < elements.size(); ++i) { held(at + i) = new std::string(elements[i]); }
  return made;
}

void release(c::graph* one) {
  if (--one->users == 0) { delete one; }
}

void make_graph(c::graph& graph) {
  const auto scalar = std::vector<std::int64_t>();
  auto* const step = graph.add({name_of_step, "VarHandleOp", "", {}, {}, {{resource, scalar}}, {}});
  auto* const w = graph.add({"w", "VarHandleOp", "", {}, {}, {{resource, scalar}}, {}});
  auto* const x = graph.add({"x", "Placeholder", "", {}, {}, {{float32, {-1}}}, {}});
  auto* const rate = graph.add({"rate", "Placeholder", "", {}, {}, {{float32, scalar}}, {}});
  auto* const read = graph.add({"w/Read", "ReadVariableOp", "", {{w, 0}}, {}, {{float32, {2}}}, {}});
  auto* const read_step = graph.add({"global_step/Read", "ReadVariableOp", "", {{step, 0}}, {}, {{int64, scalar}}, {}});
  auto* const loss = graph.add({"loss", "MatMul", "", {{read, 0}, {x, 0}}, {}, {{float32, scalar}}, {}});
  graph.add({"count", "Placeholder", "", {}, {}, {{int32, scalar}}, {}});
  graph.add({"flag", "Placeholder", "", {}, {}, {{boolean, scalar}}, {}});
  graph.add({"half", "Placeholder", "", {}, {}, {{half, scalar}}, {}});
  graph.add({"halves", "Placeholder", "", {}, {}, {{half, {-1}}}, {}});
  graph.add({"bfloat16", "Placeholder", "", {}, {}, {{bfloat16, scalar}}, {}});
  graph.add({"float8", "Placeholder", "", {}, {}, {{float8_e5m2, scalar}}, {}});
  graph.add({"ids", "Cast", "", {{read, 0}}, {}, {{int64, {2}}}, {}});
  graph.add({"huge", "Cast", "", {{read, 0}}, {}, {{float32, {-1}}}, {}});
  graph.add({"random", "RandomUniform", "", {}, {}, {{float32, scalar}}, {}});
  graph.add({"assigned", "AssignSub", "", {{w, 0}}, {}, {{float32, scalar}}, {}});
  graph.add({"called", "function_of_the_graph", "", {}, {}, {{float32, scalar}}, {}});
  graph.add({"train_op", "AssignSub", device_of_train_op, {{loss, 0}, {rate, 0}}, {}, {}, {}});
  graph.add({"init", "NoOp", "", {}, {}, {}, {}});
  graph.add({"summary", "MergeSummary", "", {{loss, 0}}, {}, {{string, scalar}}, {}});
  auto* const file = graph.add({"save/Const", "Const", "", {}, {}, {{string, scalar}}, {"model"}});
  auto* const names = graph.add({"save/names", "Const", "", {}, {}, {{string, {3}}}, {"global_step", "w", "w"}});
  auto* const slices = graph.add({"save/slices", "Const", "", {}, {}, {{string, {3}}}, {"", "2 0,1", "2 1,1"}});
  auto* const first = graph.add({"w/first", "Slice", "", {{read, 0}}, {}, {{float32, {1}}}, {}});
  auto* const second = graph.add({"w/second", "Slice", "", {{read, 0}}, {}, {{float32, {1}}}, {}});
  auto* const save =
      graph.add({"save/SaveV2", "SaveV2", "", {{file, 0}, {names, 0}, {slices, 0}, {read_step, 0}, {first, 0}, {second, 0}}, {}, {}, {}});
  graph.add({"save/control_dependency", "Identity", "", {{file, 0}}, {save}, {{string, scalar}}, {}});
  auto* const name_of_step = graph.add({"sharded/name_of_step", "Const", "", {}, {}, {{string, {1}}}, {"global_step"}});
  auto* const no_slice = graph.add({"sharded/no_slice", "Const", "", {}, {}, {{string, {1}}}, {""}});
  auto* const names_of_w = graph.add({"sharded/names_of_w", "Const", "", {}, {}, {{string, {2}}}, {"w", "w"}});
  auto* const slices_of_w = graph.add({"sharded/slices_of_w", "Const", "", {}, {}, {{string, {2}}}, {"2 0,1", "2 1,1"}});
  auto* const save_step =
      graph.add({"sharded/SaveV2", "SaveV2", "", {{file, 0}, {name_of_step, 0}, {no_slice, 0}, {read_step, 0}}, {}, {}, {}});
  auto* const save_w =
      graph.add({"sharded/SaveV2_1", "SaveV2", "", {{file, 0}, {names_of_w, 0}, {slices_of_w, 0}, {first, 0}, {second, 0}}, {}, {}, {}});
  graph.add({"sharded/Identity", "Identity", "", {{file, 0}}, {save_step, save_w}, {{string, scalar}}, {}});
  auto* const iterator = graph.add({"iterator/state", "SerializeIterator", "", {}, {}, {{variant, {-1}}}, {}});
  auto* const name_of_iterator = graph.add({"iterator/name", "Const", "", {}, {}, {{string, {1}}}, {"input-state"}});
  auto* const save_iterator =
      graph.add({"iterator/SaveV2", "SaveV2", "", {{file, 0}, {name_of_iterator, 0}, {no_slice, 0}, {iterator, 0}}, {}, {}, {}});
  graph.add({"iterator/Identity", "Identity", "", {{file, 0}}, {save_step, save_w, save_iterator}, {{string, scalar}}, {}});
  auto* const restore = graph.add(
      {"save/RestoreV2", "RestoreV2", "", {{file, 0}, {names, 0}, {slices, 0}}, {}, {{int64, scalar}, {float32, {1}}, {float32, {1}}}, {}});
  auto* const assign = graph.add({"save/Assign", "AssignVariableOp", "", {{w, 0}, {restore, 1}}, {}, {}, {}});
  auto* const all = graph.add({"save/restore_all", "NoOp", "", {}, {assign}, {}, {}});
  assign->controls.push_back(all);  // a cycle, which a crafted graph may have
}

float number(const c::tensor* one, std::size_t i = 0) { return reinterpret_cast<const float*>(one->words.data())[i]; }

struct one_run {
  c::session& session;
  std::map<std::pair<c::operation*, int>, c::tensor*> fed;

  [[nodiscard]] const c::tensor* feed(const char* name, int index = 0) const {
    const auto found = fed.find({session.over->find(name), index});
    return found == fed.end() ? nullptr : found->second;
  }
  [[nodiscard]] float loss() const {
    const auto* const x = feed("x");
    return session.state.w[0] * (x == nullptr ? 2.0F : number(x)) + session.state.w[1];
  }
  void execute(const c::operation& target, float before) {
    auto& state = session.state;
    if (target.name == "init") { state = {{1, 0.5F}, 0, true}; }
    if (target.name == "save/restore_all") {
      state.is_initialized = true;
      std::memcpy(&state.step, feed("save/RestoreV2", 0)->words.data(), sizeof(state.step));
      state.w[0] = number(feed("save/RestoreV2", 1));
      state.w[1] = number(feed("save/RestoreV2", 2));
    }
    if (target.name == "train_op") {
      const auto* const rate = feed("rate");
      state.w[0] -= (rate == nullptr ? 0.125F : number(rate)) * before;
      ++state.step;
      ++train_runs;
    }
  }
  [[nodiscard]] c::tensor* value(const c::operation& of, float before) const {
    const auto& state = session.state;
    if (of.type == "VarIsInitializedOp") { return tensor_of<bool>(boolean, {}, {state.is_initialized}); }
    if (of.type == "ReadVariableOp" && of.inputs[0].oper->name != "w") { return tensor_of<std::int64_t>(int64, {}, {state.step}); }
    if (of.name == "w/Read") { return tensor_of<float>(float32, {2}, {state.w[0], state.w[1]}); }
    if (of.name == "w/first") { return tensor_of<float>(float32, {1}, {state.w[0]}); }
    if (of.name == "w/second") { return tensor_of<float>(float32, {1}, {state.w[1]}); }
    if (of.name == "ids") { return tensor_of<std::int64_t>(int64, {2}, {7, 8}); }
    if (of.name == "summary") {
      return tensor_of_strings({}, {std::string("\x0a\x05\x0a\x03"
                                                "sum",
                                                7)});
    }
    return tensor_of<float>(float32, {}, {before});
  }
};

/// Field 1 of a message, with this content.
std::string field(const std::string& content) {
  std::string bytes(1, '\x0a');
  bytes.push_back(static_cast<char>(content.size()));
  return bytes.append(content);
}

void fail(c::status* status, int code, std::string message) {
  status->code = code;
  status->message = std::move(message);
}

}  // namespace

extern "C" {

int stub_runs() { return runs; }
int stub_train_runs() { return train_runs; }
int stub_last_outputs() { return last_outputs; }
int stub_last_targets() { return last_targets; }
int stub_sessions() { return sessions; }
int stub_tensors() { return tensors; }
int stub_is_inside() { return depth > 0 ? 1 : 0; }
void stub_reset() {
  runs = train_runs = 0;
  fails_at = 0;
}
void stub_block_closing(int blocks) {
  const std::lock_guard lock(guard);
  blocks_closing = blocks != 0;
  changed.notify_all();
}
void stub_block_runs(int blocks) {
  const std::lock_guard lock(guard);
  blocks_runs = blocks != 0;
  changed.notify_all();
}
int stub_wait_for_sessions(int count) {
  std::unique_lock lock(guard);
  return changed.wait_for(lock, std::chrono::seconds(10), [&] { return sessions == count; }) ? 1 : 0;
}
void stub_place_train_op(const char* device) { device_of_train_op = device; }
void stub_set_type_of_step(int type) { type_of_step = type; }
void stub_set_name_of_step(const char* name) { name_of_step = name; }
int stub_flushes_denormals() { return flushes_denormals ? 1 : 0; }
void stub_fail(int run, int code, const char* message) {
  fails_at = runs + run;
  fail_code = code;
  fail_message = message;
}

const char* TF_Version() { return "2.0.0-stub"; }
c::status* TF_NewStatus() {
  const inside call;
  return new c::status;
}
void TF_DeleteStatus(c::status* one) { delete one; }
int TF_GetCode(const c::status* one) { return one->code; }
const char* TF_Message(const c::status* one) { return one->message.c_str(); }
c::buffer* TF_NewBuffer() { return new c::buffer{nullptr, 0, nullptr}; }
void TF_DeleteBuffer(c::buffer* one) {
  if (one->free != nullptr) { one->free(const_cast<void*>(one->data), one->length); }
  delete one;
}
c::buffer* TF_GetAllOpList() {
  static const std::string bytes = [] {
    std::string all;
    for (const std::string name : {"VarHandleOp", "Placeholder", "ReadVariableOp", "MatMul", "Cast", "RandomUniform", "AssignSub", "NoOp",
                                   "MergeSummary", "Const", "Slice", "SaveV2", "Identity", "RestoreV2", "AssignVariableOp", "VariableV2"}) {
      const bool is_stateful = name != "MatMul" && name != "Cast" && name != "Const" && name != "Slice" && name != "Identity" &&
                               name != "NoOp" && name != "AssignSub";
      std::string op = field(name);
      if (name == "AssignSub") { op.append("\x12\x03\x80\x01\x01", 5); }  // as in TensorFlow: not stateful, but its input is a reference
      if (is_stateful) { op.append("\x88\x01\x01", 3); }
      all.append(field(op));
    }
    return all;
  }();
  return new c::buffer{bytes.data(), bytes.size(), nullptr};
}
c::tensor* TF_AllocateTensor(int type, const std::int64_t* dims, int count, std::size_t size) {
  const inside call;
  constexpr std::size_t most = std::size_t{1} << 40U;
  if (size > most) {  // as in TensorFlow: a tensor without data
    ++tensors;
    return new c::tensor{type, std::vector<std::int64_t>(dims, dims + count), {}, size};
  }
  return allocate(type, std::vector<std::int64_t>(dims, dims + count), size);
}
void TF_DeleteTensor(c::tensor* one) {
  if (one == nullptr) { return; }
  if (one->type == string && !one->words.empty()) {
    auto* const at = reinterpret_cast<c::string*>(one->words.data());
    for (std::size_t i = 0; i < one->size / sizeof(c::string); ++i) { delete held(at + i); }
  }
  --tensors;
  delete one;
}
int TF_TensorType(const c::tensor* one) { return one->type; }
int TF_NumDims(const c::tensor* one) { return static_cast<int>(one->shape.size()); }
std::int64_t TF_Dim(const c::tensor* one, int i) { return one->shape[static_cast<std::size_t>(i)]; }
std::size_t TF_TensorByteSize(const c::tensor* one) { return one->size; }
void* TF_TensorData(const c::tensor* one) { return const_cast<std::uint64_t*>(one->words.data()); }
void TF_StringInit(c::string* one) { held(one) = new std::string; }
void TF_StringCopy(c::string* one, const char* from, std::size_t size) { held(one)->assign(from, size); }
const char* TF_StringGetDataPointer(const c::string* one) { return held(one)->data(); }
std::size_t TF_StringGetSize(const c::string* one) { return held(one)->size(); }

c::graph* TF_NewGraph() { return new c::graph; }
void TF_DeleteGraph(c::graph* one) { release(one); }
c::import_options* TF_NewImportGraphDefOptions() { return new c::import_options; }
void TF_DeleteImportGraphDefOptions(c::import_options* one) { delete one; }
void TF_GraphImportGraphDef(c::graph* graph, const c::buffer* /*bytes*/, const c::import_options* /*options*/, c::status* /*status*/) {
  make_graph(*graph);
}
void TF_GraphToGraphDef(c::graph* /*graph*/, c::buffer* /*bytes*/, c::status* status) { fail(status, 12, "the stub cannot"); }
c::operation* TF_GraphOperationByName(c::graph* graph, const char* name) { return graph->find(name); }
c::operation* TF_GraphNextOperation(c::graph* graph, std::size_t* position) {
  return *position < graph->all.size() ? graph->all[(*position)++].get() : nullptr;
}
int TF_GraphGetTensorNumDims(c::graph* /*graph*/, c::output of, c::status* /*status*/) {
  return static_cast<int>(of.oper->outputs[static_cast<std::size_t>(of.index)].shape.size());
}
void TF_GraphGetTensorShape(c::graph* /*graph*/, c::output of, std::int64_t* dims, int /*count*/, c::status* /*status*/) {
  std::ranges::copy(of.oper->outputs[static_cast<std::size_t>(of.index)].shape, dims);
}
const char* TF_OperationName(c::operation* one) { return one->name.c_str(); }
const char* TF_OperationOpType(c::operation* one) { return one->type.c_str(); }
const char* TF_OperationDevice(c::operation* one) { return one->device.c_str(); }
int TF_OperationNumOutputs(c::operation* one) { return static_cast<int>(one->outputs.size()); }
int TF_OperationOutputType(c::output of) { return of.oper->outputs[static_cast<std::size_t>(of.index)].type; }
int TF_OperationNumInputs(c::operation* one) { return static_cast<int>(one->inputs.size()); }
c::output TF_OperationInput(c::output of) { return of.oper->inputs[static_cast<std::size_t>(of.index)]; }
int TF_OperationNumControlInputs(c::operation* one) { return static_cast<int>(one->controls.size()); }
int TF_OperationGetControlInputs(c::operation* one, c::operation** into, int /*count*/) {
  std::ranges::copy(one->controls, into);
  return static_cast<int>(one->controls.size());
}
void TF_OperationGetAttrType(c::operation* /*one*/, const char* /*name*/, int* type, c::status* /*status*/) { *type = type_of_step; }
void TF_OperationGetAttrTensor(c::operation* one, const char* /*name*/, c::tensor** into, c::status* /*status*/) {
  *into = tensor_of_strings({static_cast<std::int64_t>(one->strings.size())}, one->strings);
}
c::operation_description* TF_NewOperation(c::graph* graph, const char* type, const char* name) {
  auto* const made = new c::operation_description{graph, std::make_unique<c::operation>()};
  made->made->type = type;
  made->made->name = name;
  return made;
}
void TF_SetDevice(c::operation_description* one, const char* device) { one->made->device = device; }
void TF_AddInput(c::operation_description* one, c::output input) { one->made->inputs.push_back(input); }
void TF_AddControlInput(c::operation_description* one, c::operation* input) { one->made->controls.push_back(input); }
void TF_SetAttrType(c::operation_description* /*one*/, const char* /*name*/, int /*type*/) {}
void TF_AddInputList(c::operation_description* one, const c::output* inputs, int count) {
  one->made->inputs.insert(one->made->inputs.end(), inputs, inputs + count);
}
void TF_SetAttrBool(c::operation_description* /*one*/, const char* /*name*/, unsigned char /*value*/) {}
void TF_SetAttrInt(c::operation_description* /*one*/, const char* /*name*/, std::int64_t /*value*/) {}
void TF_SetAttrFloat(c::operation_description* /*one*/, const char* /*name*/, float /*value*/) {}
void TF_SetAttrString(c::operation_description* /*one*/, const char* /*name*/, const void* /*value*/, std::size_t /*size*/) {}
void TF_SetAttrShape(c::operation_description* /*one*/, const char* /*name*/, const std::int64_t* /*dims*/, int /*count*/) {}
void TF_SetAttrTensor(c::operation_description* /*one*/, const char* /*name*/, c::tensor* /*value*/, c::status* /*status*/) {}
void TF_AddGradients(c::graph* /*graph*/, c::output* /*ys*/, int /*y_count*/, c::output* /*xs*/, int /*x_count*/, c::output* /*dx*/,
                     c::status* status, c::output* /*dy*/) {
  fail(status, 12, "the stub has no gradients");
}
c::operation* TF_FinishOperation(c::operation_description* one, c::status* /*status*/) {
  one->made->outputs = {{one->made->type == "ReadVariableOp" ? int64 : boolean, {}}};
  auto* const made = one->owner->all.emplace_back(std::move(one->made)).get();
  delete one;
  return made;
}

c::session_options* TF_NewSessionOptions() { return new c::session_options; }
void TF_DeleteSessionOptions(c::session_options* one) { delete one; }
void TF_SetTarget(c::session_options* /*one*/, const char* /*target*/) {}
void TF_SetConfig(c::session_options* /*one*/, const void* /*bytes*/, std::size_t /*size*/, c::status* /*status*/) {}
c::session* TF_NewSession(c::graph* graph, const c::session_options* /*options*/, c::status* /*status*/) {
  ++sessions;
  auto* const made = new c::session;
  made->over = graph;
  ++graph->users;
  return made;
}
void TF_CloseSession(c::session* one, c::status* /*status*/) {
  std::unique_lock lock(guard);
  changed.wait(lock, [] { return !blocks_closing; });
  one->is_closed = true;
}
void TF_DeleteSession(c::session* one, c::status* /*status*/) {
  const std::lock_guard lock(guard);
  if (one != nullptr) {
    --sessions;
    release(one->over);
  }
  delete one;
  changed.notify_all();
}
void TF_SessionRun(c::session* session, const c::buffer* /*options*/, const c::output* inputs, c::tensor* const* fed, int input_count,
                   const c::output* outputs, c::tensor** fetched, int output_count, const c::operation* const* targets, int target_count,
                   c::buffer* /*metadata*/, c::status* status) {
  const inside call;
  std::unique_lock lock(guard);
  changed.wait(lock, [] { return !blocks_runs; });
  volatile float denormal = 1e-38F;
  denormal = denormal * 0.1F;
  flushes_denormals = denormal == 0;
  status->code = 0;
  status->message.clear();
  ++runs;
  last_outputs = output_count;
  last_targets = target_count;
  if (runs == fails_at) { return fail(status, fail_code, fail_message); }
  if (session->is_closed) { return fail(status, 1, "Session has been closed."); }
  if (output_count + target_count == 0) { return fail(status, 3, "Must specify at least one target to fetch or execute."); }
  one_run run{*session, {}};
  for (int i = 0; i < input_count; ++i) { run.fed[{inputs[i].oper, inputs[i].index}] = fed[i]; }
  for (int i = 0; i < output_count; ++i) {
    if (run.fed.contains({outputs[i].oper, outputs[i].index})) {
      return fail(status, 3, outputs[i].oper->name + ":" + std::to_string(outputs[i].index) + " is both fed and fetched.");
    }
  }
  const bool needs_variables = std::any_of(outputs, outputs + output_count, [](const c::output& one) {
    return one.oper->type != "VarIsInitializedOp" && one.oper->name != "summary";
  });
  const bool sets_variables = std::any_of(targets, targets + target_count,
                                          [](const c::operation* one) { return one->name == "init" || one->name == "save/restore_all"; });
  if ((needs_variables || target_count > 0) && !sets_variables && !session->state.is_initialized) {
    return fail(status, 9, "Attempting to use uninitialized value w");
  }
  const auto before = run.loss();
  for (int i = 0; i < target_count; ++i) { run.execute(*targets[i], before); }
  for (int i = 0; i < output_count; ++i) { fetched[i] = run.value(*outputs[i].oper, before); }
}
c::server* TF_NewServer(const void* /*bytes*/, std::size_t /*size*/, c::status* status) {
  fail(status, 12, "the stub has no servers");
  return nullptr;
}
void TF_ServerStart(c::server* /*one*/, c::status* /*status*/) {}
const char* TF_ServerTarget(c::server* /*one*/) { return ""; }
void TF_DeleteServer(c::server* one) { delete one; }
}
