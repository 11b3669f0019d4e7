// SPDX-License-Identifier: Apache-2.0
#include "stepwell/format/weights/detail/state_dict.hpp"

#include "stepwell/format/detail/coding.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <span>
#include <unordered_map>
#include <utility>

namespace stepwell::format {
namespace {

using namespace std::string_view_literals;

/// The meaning of an allowed global name.
enum class pickle_global { ordered_dict, size, tensor_v2, tensor_v3, parameter, storage, element_type };

struct known_global {
  std::string_view module;
  std::string_view name;
  pickle_global meaning;
  stepwell::dtype dtype = dtype::invalid;  ///< Of a storage or of an element type. Invalid for an untyped storage.
};

constexpr known_global known_globals[] = {
    {"collections", "OrderedDict", pickle_global::ordered_dict},
    {"torch", "Size", pickle_global::size},
    {"torch._utils", "_rebuild_tensor_v2", pickle_global::tensor_v2},
    {"torch._utils", "_rebuild_tensor_v3", pickle_global::tensor_v3},
    {"torch._utils", "_rebuild_parameter", pickle_global::parameter},
    {"torch._utils", "_rebuild_parameter_with_state", pickle_global::parameter},
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

enum class object_kind { plain, boolean, integer, text, tuple, list, dictionary, global, storage, tensor };

using object_id = std::uint32_t;

/// An object of Python.
struct pickle_object {
  object_kind kind = object_kind::plain;
  std::int64_t number = 0;            ///< Value of an integer; position of a global in `known_globals`, or of a tensor in the result.
  std::string_view text = {};         ///< Value of a text; key of a storage.
  std::vector<object_id> items = {};  ///< Of a tuple or list; keys and values of a dictionary in turn.
};

/// The end of the execution by a failure. Does not leave this file.
struct pickle_failure {
  status cause;
};

[[noreturn]] void damaged_pickle(std::string_view why) {
  throw pickle_failure{{errc::data_loss, fmt::format("the pickle is damaged: {}", why)}};
}
[[noreturn]] void refuse_pickle(std::string_view what) {
  throw pickle_failure{
      {errc::unimplemented, fmt::format("the pickle contains {}, which is not executed; only dictionaries of dense tensors are "
                                        "read: save model.state_dict()",
                                        what)}};
}

constexpr auto most_bytes = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

/// Returns `a * b + c`. Stops if the result does not fit into a signed number.
std::uint64_t product_and(std::uint64_t a, std::uint64_t b, std::uint64_t c = 0) {
  if ((a != 0 && b > most_bytes / a) || c > most_bytes - a * b) { damaged_pickle("a size is too large"); }
  return a * b + c;
}

class pickle_machine {
public:
  explicit pickle_machine(std::string_view pickle) : rest_(pickle), memory_(32 * pickle.size() + (std::uint64_t{1} << 20)) {}

  [[nodiscard]] std::vector<pickled_tensor> run() {
    while (execute(static_cast<unsigned char>(take(1).front()))) {}
    std::string name;
    collect(pop(), name, 0);
    return std::move(collected_);
  }

private:
  void charge(std::uint64_t bytes) {
    if (bytes > memory_) { damaged_pickle("it requires more memory than a pickle of its size can need"); }
    memory_ -= bytes;
  }
  std::string_view take(std::uint64_t size) {
    if (size > rest_.size()) { damaged_pickle("it ends too early"); }
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
    if (end == std::string_view::npos) { damaged_pickle("it ends too early"); }
    return take(end + 1).substr(0, end);
  }

  object_id add(pickle_object object) {
    charge(sizeof(pickle_object) + sizeof(object_id) * object.items.size());
    objects_.push_back(std::move(object));
    return static_cast<object_id>(objects_.size() - 1);
  }
  void push(object_id id) {
    charge(2 * sizeof(object_id));
    stack_.push_back(id);
  }
  void push(pickle_object object) { push(add(std::move(object))); }
  void push_integer(std::int64_t value) { push({.kind = object_kind::integer, .number = value}); }
  void push_text(std::string_view text) { push({.kind = object_kind::text, .text = text}); }
  /// Pushes an object without a content that matters.
  void push_plain(object_kind kind) {
    if (kind == object_kind::plain) { return push(plain_object); }
    push({.kind = kind});
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
  /// Removes the objects above the last mark, and the mark.
  std::vector<object_id> pop_mark() {
    if (marks_.empty()) { damaged_pickle("a mark is missing"); }
    const std::vector<object_id> items(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), stack_.end());
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
  /// Appends to the list or dictionary on the top of the stack. The caller takes the items from the stack first.
  void extend(object_kind kind, const std::vector<object_id>& items) {
    auto& object = objects_[top()];
    if (object.kind != kind || (kind == object_kind::dictionary && items.size() % 2 != 0)) { damaged_pickle("an object is no container"); }
    charge(2 * sizeof(object_id) * items.size());
    object.items.insert(object.items.end(), items.begin(), items.end());
  }

  void put(std::uint32_t key) {
    charge(48);
    memo_[key] = top();
  }
  void get(std::uint32_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) { damaged_pickle("it refers to an object that it lacks"); }
    push(found->second);
  }

  /// Executes one opcode, and returns true unless it is the last one.
  bool execute(unsigned char opcode) {
    switch (opcode) {
      case 0x80: take(1); break;  // PROTO
      case 0x95: take(8); break;  // FRAME
      case '.': return false;     // STOP
      case '(':
        marks_.push_back(stack_.size());
        charge(2 * sizeof(std::size_t));
        break;
      case 'N': push_plain(object_kind::plain); break;
      case 0x88: push({.kind = object_kind::boolean, .number = 1}); break;
      case 0x89: push({.kind = object_kind::boolean}); break;
      case 'K': push_integer(take_number<std::uint8_t>()); break;
      case 'M': push_integer(take_number<std::uint16_t>()); break;
      case 'J': push_integer(static_cast<std::int32_t>(take_number<std::uint32_t>())); break;
      case 0x8a: push_long(take(take_number<std::uint8_t>())); break;
      case 'G':
        take(8);
        push_plain(object_kind::plain);
        break;
      case 'X': push_text(take(take_number<std::uint32_t>())); break;
      case 0x8c: push_text(take(take_number<std::uint8_t>())); break;
      case 0x8d: push_text(take(take_number<std::uint64_t>())); break;
      case 'U': push_text(take(take_number<std::uint8_t>())); break;
      case 'T': push_text(take(take_number<std::uint32_t>())); break;
      case 'C':
        take(take_number<std::uint8_t>());
        push_plain(object_kind::plain);
        break;
      case 'B':
        take(take_number<std::uint32_t>());
        push_plain(object_kind::plain);
        break;
      case ')': push_plain(object_kind::tuple); break;
      case ']': push_plain(object_kind::list); break;
      case '}': push_plain(object_kind::dictionary); break;
      case 0x85: push_tuple(pop_items(1)); break;
      case 0x86: push_tuple(pop_items(2)); break;
      case 0x87: push_tuple(pop_items(3)); break;
      case 't': push_tuple(pop_mark()); break;
      case 'a': extend(object_kind::list, pop_items(1)); break;
      case 's': extend(object_kind::dictionary, pop_items(2)); break;
      case 'e': extend(object_kind::list, pop_mark()); break;
      case 'u': extend(object_kind::dictionary, pop_mark()); break;
      case 'q': put(take_number<std::uint8_t>()); break;
      case 'r': put(take_number<std::uint32_t>()); break;
      case 0x94: put(static_cast<std::uint32_t>(memo_.size())); break;
      case 'h': get(take_number<std::uint8_t>()); break;
      case 'j': get(take_number<std::uint32_t>()); break;
      case 'c': {
        const auto module = take_line();
        push_global(module, take_line());
        break;
      }
      case 0x93: {
        const auto names = pop_items(2);
        push_global(text_of(names[0]), text_of(names[1]));
        break;
      }
      case 'Q': push_storage(pop()); break;
      case 'R': {
        const auto parts = pop_items(2);
        call(objects_[parts[0]], items_of(parts[1], object_kind::tuple));
        break;
      }
      case 'b': {
        pop();  // attributes of a dictionary, such as the versions of modules
        if (objects_[top()].kind != object_kind::dictionary) { refuse_pickle("an object with attributes (opcode BUILD)"); }
        break;
      }
      default: refuse_opcode(opcode);
    }
    return true;
  }

  [[noreturn]] static void refuse_opcode(unsigned char opcode) {
    constexpr std::pair<unsigned char, std::string_view> names[] = {{0x81, "NEWOBJ"}, {0x92, "NEWOBJ_EX"}, {'i', "INST"},
                                                                    {'o', "OBJ"},     {0x82, "EXT1"},      {'P', "PERSID"},
                                                                    {'0', "POP"},     {0x8f, "EMPTY_SET"}};
    const auto* known = std::ranges::find(names, opcode, &std::pair<unsigned char, std::string_view>::first);
    refuse_pickle(fmt::format("the opcode {:#04x}{}{}", opcode, known != std::end(names) ? " " : "",
                              known != std::end(names) ? known->second : std::string_view()));
  }

  void push_long(std::string_view bytes) {
    if (bytes.size() > 8) { return push_plain(object_kind::plain); }
    std::uint64_t value = !bytes.empty() && static_cast<unsigned char>(bytes.back()) >= 0x80 ? ~std::uint64_t{0} : 0;
    for (std::size_t i = bytes.size(); i-- > 0;) { value = value << 8 | static_cast<unsigned char>(bytes[i]); }
    push_integer(static_cast<std::int64_t>(value));
  }

  std::string_view text_of(object_id id) const {
    if (objects_[id].kind != object_kind::text) { damaged_pickle("a text is missing"); }
    return objects_[id].text;
  }
  std::uint64_t size_of_object(object_id id) const {
    if (objects_[id].kind != object_kind::integer || objects_[id].number < 0) { damaged_pickle("a size is missing or negative"); }
    return static_cast<std::uint64_t>(objects_[id].number);
  }
  std::vector<object_id> items_of(object_id id, object_kind kind) {
    if (objects_[id].kind != kind) { damaged_pickle("an object has an unexpected type"); }
    charge(sizeof(object_id) * objects_[id].items.size());  // also limits the time
    return objects_[id].items;
  }
  std::vector<std::int64_t> sizes_of(object_id id) {
    std::vector<std::int64_t> sizes;
    for (const auto item : items_of(id, object_kind::tuple)) { sizes.push_back(static_cast<std::int64_t>(size_of_object(item))); }
    return sizes;
  }
  const known_global& global_of(object_id id, pickle_global meaning) const {
    const auto& object = objects_[id];
    if (object.kind != object_kind::global) { damaged_pickle("a global is missing"); }
    const auto& global = known_globals[object.number];
    if (global.meaning != meaning) { damaged_pickle("a global is in an unexpected place"); }
    return global;
  }

  void push_global(std::string_view module, std::string_view name) {
    const auto* found =
        std::ranges::find_if(known_globals, [&](const known_global& known) { return known.module == module && known.name == name; });
    if (found == std::end(known_globals)) {
      constexpr std::size_t most = 100;  // characters of a name in the message
      refuse_pickle(fmt::format("the global \"{}.{}\"", to_utf8(module.substr(0, most)), to_utf8(name.substr(0, most))));
    }
    push({.kind = object_kind::global, .number = found - std::begin(known_globals)});
  }

  /// Pushes the storage of the persistent id ("storage", type, key, device, number of elements).
  void push_storage(object_id id) {
    const auto items = items_of(id, object_kind::tuple);
    if (items.size() < 5 || text_of(items[0]) != "storage") { damaged_pickle("a persistent id is no storage"); }
    push({.kind = object_kind::storage,
          .number = static_cast<std::int64_t>(global_of(items[1], pickle_global::storage).dtype),
          .text = text_of(items[2])});
  }

  void call(const pickle_object& function, const std::vector<object_id>& arguments) {
    if (function.kind != object_kind::global) { damaged_pickle("a call of no function"); }
    switch (known_globals[function.number].meaning) {
      case pickle_global::ordered_dict: return push_dictionary(arguments);
      case pickle_global::size:
        if (arguments.size() != 1) { break; }
        return push(arguments[0]);
      case pickle_global::parameter:
        if (arguments.empty() || objects_[arguments[0]].kind != object_kind::tensor) { break; }
        return push(arguments[0]);
      case pickle_global::tensor_v2:
        if (arguments.size() < 6) { break; }
        return push_tensor(arguments, static_cast<dtype>(objects_[arguments[0]].number), std::span(arguments).subspan(6));
      case pickle_global::tensor_v3:
        if (arguments.size() < 7) { break; }
        return push_tensor(arguments, global_of(arguments[6], pickle_global::element_type).dtype, std::span(arguments).subspan(7));
      default: break;
    }
    damaged_pickle("a call has unexpected arguments");
  }

  void push_dictionary(const std::vector<object_id>& arguments) {
    std::vector<object_id> items;
    if (!arguments.empty()) {
      for (const auto pair : items_of(arguments[0], object_kind::list)) {
        const auto kind = objects_[pair].kind == object_kind::list ? object_kind::list : object_kind::tuple;
        const auto both = items_of(pair, kind);
        if (both.size() != 2) { damaged_pickle("an item of a dictionary is no pair"); }
        items.insert(items.end(), both.begin(), both.end());
      }
    }
    push({.kind = object_kind::dictionary, .items = std::move(items)});
  }

  /// Pushes a tensor. `arguments` begins with the storage, the offset, the sizes and the strides. `metadata` may have one dictionary.
  void push_tensor(const std::vector<object_id>& arguments, dtype type, std::span<const object_id> metadata) {
    const auto& storage = objects_[arguments[0]];
    if (storage.kind != object_kind::storage || size_of(type) == 0) { damaged_pickle("a tensor has no storage, or no type"); }
    pickled_tensor made{.array = {.dtype = type, .shape = sizes_of(arguments[2])}, .storage = std::string(storage.text)};
    auto strides = sizes_of(arguments[3]);
    charge(sizeof made + storage.text.size() + 32 * strides.size());
    auto& array = made.array;
    const auto width = size_of(type);
    const auto size = size_of_shape(array.shape, width);
    if (!size || strides.size() != array.shape.size()) { damaged_pickle("the shape of a tensor is impossible"); }
    array.size = *size;
    array.offset = product_and(size_of_object(arguments[1]), width);
    set_strides(made, std::move(strides), width);
    const bool is_view = !metadata.empty() && !objects_[metadata[0]].items.empty();
    if (is_view) { array.unsupported = "it is a conjugate or negative view; save tensor.resolve_conj().resolve_neg()"; }
    push({.kind = object_kind::tensor, .number = static_cast<std::int64_t>(tensors_.size())});
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
    const auto extent = product_and(last + 1, width);
    made.end = product_and(1, extent, array.offset);
    if (array.size > extent) { array.unsupported = "its elements share memory, as after expand(); save tensor.contiguous()"; }
    if (!is_contiguous) { array.strides = std::move(strides); }
  }

  /// Adds all tensors below an object to the result. `name` is that of the object, and unchanged afterwards.
  void collect(object_id id, std::string& name, int depth) {
    constexpr int deepest = 64;
    const auto& object = objects_[id];
    if (object.kind == object_kind::tensor) {
      auto tensor = tensors_[static_cast<std::size_t>(object.number)];
      charge(sizeof tensor + tensor.storage.size() + 16 * tensor.array.shape.size());
      tensor.array.name = depth == 0 ? "tensor" : name;
      collected_.push_back(std::move(tensor));
    }
    const bool has_keys = object.kind == object_kind::dictionary;
    if (!has_keys && object.kind != object_kind::list && object.kind != object_kind::tuple) { return; }
    if (depth == deepest) { damaged_pickle("its objects are nested too deeply"); }
    const auto length = name.size();
    for (std::size_t i = 0; i < object.items.size(); ++i) {
      const auto key = has_keys ? key_text(object.items[i++]) : std::to_string(i);
      name.append(depth == 0 ? "" : ".").append(key);
      charge(16 + name.size());
      collect(object.items[i], name, depth + 1);
      name.resize(length);
    }
  }
  std::string key_text(object_id id) const {
    const auto& key = objects_[id];
    if (key.kind == object_kind::integer) { return std::to_string(key.number); }
    return key.kind == object_kind::text ? std::string(key.text) : "?";
  }

  std::string_view rest_;
  std::uint64_t memory_;  // bytes that may still be allocated
  static constexpr object_id plain_object = 0;
  std::vector<pickle_object> objects_ = std::vector<pickle_object>(1);  // the first one stands for all plain ones
  std::vector<object_id> stack_;
  std::vector<std::size_t> marks_;  // sizes of the stack
  std::unordered_map<std::uint32_t, object_id> memo_;
  std::vector<pickled_tensor> tensors_;
  std::vector<pickled_tensor> collected_;
};

}  // namespace

result<std::vector<pickled_tensor>> decode_state_dict(std::string_view pickle) {
  try {
    return pickle_machine(pickle).run();
  } catch (pickle_failure& failure) { return std::move(failure.cause); }
}

}  // namespace stepwell::format
