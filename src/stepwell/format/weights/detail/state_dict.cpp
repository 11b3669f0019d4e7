// SPDX-License-Identifier: Apache-2.0
#include "stepwell/format/weights/detail/state_dict.hpp"

#include "stepwell/format/detail/coding.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

namespace stepwell::format {
namespace {

using namespace std::string_view_literals;

/// The meaning of an allowed global name.
enum class pickle_global {
  dictionary,      ///< Makes a dictionary of nothing, of a dictionary, or of a list of pairs.
  sequence,        ///< Makes a list, a tuple or a set of another one, or of nothing.
  first_argument,  ///< Returns its first argument, for the purpose of this file.
  tensor_v2,
  tensor_v3,
  from_type,  ///< Calls its first argument with the tuple that is its third one.
  storage,
  element_type
};

struct known_global {
  std::string_view module;
  std::string_view name;
  pickle_global meaning;
  stepwell::dtype dtype = dtype::invalid;  ///< Of a storage or of an element type. Invalid for an untyped storage.
};

constexpr known_global known_globals[] = {
    {"collections", "OrderedDict", pickle_global::dictionary},
    {"collections", "Counter", pickle_global::dictionary},
    {"collections", "defaultdict", pickle_global::dictionary},
    {"builtins", "dict", pickle_global::dictionary},
    {"collections", "deque", pickle_global::sequence},
    {"builtins", "list", pickle_global::sequence},
    {"builtins", "tuple", pickle_global::sequence},
    {"builtins", "set", pickle_global::sequence},
    {"builtins", "frozenset", pickle_global::sequence},
    {"torch", "Size", pickle_global::sequence},
    {"torch._utils", "_rebuild_tensor", pickle_global::tensor_v2},
    {"torch._utils", "_rebuild_tensor_v2", pickle_global::tensor_v2},
    {"torch._utils", "_rebuild_tensor_v3", pickle_global::tensor_v3},
    {"torch._utils", "_rebuild_parameter", pickle_global::first_argument},
    {"torch._utils", "_rebuild_parameter_with_state", pickle_global::first_argument},
    {"torch._utils", "_rebuild_device_tensor_from_cpu_tensor", pickle_global::first_argument},
    {"torch.nn.parameter", "Parameter", pickle_global::first_argument},
    {"torch._tensor", "_rebuild_from_type_v2", pickle_global::from_type},
    {"torch.jit._pickle", "build_boollist", pickle_global::first_argument},  // of LibTorch
    {"torch.jit._pickle", "build_doublelist", pickle_global::first_argument},
    {"torch.jit._pickle", "build_intlist", pickle_global::first_argument},
    {"torch.jit._pickle", "build_tensorlist", pickle_global::first_argument},
    {"torch.jit._pickle", "restore_type_tag", pickle_global::first_argument},
    {"torch", "FloatStorage", pickle_global::storage, dtype::float32},
    {"torch", "DoubleStorage", pickle_global::storage, dtype::float64},
    {"torch", "HalfStorage", pickle_global::storage, dtype::half},
    {"torch", "BFloat16Storage", pickle_global::storage, dtype::bfloat16},
    {"torch", "LongStorage", pickle_global::storage, dtype::int64},
    {"torch", "IntStorage", pickle_global::storage, dtype::int32},
    {"torch", "ShortStorage", pickle_global::storage, dtype::int16},
    {"torch", "CharStorage", pickle_global::storage, dtype::int8},
    {"torch", "ByteStorage", pickle_global::storage, dtype::uint8},
    {"torch", "BoolStorage", pickle_global::storage, dtype::boolean},
    {"torch", "ComplexFloatStorage", pickle_global::storage, dtype::complex64},
    {"torch", "ComplexDoubleStorage", pickle_global::storage, dtype::complex128},
    {"torch.storage", "UntypedStorage", pickle_global::storage},
    {"torch", "UntypedStorage", pickle_global::storage},
    {"torch", "float32", pickle_global::element_type, dtype::float32},
    {"torch", "float64", pickle_global::element_type, dtype::float64},
    {"torch", "float16", pickle_global::element_type, dtype::half},
    {"torch", "bfloat16", pickle_global::element_type, dtype::bfloat16},
    {"torch", "int64", pickle_global::element_type, dtype::int64},
    {"torch", "int32", pickle_global::element_type, dtype::int32},
    {"torch", "int16", pickle_global::element_type, dtype::int16},
    {"torch", "int8", pickle_global::element_type, dtype::int8},
    {"torch", "uint64", pickle_global::element_type, dtype::uint64},
    {"torch", "uint32", pickle_global::element_type, dtype::uint32},
    {"torch", "uint16", pickle_global::element_type, dtype::uint16},
    {"torch", "uint8", pickle_global::element_type, dtype::uint8},
    {"torch", "bool", pickle_global::element_type, dtype::boolean},
    {"torch", "complex64", pickle_global::element_type, dtype::complex64},
    {"torch", "complex128", pickle_global::element_type, dtype::complex128},
    {"torch", "float8_e5m2", pickle_global::element_type, dtype::float8_e5m2},
    {"torch", "float8_e4m3fn", pickle_global::element_type, dtype::float8_e4m3fn},
    {"torch", "float8_e5m2fnuz", pickle_global::element_type, dtype::float8_e5m2fnuz},
    {"torch", "float8_e4m3fnuz", pickle_global::element_type, dtype::float8_e4m3fnuz},
};

enum class object_kind {
  plain,  ///< A value that contains nothing, such as a number with a fraction.
  boolean,
  integer,
  text,
  tuple,
  list,
  dictionary,
  global,  ///< A known one.
  storage,
  tensor,
  foreign,  ///< A global that is not known, or an object that it made. Has no other effect.
  script    ///< An object of a class of TorchScript, such as a module that LibTorch wrote, before its attributes are known.
};

using object_id = std::uint32_t;

/// An object of Python.
struct pickle_object {
  object_kind kind = object_kind::plain;
  bool has_tensors = false;  ///< True if this is a tensor or a storage, or contains one.
  /// Value of a boolean or an integer; position of a global in `known_globals`; type of a storage; position of a tensor or a foreign name.
  std::int64_t number = 0;
  std::string_view text = {};         ///< Value of a text; key of a storage.
  std::vector<object_id> items = {};  ///< Of a tuple or list; keys and values of a dictionary in turn; everything in a foreign object.
};

/// The end of the execution by a failure. Does not leave this file.
struct pickle_failure {
  status cause;
};

[[noreturn]] void damaged_pickle(std::string_view why) {
  throw pickle_failure{{errc::data_loss, fmt::format("the pickle is damaged: {}", why)}};
}

constexpr auto most_bytes = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

/// Returns `a * b + c`. Stops if the result does not fit into a signed number.
std::uint64_t product_and(std::uint64_t a, std::uint64_t b, std::uint64_t c = 0) {
  if ((a != 0 && b > most_bytes / a) || c > most_bytes - a * b) { damaged_pickle("a size is too large"); }
  return a * b + c;
}

/// Executes one pickle. Each opcode makes at most one object of a fixed size and stores at most as many references as it takes from the
/// stack, so the memory is proportional to the size of the pickle. Where a short pickle can make something large, by references to one
/// object from many places, `charge` limits it.
class pickle_machine {
public:
  explicit pickle_machine(std::string_view pickle) : rest_(pickle), memory_(128 * pickle.size() + (std::uint64_t{16} << 20)) {}

  /// Executes all opcodes. Returns the bytes behind the last one.
  std::string_view execute_all() {
    while (execute(static_cast<unsigned char>(take(1).front()))) {}
    return rest_;
  }
  /// Returns the texts of the list that the pickle consists of. @pre `execute_all` was called.
  [[nodiscard]] std::vector<std::string> texts() {
    std::vector<std::string> found;
    const auto& list = objects_[pop()];
    if (list.kind != object_kind::list) { damaged_pickle("a list is missing"); }
    for (const auto item : list.items) { found.emplace_back(text_of(item)); }
    return found;
  }
  /// Returns the tensors. @pre `execute_all` was called.
  [[nodiscard]] std::vector<pickled_tensor> tensors() {
    collect(pop());
    if (std::ranges::any_of(collected_, [](const pickled_tensor& tensor) { return !tensor.is_foreign; })) { return std::move(collected_); }
    if (foreign_.empty()) { return {}; }
    throw pickle_failure{
        {errc::unimplemented,
         fmt::format("the pickle has no tensors that can be read, but \"{}\", which is not executed; only dense tensors in "
                     "dictionaries, lists and tuples are read: save model.state_dict()",
                     foreign_name(first_foreign_.value_or(0)))}};
  }
  /// Returns the types of all storages of the pickle by their keys.
  [[nodiscard]] std::map<std::string, dtype, std::less<>> storage_types() const {
    std::map<std::string, dtype, std::less<>> found;
    for (const auto& object : objects_) {
      if (object.kind == object_kind::storage) { found.emplace(object.text, static_cast<dtype>(object.number)); }
    }
    return found;
  }

private:
  void charge(std::uint64_t bytes) {
    if (bytes > memory_) {
      throw pickle_failure{
          {errc::unimplemented, "the pickle refers to the same objects too often; save each tensor once, in one dictionary"}};
    }
    memory_ -= bytes;
  }
  std::string_view take(std::uint64_t size) {
    if (size > rest_.size()) { throw pickle_failure{{errc::truncated, "the pickle is damaged: it ends too early"}}; }
    const auto taken = rest_.substr(0, static_cast<std::size_t>(size));
    rest_.remove_prefix(taken.size());
    return taken;
  }
  template<class Number>
  Number take_number() {
    return read_fixed<Number>(take(sizeof(Number)));
  }
  std::string_view take_line() {
    const auto end = rest_.find('\n');
    return take(end == std::string_view::npos ? end : end + 1).substr(0, end);
  }

  object_id add(pickle_object object) {
    if (objects_.size() == std::numeric_limits<object_id>::max()) { damaged_pickle("it is too large"); }
    for (const auto item : object.items) { object.has_tensors |= objects_[item].has_tensors; }
    objects_.push_back(std::move(object));
    return static_cast<object_id>(objects_.size() - 1);
  }
  void push(object_id id) { stack_.push_back(id); }
  void push(pickle_object object) { push(add(std::move(object))); }
  void push_plain() { push(plain_object); }
  void push_boolean(bool value) { push(value ? true_object : false_object); }
  void push_text(std::string_view text) { push({.kind = object_kind::text, .text = text}); }
  void push_integer(std::int64_t value) {
    if (value < 0 || value >= static_cast<std::int64_t>(small_integers_.size())) {
      return push({.kind = object_kind::integer, .number = value});
    }
    auto& shared = small_integers_[static_cast<std::size_t>(value)];
    if (shared == 0) { shared = add({.kind = object_kind::integer, .number = value}); }
    push(shared);
  }
  object_id top() const {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) { damaged_pickle("its stack is empty"); }
    return stack_.back();
  }
  object_id pop() {
    const auto id = top();
    stack_.pop_back();
    return id;
  }
  /// Removes the object on the top of the stack, or the last mark if it is there.
  void drop() {
    if (marks_.empty() || stack_.size() > marks_.back()) {
      pop();
    } else {
      marks_.pop_back();
    }
  }
  /// Removes the objects above the last mark, and the mark.
  std::vector<object_id> pop_mark() {
    if (marks_.empty()) { damaged_pickle("a mark is missing"); }
    std::vector<object_id> items(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return items;
  }
  std::vector<object_id> pop_items(std::size_t count) {
    std::vector<object_id> items(count);
    while (count-- > 0) { items[count] = pop(); }
    return items;
  }
  void push_tuple(std::vector<object_id> items) { push({.kind = object_kind::tuple, .items = std::move(items)}); }
  void push_dictionary(std::vector<object_id> items) {
    if (items.size() % 2 != 0) { damaged_pickle("a key has no value"); }
    push({.kind = object_kind::dictionary, .items = std::move(items)});
  }
  /// Appends to the container on the top of the stack. The caller takes the items from the stack first.
  void extend(object_kind kind, const std::vector<object_id>& items) {
    auto& object = objects_[top()];
    const bool is_container = object.kind == kind || object.kind == object_kind::foreign;
    if (!is_container || (kind == object_kind::dictionary && items.size() % 2 != 0)) { damaged_pickle("an object is no container"); }
    object.items.insert(object.items.end(), items.begin(), items.end());
    for (const auto item : items) { object.has_tensors |= objects_[item].has_tensors; }
  }

  void put(std::uint32_t key) { memo_[key] = top(); }
  void get(std::uint32_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) { damaged_pickle("it refers to an object that it lacks"); }
    push(found->second);
  }

  /// Executes one opcode, and returns true unless it is the last one. @see pickletools.py of Python
  bool execute(unsigned char opcode) {
    switch (opcode) {
      case 0x80: take(1); break;  // PROTO
      case 0x95: take(8); break;  // FRAME
      case '.': return false;     // STOP
      case '(': marks_.push_back(stack_.size()); break;
      case '0': drop(); break;
      case '1': pop_mark(); break;
      case '2': push(top()); break;
      case 'N': push_plain(); break;
      case 0x88: push_boolean(true); break;
      case 0x89: push_boolean(false); break;
      case 'K': push_integer(take_number<std::uint8_t>()); break;
      case 'M': push_integer(take_number<std::uint16_t>()); break;
      case 'J': push_integer(static_cast<std::int32_t>(take_number<std::uint32_t>())); break;
      case 0x8a: push_long(take(take_number<std::uint8_t>())); break;
      case 0x8b: push_long(take(take_number<std::uint32_t>())); break;
      case 'I':
      case 'L': push_decimal(take_line()); break;
      case 'G': push_skipped(8); break;
      case 'F':
        take_line();
        push_plain();
        break;
      case 'X':
      case 'T': push_text(take(take_number<std::uint32_t>())); break;
      case 0x8c:
      case 'U': push_text(take(take_number<std::uint8_t>())); break;
      case 0x8d: push_text(take(take_number<std::uint64_t>())); break;
      case 'V': push_text(take_line()); break;
      case 'S': push_quoted(take_line()); break;
      case 'C': push_skipped(take_number<std::uint8_t>()); break;
      case 'B': push_skipped(take_number<std::uint32_t>()); break;
      case 0x8e:
      case 0x96: push_skipped(take_number<std::uint64_t>()); break;
      case 0x97: push_plain(); break;  // NEXT_BUFFER
      case 0x98: top(); break;         // READONLY_BUFFER
      case 0x82: push_skipped(1); break;
      case 0x83: push_skipped(2); break;
      case 0x84: push_skipped(4); break;
      case ')': push(empty_tuple); break;
      case ']':
      case 0x8f: push({.kind = object_kind::list}); break;
      case '}': push_dictionary({}); break;
      case 0x85: push_tuple(pop_items(1)); break;
      case 0x86: push_tuple(pop_items(2)); break;
      case 0x87: push_tuple(pop_items(3)); break;
      case 't': push_tuple(pop_mark()); break;
      case 'l':
      case 0x91: push({.kind = object_kind::list, .items = pop_mark()}); break;
      case 'd': push_dictionary(pop_mark()); break;
      case 'a': extend(object_kind::list, pop_items(1)); break;
      case 's': extend(object_kind::dictionary, pop_items(2)); break;
      case 'e':
      case 0x90: extend(object_kind::list, pop_mark()); break;
      case 'u': extend(object_kind::dictionary, pop_mark()); break;
      case 'p': put(take_decimal()); break;
      case 'q': put(take_number<std::uint8_t>()); break;
      case 'r': put(take_number<std::uint32_t>()); break;
      case 0x94: put(static_cast<std::uint32_t>(memo_.size())); break;
      case 'g': get(take_decimal()); break;
      case 'h': get(take_number<std::uint8_t>()); break;
      case 'j': get(take_number<std::uint32_t>()); break;
      case 'Q': push_storage(pop()); break;
      case 'P': push_printed_storage(take_line()); break;
      case 'b': build(pop()); break;
      default: return execute_call(opcode);
    }
    return true;
  }

  /// Executes an opcode for a global or its call.
  bool execute_call(unsigned char opcode) {
    switch (opcode) {
      case 'c': {
        const auto module = take_line();
        push(global_named(module, take_line()));
        break;
      }
      case 0x93: {
        const auto names = pop_items(2);
        push(global_named(text_of(names[0]), text_of(names[1])));
        break;
      }
      case 'R':
      case 0x81: {  // REDUCE, NEWOBJ
        const auto parts = pop_items(2);
        call(parts[0], parts[1]);
        break;
      }
      case 0x92: {  // NEWOBJ_EX
        const auto parts = pop_items(3);
        call(parts[0], parts[1]);
        break;
      }
      case 'i': {
        const auto module = take_line();
        const auto made = global_named(module, take_line());
        call(made, add({.kind = object_kind::tuple, .items = pop_mark()}));
        break;
      }
      case 'o': {
        auto items = pop_mark();
        if (items.empty()) { damaged_pickle("a class is missing"); }
        const auto made = items.front();
        items.erase(items.begin());
        call(made, add({.kind = object_kind::tuple, .items = std::move(items)}));
        break;
      }
      default: damaged_pickle(fmt::format("the opcode {:#04x} is unknown", opcode));
    }
    return true;
  }

  void push_skipped(std::uint64_t size) {
    take(size);
    push_plain();
  }
  void push_long(std::string_view bytes) {
    if (bytes.size() > 8) { return push_plain(); }
    std::uint64_t value = !bytes.empty() && static_cast<unsigned char>(bytes.back()) >= 0x80 ? ~std::uint64_t{0} : 0;
    for (std::size_t i = bytes.size(); i-- > 0;) { value = value << 8 | static_cast<unsigned char>(bytes[i]); }
    push_integer(static_cast<std::int64_t>(value));
  }
  void push_decimal(std::string_view line) {
    if (line == "00" || line == "01") { return push_boolean(line == "01"); }
    if (line.ends_with('L')) { line.remove_suffix(1); }
    std::int64_t value = 0;
    const auto [end, failure] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (failure == std::errc::result_out_of_range) { return push_plain(); }
    if (failure != std::errc{} || end != line.data() + line.size()) { damaged_pickle("a number is missing"); }
    push_integer(value);
  }
  std::uint32_t take_decimal() {
    const auto line = take_line();
    std::uint32_t value = 0;
    const auto [end, failure] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (failure != std::errc{} || end != line.data() + line.size()) { damaged_pickle("a number is missing"); }
    return value;
  }
  void push_quoted(std::string_view line) {
    if (line.size() < 2 || line.front() != line.back()) { damaged_pickle("a text has no quotes"); }
    push_text(line.substr(1, line.size() - 2));
  }

  std::string_view text_of(object_id id) const {
    if (objects_[id].kind != object_kind::text) { damaged_pickle("a text is missing"); }
    return objects_[id].text;
  }
  std::uint64_t size_of_object(object_id id) const {
    if (objects_[id].kind != object_kind::integer || objects_[id].number < 0) { damaged_pickle("a size is missing or negative"); }
    return static_cast<std::uint64_t>(objects_[id].number);
  }
  /// Valid until the next object is added.
  const std::vector<object_id>& items_of(object_id id, object_kind kind) const {
    if (objects_[id].kind != kind) { damaged_pickle("an object has an unexpected type"); }
    return objects_[id].items;
  }
  std::vector<std::int64_t> sizes_of(object_id id) {
    const auto& items = items_of(id, object_kind::tuple);
    charge(sizeof(std::int64_t) * items.size());
    std::vector<std::int64_t> sizes;
    sizes.reserve(items.size());
    for (const auto item : items) { sizes.push_back(static_cast<std::int64_t>(size_of_object(item))); }
    return sizes;
  }
  /// Returns the type that a global means, and `dtype::invalid` if this library lacks it.
  dtype type_of(object_id id, pickle_global meaning) const {
    const auto& object = objects_[id];
    if (object.kind == object_kind::foreign) { return dtype::invalid; }
    if (object.kind != object_kind::global || known_globals[object.number].meaning != meaning) { damaged_pickle("a type is missing"); }
    return known_globals[object.number].dtype;
  }

  object_id global_named(std::string_view module, std::string_view name) {
    if (module == "__builtin__") { module = "builtins"; }  // its name in protocols 0 to 2
    const auto* found =
        std::ranges::find_if(known_globals, [&](const known_global& known) { return known.module == module && known.name == name; });
    if (found != std::end(known_globals)) { return add({.kind = object_kind::global, .number = found - std::begin(known_globals)}); }
    foreign_.emplace_back(module, name);
    return add({.kind = object_kind::foreign,
                .has_tensors = module == "torch._utils" && name.starts_with("_rebuild_"),
                .number = static_cast<std::int64_t>(foreign_.size() - 1)});
  }
  [[nodiscard]] std::string foreign_name(std::size_t number) const {
    constexpr std::size_t most = 100;  // characters of each part in a message
    const auto [module, name] = foreign_[number];
    return fmt::format("{}.{}", to_utf8(module.substr(0, most)), to_utf8(name.substr(0, most)));
  }

  /// Pushes the storage of the persistent id ("storage", type, key, device, number of elements). Any other id means a foreign object.
  void push_storage(object_id id) {
    const auto& object = objects_[id];
    const bool is_storage = object.kind == object_kind::tuple && object.items.size() >= 5 &&
                            objects_[object.items[0]].kind == object_kind::text && objects_[object.items[0]].text == "storage" &&
                            (object.items.size() < 6 || object.items[5] == plain_object);
    if (!is_storage) { return push_foreign("torch", "persistent object", {id}); }
    push({.kind = object_kind::storage,
          .has_tensors = true,
          .number = static_cast<std::int64_t>(type_of(object.items[1], pickle_global::storage)),
          .text = text_of(object.items[2])});
  }
  /// Pushes the storage of an id in protocol 0, which is printed: ('storage', <class 'torch.FloatStorage'>, '0', 'cpu', 2).
  void push_printed_storage(std::string_view line) {
    std::vector<std::string_view> texts;  // between quotes
    for (auto begin = line.find('\''); begin != std::string_view::npos && texts.size() < 3; begin = line.find('\'', begin + 1)) {
      const auto end = line.find('\'', begin + 1);
      if (end == std::string_view::npos) { break; }
      texts.push_back(line.substr(begin + 1, end - begin - 1));
      begin = end;
    }
    if (texts.size() < 3 || texts[0] != "storage") { return push_foreign("torch", "persistent object", {}); }
    const auto dot = texts[1].rfind('.');
    const auto type = global_named(texts[1].substr(0, dot), dot == std::string_view::npos ? "" : texts[1].substr(dot + 1));
    push({.kind = object_kind::storage,
          .has_tensors = true,
          .number = static_cast<std::int64_t>(type_of(type, pickle_global::storage)),
          .text = texts[2]});
  }
  void push_foreign(std::string_view module, std::string_view name, std::vector<object_id> items) {
    foreign_.emplace_back(module, name);
    push({.kind = object_kind::foreign, .number = static_cast<std::int64_t>(foreign_.size() - 1), .items = std::move(items)});
  }

  /// Gives the object on the top of the stack its attributes.
  void build(object_id state) {
    auto& object = objects_[top()];
    if (object.kind == object_kind::script && objects_[state].kind == object_kind::dictionary) {
      charge(sizeof(object_id) * objects_[state].items.size());
      object.kind = object_kind::dictionary;
      object.items = objects_[state].items;
    } else if (object.kind == object_kind::foreign || object.kind == object_kind::script) {
      object.kind = object_kind::foreign;
      object.items.push_back(state);
    } else {
      return;  // attributes of a dictionary or a parameter, such as the versions of modules
    }
    object.has_tensors |= objects_[state].has_tensors;
  }

  void call(object_id function, object_id tuple) {
    // A loop, because a pickle can nest these calls as deeply as it likes.
    while (objects_[function].kind == object_kind::global && known_globals[objects_[function].number].meaning == pickle_global::from_type) {
      charge(16);
      const auto& arguments = items_of(tuple, object_kind::tuple);
      if (arguments.size() < 3) { damaged_pickle("a call has unexpected arguments"); }
      function = arguments[0];
      tuple = arguments[2];
    }
    const auto& made = objects_[function];
    if (made.kind == object_kind::foreign) {
      const bool is_script = foreign_[static_cast<std::size_t>(made.number)].first.starts_with("__torch__");
      return push({.kind = is_script ? object_kind::script : object_kind::foreign,
                   .has_tensors = made.has_tensors,
                   .number = made.number,
                   .items = {tuple}});
    }
    if (made.kind != object_kind::global) { damaged_pickle("a call of no function"); }
    call_known(known_globals[made.number].meaning, items_of(tuple, object_kind::tuple));
  }

  void call_known(pickle_global meaning, const std::vector<object_id>& arguments) {
    const auto kind = arguments.empty() ? object_kind::plain : objects_[arguments[0]].kind;
    switch (meaning) {
      case pickle_global::dictionary:
        if (kind == object_kind::list) { return push_pairs(objects_[arguments[0]].items); }
        if (kind == object_kind::dictionary) { return push(arguments[0]); }
        return push_dictionary({});
      case pickle_global::sequence:
        if (kind == object_kind::list || kind == object_kind::tuple) { return push(arguments[0]); }
        return push({.kind = object_kind::list});
      case pickle_global::first_argument:
        if (arguments.empty()) { break; }
        return push(arguments[0]);
      case pickle_global::tensor_v2:
        if (arguments.size() < 4) { break; }
        return push_tensor(arguments, static_cast<dtype>(objects_[arguments[0]].number), 6);
      case pickle_global::tensor_v3:
        if (arguments.size() < 7) { break; }
        return push_tensor(arguments, type_of(arguments[6], pickle_global::element_type), 7);
      default: return push_plain();
    }
    damaged_pickle("a call has unexpected arguments");
  }

  void push_pairs(const std::vector<object_id>& pairs) {
    charge(2 * sizeof(object_id) * pairs.size());  // also limits the time
    std::vector<object_id> items;
    for (const auto pair : pairs) {
      const auto& both = objects_[pair];
      if ((both.kind != object_kind::list && both.kind != object_kind::tuple) || both.items.size() != 2) {
        damaged_pickle("an item of a dictionary is no pair");
      }
      items.insert(items.end(), both.items.begin(), both.items.end());
    }
    push_dictionary(std::move(items));
  }

  /// Pushes a tensor. `arguments` begins with the storage, the offset, the sizes and the strides. The argument with the number `metadata`, if
  /// it is there, is a dictionary.
  void push_tensor(const std::vector<object_id>& arguments, dtype type, std::size_t metadata) {
    const auto& storage = objects_[arguments[0]];
    if (storage.kind != object_kind::storage) { damaged_pickle("a tensor has no storage"); }
    pickled_tensor made{.array = {.dtype = type, .shape = sizes_of(arguments[2])}, .storage = std::string(storage.text)};
    auto strides = sizes_of(arguments[3]);
    charge(sizeof made + storage.text.size());
    auto& array = made.array;
    const auto width = std::max<std::uint64_t>(size_of(type), 1);
    const auto size = size_of_shape(array.shape, width);
    if (!size || strides.size() != array.shape.size()) { damaged_pickle("the shape of a tensor is impossible"); }
    const bool is_view = arguments.size() > metadata && !objects_[arguments[metadata]].items.empty();
    if (size_of(type) == 0) {
      array.unsupported = "its type is not supported; save tensor.float()";
    } else {
      array.size = *size;
      array.offset = product_and(size_of_object(arguments[1]), width);
      set_strides(made, std::move(strides), width);
    }
    if (is_view) { array.unsupported = "it is a conjugate or negative view; save tensor.resolve_conj().resolve_neg()"; }
    push({.kind = object_kind::tensor, .has_tensors = true, .number = static_cast<std::int64_t>(tensors_.size())});
    tensors_.push_back(std::move(made));
  }

  static void set_strides(pickled_tensor& made, std::vector<std::int64_t> strides, std::uint64_t width) {
    auto& array = made.array;
    std::uint64_t last = 0;     // number of the last element, relative to the first one
    std::int64_t expected = 1;  // stride without gaps
    bool is_contiguous = true;
    if (array.size == 0) { return; }
    for (std::size_t d = strides.size(); d-- > 0;) {
      if (array.shape[d] == 1) { strides[d] = 0; }  // has no meaning
      if (array.shape[d] == 1) { continue; }
      last = product_and(static_cast<std::uint64_t>(strides[d]), static_cast<std::uint64_t>(array.shape[d] - 1), last);
      is_contiguous = is_contiguous && strides[d] == expected;
      expected *= array.shape[d];
    }
    made.end = product_and(1, product_and(last + 1, width), array.offset);
    if (!is_contiguous) { array.strides = std::move(strides); }
  }

  /// Adds all tensors below an object to the result. An object that contains itself is entered once.
  void collect(object_id root) {
    struct level {
      object_id id;
      std::size_t next = 0;         // position in the items
      std::size_t name_length = 0;  // of its parent
    };
    std::vector<level> path;
    std::vector<bool> is_entered(objects_.size());
    std::string name;
    const auto visit = [&](object_id id, std::size_t length) {
      const auto& object = objects_[id];
      if (object.kind == object_kind::tensor || object.kind == object_kind::foreign) {
        collect_one(object, path.empty() ? "tensor" : name);
      } else if (!is_entered[id] && object.kind != object_kind::storage) {
        is_entered[id] = true;
        path.push_back({.id = id, .name_length = length});
        return;
      }
      name.resize(length);
    };
    if (objects_[root].has_tensors) { visit(root, 0); }
    while (!path.empty()) {
      auto& at = path.back();
      const auto& object = objects_[at.id];
      if (at.next == object.items.size()) {
        is_entered[at.id] = false;
        name.resize(at.name_length);
        path.pop_back();
        continue;
      }
      const bool has_keys = object.kind == object_kind::dictionary;
      const auto number = at.next;
      at.next += has_keys ? 2 : 1;
      const auto child = object.items[at.next - 1];
      charge(16);
      if (!objects_[child].has_tensors) { continue; }
      const auto length = name.size();
      const auto key = has_keys ? key_text(object.items[number]) : std::to_string(number);
      charge(key.size());
      name.append(path.size() == 1 ? "" : ".").append(key);
      visit(child, length);
    }
  }
  void collect_one(const pickle_object& object, std::string_view name) {
    const bool is_foreign = object.kind == object_kind::foreign;
    if (is_foreign && !first_foreign_) { first_foreign_ = static_cast<std::size_t>(object.number); }
    auto tensor = is_foreign ? foreign_tensor(object) : tensors_[static_cast<std::size_t>(object.number)];
    tensor.array.name = name;
    charge(sizeof tensor + tensor.storage.size() + name.size() + 16 * tensor.array.shape.size() + tensor.array.unsupported.size());
    collected_.push_back(std::move(tensor));
  }
  /// Returns the description of a foreign object with tensors.
  [[nodiscard]] pickled_tensor foreign_tensor(const pickle_object& object) const {
    const auto name = foreign_name(static_cast<std::size_t>(object.number));
    const std::string_view advice = name.ends_with("_sparse_tensor") ? "save tensor.to_dense()"
                                    : name.ends_with("_qtensor")     ? "save tensor.dequantize()"
                                                                     : "save its dense tensors, such as those of its state_dict()";
    pickled_tensor made{.array = {.unsupported = fmt::format("it contains \"{}\", which is not executed; {}", name, advice)},
                        .storage = {}};
    made.is_foreign = true;
    return made;
  }
  std::string key_text(object_id id) const {
    const auto& key = objects_[id];
    switch (key.kind) {
      case object_kind::integer: return std::to_string(key.number);
      case object_kind::boolean: return key.number != 0 ? "True" : "False";
      case object_kind::text: return std::string(key.text);
      default: return "?";
    }
  }

  static constexpr object_id plain_object = 0;  // stands for all plain ones
  static constexpr object_id true_object = 1;
  static constexpr object_id false_object = 2;
  static constexpr object_id empty_tuple = 3;

  std::string_view rest_;
  std::uint64_t memory_;  // bytes that `charge` still allows
  std::vector<pickle_object> objects_{
      {}, {.kind = object_kind::boolean, .number = 1}, {.kind = object_kind::boolean}, {.kind = object_kind::tuple}};
  std::array<object_id, 256> small_integers_{};  // 0: not made yet
  std::vector<object_id> stack_;
  std::vector<std::size_t> marks_;  // sizes of the stack
  std::unordered_map<std::uint32_t, object_id> memo_;
  std::vector<std::pair<std::string_view, std::string_view>> foreign_;  // modules and names
  std::vector<pickled_tensor> tensors_;
  std::vector<pickled_tensor> collected_;
  std::optional<std::size_t> first_foreign_;  // the first one in `collected_`
};

}  // namespace

result<std::vector<pickled_tensor>> decode_state_dict(std::string_view pickle) {
  try {
    pickle_machine machine(pickle);
    machine.execute_all();
    return machine.tensors();
  } catch (pickle_failure& failure) {
    if (failure.cause.code == errc::truncated) { failure.cause.code = errc::data_loss; }
    return std::move(failure.cause);
  }
}

bool is_old_torch_file(std::string_view beginning) noexcept {
  constexpr std::string_view magic = "\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19."sv;  // a number of 10 bytes and the end of its pickle
  const auto at = beginning.find(magic);
  return beginning.starts_with('\x80') && at != std::string_view::npos && at <= 11;  // after PROTO, and FRAME since protocol 4
}

result<old_torch_file> decode_old_torch_file(std::string_view beginning) {
  try {
    auto rest = beginning;
    for (int skipped = 0; skipped < 3; ++skipped) { rest = pickle_machine(rest).execute_all(); }  // magic number, version, system
    pickle_machine machine(rest);
    rest = machine.execute_all();
    pickle_machine keys(rest);
    rest = keys.execute_all();
    old_torch_file found{.tensors = machine.tensors(), .storages = {}, .size = beginning.size() - rest.size()};
    const auto types = machine.storage_types();
    for (auto& key : keys.texts()) {
      const auto type = types.find(key);
      const auto width = type == types.end() || type->second == dtype::invalid ? 1 : size_of(type->second);
      found.storages.push_back({std::move(key), width});
    }
    return found;
  } catch (pickle_failure& failure) { return std::move(failure.cause); }
}

}  // namespace stepwell::format
