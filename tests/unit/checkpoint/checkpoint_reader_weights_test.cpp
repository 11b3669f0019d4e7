// SPDX-License-Identifier: Apache-2.0
//
// Files of weights that Python wrote (tests/data/weights/make_weights.py), and damaged and hostile ones.
#include <stepwell/checkpoint/checkpoint_reader.hpp>

#include "support/catch.hpp"
#include "support/file_text.hpp"
#include "support/memory_files.hpp"
#include "support/sanitized.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/format/weights/detail/state_dict.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <string>

namespace sw = stepwell;
using namespace std::string_literals;
using sw::checkpoint_format;
using sw::checkpoint_reader;
using sw::test::memory_files;

namespace {

/// Returns the message of the error that `act` throws.
template<class Error, class Act>
std::string message_of(const Act& act) {
  try {
    act();
  } catch (const Error& failure) { return failure.what(); }
  FAIL("no error of this type");
  return {};
}

std::string data_file(const std::string& name) { return STEPWELL_WEIGHTS "/" + name; }

/// Returns the bytes that make_weights.py gives an array.
std::vector<std::byte> pattern(std::string_view name, std::size_t size, bool is_boolean) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    const auto value = static_cast<std::uint8_t>((7 * i + name.size()) % 251);
    bytes[i] = static_cast<std::byte>(is_boolean ? value & 1u : value);
  }
  return bytes;
}

void check_pattern(const checkpoint_reader& reader, std::string_view name) {
  const auto* entry = reader.find(name);
  REQUIRE(entry != nullptr);
  INFO(name);
  const auto expected = pattern(name, entry->size_bytes, entry->dtype == sw::dtype::boolean);
  const auto held = reader.read(name);
  CHECK(std::ranges::equal(held.bytes(), expected));
  std::vector<std::byte> joined;
  for (const auto piece : reader.pieces(name)) { joined.insert(joined.end(), piece.begin(), piece.end()); }
  CHECK(joined == expected);
}

/// Checks that the file has an array of each type, a scalar and an empty array, each with the bytes of the script.
void check_types(const checkpoint_reader& reader, const std::vector<std::string>& types) {
  reader.verify();
  for (const auto& type : types) {
    const auto* whole = reader.find(type);
    REQUIRE(whole != nullptr);
    CHECK(to_string(whole->dtype) == type);
    CHECK(whole->shape == sw::shape_view(sw::tensor_shape{2, 3}));
    CHECK(reader.find(type + ".scalar")->shape.empty());
    CHECK(reader.find(type + ".empty")->shape == sw::shape_view(sw::tensor_shape{0, 3}));
    for (const auto* suffix : {"", ".scalar", ".empty"}) { check_pattern(reader, type + suffix); }
  }
}

const std::vector<std::string> shared_types = {"bool",   "int8",   "int16",   "int32",   "int64",   "uint8",    "uint16",
                                               "uint32", "uint64", "float16", "float32", "float64", "complex64"};

/// Returns a file of safetensors with this header.
std::string safetensors_of(std::string_view header, std::size_t data_size) {
  std::string text(8, '\0');
  const std::uint64_t size = header.size();
  std::memcpy(text.data(), &size, sizeof size);  // the tests run on little-endian machines
  return text + std::string(header) + std::string(data_size, '\1');
}

std::shared_ptr<memory_files> file_of(std::string text) {
  return std::make_shared<memory_files>(std::map<std::string, std::string>{{"run/file", std::move(text)}});
}

/// Opcodes of a pickle that push a tensor.
const std::string pushed_tensor =
    "ctorch._utils\n_rebuild_tensor_v2\n((U\7storagectorch\nFloatStorage\nU\0010U\3cpuK\1tQK\0K\1\x85K\1\x85tR"s;

/// Opens a file with this content, and reads everything. @errors Those of the reader.
void read_all(const std::string& text) {
  const checkpoint_reader reader("run/file", file_of(text));
  reader.verify();
  for (const auto& entry : reader.entries()) {
    if (entry.dtype != sw::dtype::invalid) { static_cast<void>(reader.read(entry.name)); }
  }
}

}  // namespace

TEST_CASE("a file of safetensors is a checkpoint with one data file, without checksums", "[checkpoint][weights]") {
  const checkpoint_reader reader(data_file("numpy.safetensors"));
  CHECK(reader.format() == checkpoint_format::safetensors);
  CHECK(reader.shards() == 1);
  CHECK_FALSE(reader.step().has_value());
  check_types(reader, shared_types);
  CHECK(reader.entries().size() == 3 * shared_types.size());
  CHECK(reader.is_verified());
}

TEST_CASE("bfloat16 and float8 of safetensors keep their bits", "[checkpoint][weights]") {
  auto types = shared_types;
  types.insert(types.end(), {"bfloat16", "float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz"});
  check_types(checkpoint_reader(data_file("torch.safetensors")), types);
}

TEST_CASE("types of safetensors that this library lacks are listed, and refused when they are read", "[checkpoint][weights]") {
  const auto files = file_of(safetensors_of(
      R"({"a":{"dtype":"F8_E8M0","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"F4","shape":[2,2],"data_offsets":[2,4]}})", 4));
  const checkpoint_reader reader("run/file", files);
  REQUIRE(reader.contains("b"));
  CHECK(reader.find("a")->dtype == sw::dtype::invalid);
  CHECK(reader.find("a")->size_bytes == 2);
  CHECK(message_of<sw::unimplemented_error>([&] { static_cast<void>(reader.read("b")); }).find("F4") != std::string::npos);
  CHECK_THROWS_AS(reader.verify("a"), sw::unimplemented_error);
  reader.verify();
}

TEST_CASE("keys that safetensors does not define are ignored, and metadata is no array, also if it is null", "[checkpoint][weights]") {
  const std::string metadata = GENERATE(R"({"a":"b"})", "{}", "null");
  const auto files = std::make_shared<memory_files>();
  files->content["run/a.safetensors"] =
      safetensors_of(R"( {"__metadata__":)" + metadata +
                         R"(,"x":{"more":{"shape":[1,{"dtype":null}]},"dtype":"U8","note":-1.5,"shape":[],"data_offsets":[0,1]}}   )",
                     1);
  const checkpoint_reader reader("run/a.safetensors", files);
  REQUIRE(reader.entries().size() == 1);
  CHECK(reader.read("x").as<std::uint8_t>().front() == 1);
}

TEST_CASE("a damaged header of safetensors is data loss, and the message says why", "[checkpoint][weights]") {
  const auto [header, why] = GENERATE(table<std::string, std::string>({
      {R"({"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]})", "no JSON"},
      {R"({"x":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})", "end at byte 3"},
      {R"({"x":{"dtype":"U8","shape":[3],"data_offsets":[1,4]}})", "begins at byte 1"},
      {R"({"x":{"dtype":"U8","shape":[5],"data_offsets":[0,5]}})", "after the end of the file"},
      {R"({"x":{"dtype":"U8","shape":[4],"data_offsets":[4,0]}})", "precedes"},
      {R"({"x":{"dtype":"U8","shape":[3],"data_offsets":[0,4]}})", "its size"},
      {R"({"x":{"dtype":"U8","shape":[2,2],"data_offsets":[0,4]},"y":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
       "begins at byte 2"},
      {R"({"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"x":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})", "twice"},
      {R"({"x":{"dtype":"U8","shape":[4],"shape":[4],"data_offsets":[0,4]}})", "twice"},
      {R"({"x":{"dtype":"U8","shape":[4]}})", "missing"},
      {R"({"x":{"dtype":"U9","shape":[4],"data_offsets":[0,4]}})", "U9"},
      {R"({"x":{"dtype":"U8","shape":[-4],"data_offsets":[0,4]}})", "negative"},
      {R"({"x":{"dtype":"U8","shape":[4.0],"data_offsets":[0,4]}})", "fraction"},
      {R"({"x":{"dtype":"U8","shape":[[4]],"data_offsets":[0,4]}})", "list"},
      {R"({"x":{"dtype":"F4","shape":[9],"data_offsets":[0,4]}})", "its size"},
      {R"({"x":{"dtype":"U8","shape":[4294967296,4294967296,0],"data_offsets":[0,0]}})", "its size"},
      {R"({"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4,4]}})", "more than two"},
      {R"({"x":[]})", "list"},
      {R"({"x":1})", "a number"},
      {R"({"__metadata__":{"a":{}}})", "an object"},
      {R"({"__metadata__":{"a":null}})", "null"},
      {R"({"x":null})", "null"},
      {R"({"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})" + "\0\0\0"s, "NUL"},
      {R"([])", "does not begin"},
  }));
  INFO(header);
  const auto text = safetensors_of(header, 4);
  const auto message = message_of<sw::data_loss_error>([&] {
    checkpoint_reader("run/a.safetensors", std::make_shared<memory_files>(std::map<std::string, std::string>{{"run/a.safetensors", text}}));
  });
  CHECK(message.find(why) != std::string::npos);
}

TEST_CASE("the length of a header of safetensors is compared with the file before memory is allocated", "[checkpoint][weights]") {
  auto text = safetensors_of("{}", 0);
  read_all(text);
  text[3] = '\1';  // 16 MiB
  CHECK_THROWS_AS(read_all(text), sw::data_loss_error);
  text[7] = '\1';
  CHECK(message_of<sw::data_loss_error>([&] { read_all(text); }).find("the format allows") != std::string::npos);
}

TEST_CASE("the arrays of an .npz archive are read, stored and compressed, also in Fortran order", "[checkpoint][weights]") {
  const auto* name = GENERATE("stored.npz", "packed.npz");
  const checkpoint_reader reader(data_file(name));
  CHECK(reader.format() == checkpoint_format::npz);
  auto types = shared_types;
  types.emplace_back("complex128");
  check_types(reader, types);
  check_pattern(reader, "fortran");
  CHECK(reader.find("fortran")->shape == sw::shape_view(sw::tensor_shape{2, 3, 4}));
}

TEST_CASE("an .npy file is a checkpoint with one array, which has the name of the file", "[checkpoint][weights]") {
  const checkpoint_reader reader(data_file("one.npy"));
  CHECK(reader.format() == checkpoint_format::npy);
  REQUIRE(reader.entries().size() == 1);
  check_pattern(reader, "one");
}

TEST_CASE("an index of several files of weights is read as one checkpoint with these files", "[checkpoint][weights]") {
  const auto files = std::make_shared<memory_files>(std::map<std::string, std::string>{
      {"run/1.safetensors", safetensors_of(R"({"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 2)},
      {"run/2.safetensors", safetensors_of(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})", 3)},
      {"run/3.bin", sw::test::file_text(data_file("protocol4.pt"))}});
  const auto open = [&](const std::string& map) {
    files->content["run/m.index.json"] = R"({"metadata":{"weight_map":{"x":"y"},"total":[{"weight_map":1}]},"weight_map":)" + map + "}";
    return checkpoint_reader("run/m.index.json", files);
  };
  const auto reader = open(R"({"a":"2.safetensors","b":"1.safetensors","0.weight":"3.bin"})");
  CHECK(reader.shards() == 3);
  CHECK(reader.format() == checkpoint_format::safetensors);
  CHECK(reader.entries().size() == 3);
  reader.verify();
  CHECK(reader.read("a").bytes().size() == 3);
  CHECK(reader.read("b").bytes().size() == 2);
  CHECK(reader.read("0.weight").as<float>().size() == 6);
  files->content["run/n.index.json"] = "{}";
  const auto [map, why] = GENERATE(table<std::string, std::string>({{R"({"a":"1.safetensors"})", "does not contain"},
                                                                    {R"({"a":"../1.safetensors"})", "not in the directory"},
                                                                    {R"({"a":"run/1.safetensors"})", "not in the directory"},
                                                                    {R"({"a":"n.index.json"})", "no file of weights"},
                                                                    {R"({"a":1})", "weight_map"},
                                                                    {R"({"a":{"b":"c"}})", "weight_map"},
                                                                    {R"(["a"])", "weight_map"},
                                                                    {R"({"a":"2.safetensors","a":"2.safetensors"})", "twice"},
                                                                    {R"({"a")", "weight_map"}}));
  INFO(map);
  CHECK(message_of<sw::data_loss_error>([&, &text = map] { static_cast<void>(open(text)); }).find(why) != std::string::npos);
  CHECK(message_of<sw::not_found_error>([&] { static_cast<void>(open(R"({"a":"4.safetensors"})")); }).find("\"4.safetensors\"") !=
        std::string::npos);
}

TEST_CASE("the header of an .npy file is read in each form that NumPy reads, in both byte orders", "[checkpoint][weights]") {
  const auto npy_of = [](char version, const std::string& header, const std::string& data) {
    auto text = "\x93NUMPY"s + version + '\0' + static_cast<char>(header.size()) + '\0';
    if (version > 1) { text += "\0\0"s; }
    return text + header + data;
  };
  const auto first_of = [](const std::string& text) {
    const checkpoint_reader reader("run/file", file_of(text));
    reader.verify();
    return reader.read("file").as<float>().front();
  };
  const auto little = "\0\0\x80?\0\0\0@"s;  // 1 and 2
  const auto big = "?\x80\0\0@\0\0\0"s;
  const char version = GENERATE('\1', '\2', '\3');
  for (const auto* type : {"<f4", "=f4", "|f4", "f4", "f", "<f", "float32"}) {
    const auto header = "{'descr': '"s + type + "', 'fortran_order': False, 'shape': (2,), }\n";
    CHECK(first_of(npy_of(version, header, little)) == 1);
    CHECK(first_of(npy_of(version, header, little + "more")) == 1);  // which NumPy ignores
  }
  CHECK(first_of(npy_of(version, "{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", big)) == 1);
  CHECK(first_of(npy_of(version, "{'descr':\">f4\",'shape':(2,1,1),'fortran_order':True}", big)) == 1);
  CHECK(first_of(npy_of(version, " { 'shape' : ( ) , 'fortran_order' : False , 'descr' : '>f4' } ", big)) == 1);
  CHECK_THROWS_AS(first_of(npy_of(version, "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", little)), sw::data_loss_error);
  auto other = npy_of(version, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", little);
  other[7] = '\1';
  CHECK_THROWS_AS(first_of(other), sw::unimplemented_error);
  const auto [type, why] = GENERATE(table<std::string, std::string>({{"<V2", "bfloat16 probably"},
                                                                     {"|V2", "bfloat16 probably"},
                                                                     {"|V1", "float8 of ml_dtypes probably"},
                                                                     {"<f1", "float8 of ml_dtypes probably"},
                                                                     {"<f16", "'<f16'"},
                                                                     {"<M8[ns]", "'<M8[ns]'"},
                                                                     {"|O", "pickled"}}));
  const checkpoint_reader reader("run/file",
                                 file_of(npy_of(version, "{'descr': '" + type + "', 'fortran_order': False, 'shape': (2,), }", big)));
  CHECK(reader.find("file")->unsupported.find(why) != std::string_view::npos);
  CHECK(message_of<sw::unimplemented_error>([&] { static_cast<void>(reader.read("file")); }).find(why) != std::string::npos);
}

TEST_CASE("pickled objects, texts and structures of NumPy are refused with the reason", "[checkpoint][weights]") {
  const checkpoint_reader reader(data_file("refused.npz"));
  check_pattern(reader, "good");
  check_pattern(reader, "big");  // big-endian
  const auto [name, why] =
      GENERATE(table<std::string, std::string>({{"objects", "pickled"}, {"texts", "'<U2'"}, {"structures", "structures"}}));
  CHECK(message_of<sw::unimplemented_error>([&] { static_cast<void>(reader.read(name)); }).find(why) != std::string::npos);
  reader.verify();
}

TEST_CASE("a state dictionary of PyTorch is read, with strides, shared storages and all types", "[checkpoint][weights]") {
  const checkpoint_reader reader(data_file("tensors.pt"));
  CHECK(reader.format() == checkpoint_format::state_dict);
  auto types = shared_types;
  types.insert(types.end(), {"bfloat16", "float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz"});
  check_types(reader, types);
  check_pattern(reader, "complex128");
  check_pattern(reader, "transposed");
  check_pattern(reader, "parameter");
  check_pattern(reader, "whole");
  const auto whole = reader.read("whole");
  CHECK(std::ranges::equal(reader.read("tied").bytes(), whole.bytes()));
  CHECK(std::ranges::equal(reader.read("second_half").bytes(), whole.bytes().subspan(12)));
  const auto every_other = reader.read("every_other");
  for (std::size_t i = 0; i < 3; ++i) { CHECK(std::ranges::equal(every_other.bytes().subspan(4 * i, 4), whole.bytes().subspan(8 * i, 4))); }
}

TEST_CASE("nested dictionaries of PyTorch give names with dots, and plain values are skipped", "[checkpoint][weights]") {
  const checkpoint_reader reader(data_file("training.pt"));
  reader.verify();
  const auto weight = reader.read("model.0.weight");
  CHECK(std::ranges::equal(weight.as<float>(), std::vector<float>{0, 1, 2, 3, 4, 5},
                           [](float a, float b) { return std::abs(a - b) < 0.01f; }));
  CHECK(reader.find("model.1.num_batches_tracked")->dtype == sw::dtype::int64);
  CHECK(reader.contains("optimizer.state.0.exp_avg"));
  CHECK_FALSE(reader.contains("epoch"));
  const checkpoint_reader other(data_file(GENERATE("protocol4.pt", "without_checksums.pt")));
  other.verify();
  CHECK(std::ranges::equal(other.read("0.weight").bytes(), weight.bytes()));
}

TEST_CASE("what a pickle could execute is named and not executed", "[checkpoint][weights]") {
  const auto [name, why] = GENERATE(table<std::string, std::string>(
      {{"module.pt", "\"torch.nn.modules.container.Sequential\""}, {"sparse.pt", "\"torch._utils._rebuild_sparse_tensor\""}}));
  CHECK(message_of<sw::unimplemented_error>([&, &file = name] {
          const checkpoint_reader reader(data_file(file));
          static_cast<void>(reader.read("sparse"));
        }).find(why) != std::string::npos);
  CHECK(checkpoint_reader(data_file("sparse.pt")).read("good").as<float>().front() == 1);
}

TEST_CASE("tensors beside any objects of Python are read, in each protocol of pickle", "[checkpoint][weights]") {
  const auto protocol = GENERATE(0, 1, 2, 3, 4, 5);
  const checkpoint_reader reader(data_file("values" + std::to_string(protocol) + ".pt"));
  INFO("protocol " << protocol);
  reader.verify();
  CHECK(std::ranges::equal(reader.read("w").as<float>(), std::vector<float>{1, 2}));
  const std::vector<std::pair<std::string, float>> others = {{"defaults.v", 3}, {"deque.1", 4}, {"1", 5},     {"1 (2)", 6},
                                                             {"?", 7},          {"? (2)", 8},   {"False", 9}, {"parameter", 10}};
  CHECK(reader.entries().size() == 1 + others.size());
  for (const auto& [name, value] : others) {
    INFO(name);
    REQUIRE(reader.contains(name));
    CHECK(reader.read(name).as<float>().front() == value);
  }
}

TEST_CASE("a file of PyTorch before version 1.6 is read like one of today", "[checkpoint][weights]") {
  const auto text = sw::test::file_text(data_file("old.pt"));
  const checkpoint_reader today(data_file("protocol4.pt"));
  const checkpoint_reader reader(data_file("old.pt"));
  CHECK(reader.format() == checkpoint_format::state_dict);
  reader.verify();
  REQUIRE(reader.entries().size() == today.entries().size());
  for (const auto& entry : today.entries()) { CHECK(std::ranges::equal(reader.read(entry.name).bytes(), today.read(entry.name).bytes())); }
  for (std::size_t size = 0; size < text.size(); ++size) {
    try {
      read_all(text.substr(0, size));
      FAIL("a shorter file was read");
    } catch (const sw::error& failure) {
      const std::set known{sw::errc::data_loss, sw::errc::not_found};
      CHECK(known.contains(failure.kind()));
    }
  }
}

TEST_CASE("the numbers in an archive of PyTorch have the byte order that the archive names", "[checkpoint][weights]") {
  auto text = sw::test::file_text(data_file("protocol4.pt"));
  const auto order = text.find("little");
  REQUIRE(order != std::string::npos);
  text.replace(order, 6, "big   ");
  const auto swapped = checkpoint_reader("run/file", file_of(text)).read("0.weight");
  const auto whole = checkpoint_reader(data_file("protocol4.pt")).read("0.weight");
  for (std::size_t i = 0; i < whole.bytes().size(); i += 4) {
    std::vector<std::byte> element(whole.bytes().begin() + static_cast<std::ptrdiff_t>(i),
                                   whole.bytes().begin() + static_cast<std::ptrdiff_t>(i + 4));
    std::ranges::reverse(element);
    CHECK(std::ranges::equal(swapped.bytes().subspan(i, 4), element));
  }
}

TEST_CASE("files that LibTorch writes are read: those of torch::save and of torch::pickle_save", "[checkpoint][weights]") {
  const checkpoint_reader module(data_file("libtorch_module.pt"));
  module.verify();
  CHECK(std::ranges::equal(module.read("fc.weight").as<float>(), std::vector<float>{1, 2}));
  CHECK(module.read("bn.num_batches_tracked").as<std::int64_t>().front() == 0);
  CHECK(module.entries().size() == 7);
  CHECK(std::ranges::equal(checkpoint_reader(data_file("libtorch_pickle.pt")).read("w").as<float>(), std::vector<float>{1, 2}));
}

TEST_CASE("a tensor whose elements share memory is read, or refused with advice if it is much larger than the file",
          "[checkpoint][weights]") {
  const checkpoint_reader reader(data_file("expanded.pt"));
  CHECK(reader.read("good").as<float>().front() == 1);
  CHECK(std::ranges::equal(reader.read("wide").as<float>(), std::vector<float>{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2}));
  CHECK(message_of<sw::unimplemented_error>([&] { static_cast<void>(reader.read("huge")); }).find("contiguous()") != std::string::npos);
}

TEST_CASE("a pickle of any length and depth is read, whatever it consists of", "[checkpoint][weights]") {
  constexpr int count = sw::test::is_sanitized ? 3'000 : 300'000;  // a sanitizer needs minutes for 300,000
  const auto is_read = [](const std::string& pickle) {
    const auto outcome = sw::format::decode_state_dict(pickle);
    return outcome.ok() ? "" : outcome.error().message;
  };
  for (const auto& item : {"N"s,
                           ")"s,
                           "]"s,
                           "}"s,
                           "]\x94"s,
                           "}\x94"s,
                           "\x89"s,
                           "I01\n"s,
                           "K\x05"s,
                           "K\xff"s,
                           "M\xff\xff"s,
                           "J\xff\xff\xff\xff"s,
                           "\x8a\0"s,
                           "I7\n"s,
                           "L7L\n"s,
                           "F1\n"s,
                           "G\0\0\0\0\0\0\0\0"s,
                           "\x8c\0"s,
                           "\x8c\0\x94"s,
                           "C\0"s,
                           "V\n"s,
                           "S''\n"s,
                           "N\x85"s,
                           "NN\x86\x94"s,
                           "(t"s,
                           "(l"s,
                           "(d"s,
                           "(Nl"s,
                           "\x8f"s,
                           "(\x91"s,
                           "N2"s,
                           "N0N"s,
                           "(1N"s,
                           "cx\ny\n"s,
                           "cx\ny\n)R"s,
                           "cx\ny\n)\x81}b"s,
                           "(ix\ny\n"s,
                           "(cx\ny\no"s}) {
    std::string pickle = "\x80\x04}(\x8c\1w" + pushed_tensor;
    pickle += "\x8c\1a"s + "](";
    for (int i = 0; i < count; ++i) { pickle += item; }
    INFO(item);
    CHECK(is_read(pickle + "eu.") == "");
  }
  std::string deep = "]";
  for (int i = 0; i < count; ++i) { deep += ']'; }
  for (int i = 0; i < count; ++i) { deep += 'a'; }
  CHECK(is_read(deep + ".") == "");
  CHECK(is_read("]q\0h\0a."s) == "");  // a list that contains itself
}

TEST_CASE("hostile pickles give typed errors, in little time and memory", "[checkpoint][weights]") {
  using sw::format::decode_state_dict;
  const auto failure_of = [](const std::string& pickle) { return decode_state_dict(pickle).error(); };
  CHECK(failure_of("\x80\x02"
                   "cos\nsystem\nX\x02\0\0\0ls\x85R."s)
            .message.find("\"os.system\"") != std::string::npos);
  CHECK(failure_of("\x80\x02}\x81."s).code == sw::errc::data_loss);
  CHECK(failure_of("\x80\x02}\xff."s).message.find("0xff") != std::string::npos);
  const auto repeated = [](const std::string& text, int count) {
    std::string made;
    for (int i = 0; i < count; ++i) { made += text; }
    return made;
  };
  // Each dictionary contains the one before it twice: 2^40 paths. With a tensor at their end they cannot be read; without one they need no time.
  const auto dictionaries = repeated("q\x00}X\x01\0\0\0ah\0sX\x01\0\0\0bh\0s"s, 40) + ".";
  CHECK(decode_state_dict("\x80\x02}" + dictionaries).ok());
  CHECK(failure_of("\x80\x02" + pushed_tensor + dictionaries).code == sw::errc::unimplemented);
  // A long list of pairs, for many calls; a long shape, for many tensors; calls in calls, executed again and again.
  CHECK(failure_of("](" + repeated("(NNt"s, 100'000) + "eq\0"s + repeated("ccollections\nOrderedDict\nh\0\x85R0"s, 100'000) + ".").code ==
        sw::errc::unimplemented);
  CHECK(failure_of("(" + repeated("K\1"s, 50'000) + "tq\1" + pushed_tensor.substr(0, pushed_tensor.find("K\0K\1"s)) + "q\2" +
                   repeated("ctorch._utils\n_rebuild_tensor\n(h\2K\0h\1h\1tR0"s, 50'000) + ".")
            .code == sw::errc::unimplemented);
  const auto from_type = "ctorch._tensor\n_rebuild_from_type_v2\n"s;
  CHECK(failure_of(from_type + "q\0(ccollections\nOrderedDict\nN)t"s + repeated("q\1(h\0Nh\1t"s, 50'000) + "q\1" +
                   repeated("h\0h\1R0"s, 100'000) + ".")
            .code == sw::errc::unimplemented);
  CHECK(failure_of("\x80\x02X\xff\xff\xff\x7f."s).code == sw::errc::data_loss);
  for (const auto* text : {"", "\x80\x02", ".", "R.", "b.", "0.", "Q.", "(t", "h\1.", "c\n\n.", "s.", "u.", "\x93."}) {
    INFO(text);
    CHECK_FALSE(decode_state_dict(text).ok());
  }
}

TEST_CASE("a flipped bit in the data of an archive is found by its checksum", "[checkpoint][weights]") {
  auto text = sw::test::file_text(data_file("stored.npz"));
  const auto at = text.find("float64.npy");
  REQUIRE(at != std::string::npos);
  text[at + 11 + 20 + 128] ^= 4;  // beyond the extra field and the header of the array
  const checkpoint_reader reader("run/file", file_of(text));
  CHECK_THROWS_AS(reader.verify(), sw::data_loss_error);
  CHECK_THROWS_AS(reader.read("float64"), sw::data_loss_error);
  check_pattern(reader, "float32");
}

TEST_CASE("files of weights that are cut off or changed at any byte give typed errors", "[checkpoint][weights]") {
  const auto* name = GENERATE("numpy.safetensors", "packed.npz", "refused.npz", "one.npy", "training.pt", "values4.pt", "old.pt");
  const auto whole = sw::test::file_text(data_file(name));
  read_all(whole);
  const auto attempt = [](const std::string& text) {
    try {
      read_all(text);
    } catch (const sw::error& failure) {
      const std::set known{sw::errc::data_loss, sw::errc::unimplemented, sw::errc::not_found};
      CHECK(known.contains(failure.kind()));
    }
  };
  for (std::size_t size = 0; size < whole.size(); size += 1 + whole.size() / 400) { attempt(whole.substr(0, size)); }
  for (std::size_t i = 0; i < whole.size(); i += 1 + whole.size() / 1500) {
    for (const char flipped : {'\x01', '\x80', '\xff'}) {
      auto text = whole;
      text[i] = static_cast<char>(text[i] ^ flipped);
      attempt(text);
    }
  }
}
