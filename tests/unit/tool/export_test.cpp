// SPDX-License-Identifier: Apache-2.0
#include "support/fault_file_system.hpp"
#include "support/file_text.hpp"
#include "support/paths.hpp"
#include "support/temporary_directory.hpp"
#include "tool_run.hpp"

#include <stepwell/base/variable.hpp>
#include <stepwell/checkpoint/checkpoint_reader.hpp>
#include <stepwell/checkpoint/detail/checkpoint_writer.hpp>

#include <sys/stat.h>
#include <zlib.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <complex>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>

namespace sw = stepwell;
using sw::test::run_tool;
using sw::test::temporary_directory;
using sw::tool::exit_code;

namespace {

template<class Number>
Number number_at(const std::string& bytes, std::size_t at) {
  Number value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

/// Returns the members of an archive of uncompressed files, found through its central directory, and verifies their
/// checksums.
std::map<std::string, std::string> members_of(const std::string& archive) {
  std::map<std::string, std::string> members;
  const auto end = archive.rfind("PK\x05\x06");
  REQUIRE(end != std::string::npos);
  std::size_t at = number_at<std::uint32_t>(archive, end + 16);
  for (int left = number_at<std::uint16_t>(archive, end + 10); left > 0; --left) {
    REQUIRE(archive.substr(at, 4) == "PK\x01\x02");
    const auto size = number_at<std::uint32_t>(archive, at + 24);
    const auto name_size = number_at<std::uint16_t>(archive, at + 28);
    const auto extra_size = number_at<std::uint16_t>(archive, at + 30);
    const auto offset = number_at<std::uint32_t>(archive, at + 42);
    const auto name = archive.substr(at + 46, name_size);
    REQUIRE(archive.substr(offset, 4) == "PK\x03\x04");
    CHECK(archive.substr(offset + 30, name_size) == name);
    CHECK((number_at<std::uint16_t>(archive, at + 10)) == 0);  // stored without compression
    members[name] = archive.substr(offset + 30u + name_size + number_at<std::uint16_t>(archive, offset + 28), size);
    CHECK(number_at<std::uint32_t>(archive, at + 16) ==
          ::crc32(0, reinterpret_cast<const unsigned char*>(members[name].data()), static_cast<unsigned>(size)));
    at += 46u + name_size + extra_size;
  }
  CHECK(at == end);
  return members;
}

/// Returns the bytes after the header of an .npy file.
std::string elements_of(const std::string& npy) { return npy.substr(10 + number_at<std::uint16_t>(npy, 8)); }
std::string header_of(const std::string& npy) {
  CHECK(npy.substr(0, 8) == std::string("\x93NUMPY\x01\x00", 8));
  CHECK((10 + number_at<std::uint16_t>(npy, 8)) % 64 == 0);
  return npy.substr(10, npy.find('}') - 9);
}

std::map<std::string, std::string> exported(const temporary_directory& directory, std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"export", directory / "m", "--npz", directory / "m.npz"});
  REQUIRE(run_tool(std::move(more)).how == exit_code::good);
  return members_of(sw::test::file_text(directory / "m.npz"));
}

/// Writes a checkpoint with one number.
void write_one_number(const std::string& prefix) {
  float w = 1;
  sw::detail::checkpoint_writer writer(prefix);
  writer.add("w", sw::view_of(w));
  writer.commit();
}

}  // namespace

TEST_CASE("export writes an array a tensor, of its name, shape and values", "[tool][export]") {
  const temporary_directory directory;
  const std::vector<double> values{1, -2, 0.5, 4, 5, 6};
  std::int64_t step = 7;
  sw::detail::checkpoint_writer writer(directory / "m");
  writer.add("layer/w", {sw::dtype::float64, {2, 3}, std::as_bytes(std::span(values))});
  writer.add("step", sw::view_of(step));
  writer.commit();
  const auto arrays = exported(directory);
  REQUIRE(arrays.size() == 2);
  CHECK(header_of(arrays.at("layer/w.npy")) == "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }");
  CHECK(std::memcmp(elements_of(arrays.at("layer/w.npy")).data(), values.data(), 48) == 0);
  CHECK(header_of(arrays.at("step.npy")) == "{'descr': '<i8', 'fortran_order': False, 'shape': (), }");
  CHECK(number_at<std::int64_t>(elements_of(arrays.at("step.npy")), 0) == 7);
  CHECK(exported(directory, {"--tensor", "step"}).size() == 1);
  CHECK(run_tool({"export", directory / "m", "--npz", directory / "n.npz", "--tensor", "stop"}).how == exit_code::unreadable);
  CHECK_FALSE(std::filesystem::exists(directory / "n.npz"));
}

TEST_CASE("bfloat16 is exported as float32, each value exactly", "[tool][export]") {
  const temporary_directory directory;
  const std::array<std::uint16_t, 3> bits{0x3f80, 0xc040, 0x7f80};  // 1, -3, infinity
  sw::detail::checkpoint_writer writer(directory / "m");
  writer.add("w", {sw::dtype::bfloat16, {3}, std::as_bytes(std::span(bits))});
  writer.commit();
  const auto arrays = exported(directory);
  CHECK(header_of(arrays.at("w.npy")) == "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }");
  const auto elements = elements_of(arrays.at("w.npy"));
  CHECK(number_at<float>(elements, 0) == 1);
  CHECK(number_at<float>(elements, 4) == -3);
  CHECK(std::isinf(number_at<float>(elements, 8)));
}

TEST_CASE("float8, float4, int4 and int2 are exported as the byte that TensorFlow stores", "[tool][export][golden]") {
  const temporary_directory directory;
  const auto file = directory / "narrow.npz";
  REQUIRE(run_tool({"export", sw::test::golden("/checkpoint/narrow"), "--npz", file}).how == exit_code::good);
  const auto arrays = members_of(sw::test::file_text(file));
  REQUIRE(arrays.size() == 10);
  for (const auto& [name, npy] : arrays) {
    const auto elements = elements_of(npy);
    INFO(name);
    CHECK(header_of(npy) == "{'descr': '|u1', 'fortran_order': False, 'shape': (" + std::to_string(elements.size()) + ",), }");
    for (std::size_t i = 0; i < elements.size(); ++i) { CHECK(elements[i] == static_cast<char>(i)); }
  }
}

TEST_CASE("strings become bytes of one width; those that NumPy would shorten are left out, and said", "[tool][export]") {
  const temporary_directory directory;
  const std::vector<std::string> good{"a", "bcd"};
  const std::vector<std::string> bad{std::string("x\0", 2)};
  sw::detail::checkpoint_writer writer(directory / "m");
  writer.add_strings("good", {2}, good);
  writer.add_strings("bad", {1}, bad);
  writer.commit();
  const auto arrays = exported(directory);
  CHECK(arrays.size() == 1);
  CHECK(header_of(arrays.at("good.npy")) == "{'descr': '|S3', 'fortran_order': False, 'shape': (2,), }");
  CHECK(elements_of(arrays.at("good.npy")) == std::string("a\0\0bcd", 6));
  CHECK(run_tool({"export", directory / "m", "--npz", directory / "m.npz"}).err.find("left out bad: a string ends in a zero byte") !=
        std::string::npos);
}

TEST_CASE("tensors of many pieces, in slices, and without elements are exported whole", "[tool][export]") {
  const temporary_directory directory;
  std::vector<float> many(700'000);
  for (std::size_t i = 0; i < many.size(); ++i) { many[i] = static_cast<float>(i); }
  const std::vector<float> left{1, 2};
  const std::vector<float> right{3, 4};
  sw::detail::checkpoint_writer writer(directory / "m");
  writer.add("many", {sw::dtype::float32, {700'000}, std::as_bytes(std::span(many))});
  writer.add("none", {sw::dtype::float32, {0, 3}, {}});
  writer.add_slice("sliced", {2, 2}, {{}, {0, 1}}, {sw::dtype::float32, {2, 1}, std::as_bytes(std::span(left))});
  writer.add_slice("sliced", {2, 2}, {{}, {1, 1}}, {sw::dtype::float32, {2, 1}, std::as_bytes(std::span(right))});
  writer.commit();
  const auto arrays = exported(directory);
  CHECK(elements_of(arrays.at("many.npy")).size() == 2'800'000);
  CHECK(std::memcmp(elements_of(arrays.at("many.npy")).data(), many.data(), 2'800'000) == 0);
  CHECK(elements_of(arrays.at("none.npy")).empty());
  const auto sliced = elements_of(arrays.at("sliced.npy"));
  CHECK(number_at<float>(sliced, 4) == 3);
  CHECK(number_at<float>(sliced, 8) == 2);
}

TEST_CASE("nothing of a damaged checkpoint is exported, and an older export stays", "[tool][export]") {
  const temporary_directory directory;
  write_one_number(directory / "m");
  sw::test::write_file_text(directory / "m.npz", "older");
  sw::test::write_file_text(directory / "m.data-00000-of-00001", "1234");
  CHECK(run_tool({"export", directory / "m", "--npz", directory / "m.npz"}).how == exit_code::damaged);
  CHECK(sw::test::file_text(directory / "m.npz") == "older");
}

TEST_CASE("an export to a full disk fails with the disk's error, and an older export stays", "[tool][export]") {
  const temporary_directory directory;
  const std::vector<float> many(700'000);
  sw::detail::checkpoint_writer writer(directory / "m");
  writer.add("many", {sw::dtype::float32, {700'000}, std::as_bytes(std::span(many))});
  writer.commit();
  sw::test::write_file_text(directory / "m.npz", "older");
  for (const std::uint64_t write : {1U, 3U}) {
    const auto files = std::make_shared<sw::test::fault_file_system>();
    files->inject({.kind = sw::test::operation::write, .path_contains = "m.npz", .nth = write, .errno_value = ENOSPC});
    const auto said = sw::test::tool_rig{.files = files}.run({"export", directory / "m", "--npz", directory / "m.npz"});
    CHECK(said.how == exit_code::unreadable);
    CHECK(said.err.find("No space left on device") != std::string::npos);
    CHECK(sw::test::file_text(directory / "m.npz") == "older");
  }
  CHECK(std::distance(std::filesystem::directory_iterator(directory.path()), {}) == 3);  // no temporary file
}

TEST_CASE("a checkpoint is not exported into one of its own files", "[tool][export]") {
  const temporary_directory directory;
  write_one_number(directory / "m");
  for (const std::string option : {"--npz", "--safetensors"}) {
    for (const std::string file : {"m.index", "m.data-00000-of-00001", "./m.index"}) {
      const auto before = sw::test::file_text(directory / file);
      const auto said = sw::test::tool_rig{}.run({"export", directory / "m", option, directory / file});
      CHECK(said.how == exit_code::usage);
      CHECK(said.err.find("a file of the checkpoint that is exported") != std::string::npos);
      CHECK(sw::test::file_text(directory / file) == before);
    }
  }
}

TEST_CASE("an index of several files is not exported into one of them", "[tool][export]") {
  const temporary_directory directory;
  write_one_number(directory / "m");
  REQUIRE(sw::test::tool_rig{}.run({"export", directory / "m", "--safetensors", directory / "part.safetensors"}).how == exit_code::good);
  const auto index = directory / "w.safetensors.index.json";
  const auto name = sw::checkpoint_reader(directory / "part.safetensors").entries()[0].name;
  sw::test::write_file_text(index, R"({"weight_map":{")" + std::string(name) + R"(":"part.safetensors"}})");
  const auto before = sw::test::file_text(directory / "part.safetensors");
  for (const std::string option : {"--npz", "--safetensors"}) {
    for (const std::string file : {"part.safetensors", "w.safetensors.index.json"}) {
      const auto said = sw::test::tool_rig{}.run({"export", index, option, directory / file});
      CHECK(said.how == exit_code::usage);
      CHECK(said.err.find("a file of the checkpoint that is exported") != std::string::npos);
    }
  }
  CHECK(sw::test::file_text(directory / "part.safetensors") == before);
}

TEST_CASE("a checkpoint is exported into regular files only", "[tool][export]") {
  const temporary_directory directory;
  write_one_number(directory / "m");
  sw::test::write_file_text(directory / "old.npz", "older");
  std::filesystem::create_symlink(directory / "old.npz", directory / "link.npz");
  REQUIRE(::mkfifo((directory / "pipe.npz").c_str(), 0600) == 0);
  for (const std::string file : {"link.npz", "pipe.npz"}) {
    const auto said = sw::test::tool_rig{}.run({"export", directory / "m", "--npz", directory / file});
    CHECK(said.how == exit_code::usage);
    CHECK(said.err.find("not a regular file") != std::string::npos);
    CHECK_FALSE(std::filesystem::is_regular_file(std::filesystem::symlink_status(std::string(directory / file))));
  }
  CHECK(sw::test::file_text(directory / "old.npz") == "older");
}

TEST_CASE("names that are UTF-8 are marked as UTF-8, other names are kept", "[tool][export]") {
  const temporary_directory directory;
  float w = 1;
  sw::detail::checkpoint_writer writer(directory / "m");
  writer.add("π", sw::view_of(w));
  writer.add("\xff", sw::view_of(w));
  writer.commit();
  const auto arrays = exported(directory);
  CHECK(arrays.contains("π.npy"));
  CHECK(arrays.contains("\xff.npy"));
  const auto archive = sw::test::file_text(directory / "m.npz");
  CHECK((number_at<std::uint16_t>(archive, archive.find("π.npy") - 24) & 0x800) != 0);
  CHECK((number_at<std::uint16_t>(archive, archive.find("\xff.npy") - 24) & 0x800) == 0);
}

TEST_CASE("export --npy writes a file for each tensor, below a directory", "[tool][export]") {
  const temporary_directory directory;
  const std::vector<double> values{1, -2, 0.5, 4, 5, 6};
  sw::detail::checkpoint_writer writer(directory / "m");
  for (const std::string name : {"../outside", "/absolute", "a//b", "layer/w"}) {
    writer.add(name, {sw::dtype::float64, {2, 3}, std::as_bytes(std::span(values))});
  }
  writer.commit();
  const auto said = run_tool({"export", directory / "m", "--npy", directory / "arrays"});
  CHECK(said.how == exit_code::good);
  CHECK(said.out.find("1 array, 48 B") != std::string::npos);
  for (const std::string name : {"../outside", "/absolute", "a//b"}) {
    CHECK(said.err.find("left out " + name + ": its name is not the path of a file below the directory") != std::string::npos);
  }
  CHECK_FALSE(std::filesystem::exists(directory / "outside.npy"));
  const auto written = sw::test::file_text(directory / "arrays/layer/w.npy");
  CHECK(header_of(written) == "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }");
  CHECK(number_at<double>(elements_of(written), 8) == -2);
  CHECK(run_tool({"export", directory / "m", "--npy", directory / "one", "--tensor", "layer/w"}).err.empty());
  CHECK(run_tool({"export", directory / "m"}).how == exit_code::usage);
  CHECK(run_tool({"export", directory / "m", "--npy", "a", "--npz", "b"}).how == exit_code::usage);
}

TEST_CASE("a file of safetensors has the names, types, shapes and bits of the checkpoint, and its step", "[tool][export][weights]") {
  const temporary_directory directory;
  const std::array<std::uint16_t, 3> bits{0x3f80, 0xc040, 0x7f80};
  const std::vector<double> values{1, -2, 0.5, 4, 5, 6};
  const std::uint8_t byte = 200;
  const std::vector<std::string> texts{"a"};
  const std::vector<std::complex<double>> wide(2);
  sw::detail::checkpoint_writer writer(directory / "model.ckpt-7");
  writer.add("byte", sw::view_of(byte));
  writer.add("empty", {sw::dtype::float32, {0, 3}, {}});
  writer.add("layer/w \"1\"", {sw::dtype::float64, {2, 3}, std::as_bytes(std::span(values))});
  writer.add("narrow", {sw::dtype::bfloat16, {3}, std::as_bytes(std::span(bits))});
  writer.add_strings("texts", {1}, texts);
  writer.add("wide", {sw::dtype::complex128, {2}, std::as_bytes(std::span(wide))});
  writer.commit();
  const auto file = directory / "m.safetensors";
  const auto done = run_tool({"export", directory / "model.ckpt-7", "--safetensors", file});
  REQUIRE(done.how == exit_code::good);
  CHECK(done.err.find("left out texts: safetensors has no type for string") != std::string::npos);
  CHECK(done.err.find("left out wide") != std::string::npos);
  const auto text = sw::test::file_text(file);
  CHECK(number_at<std::uint64_t>(text, 0) % 8 == 0);
  CHECK(text.find(R"({"__metadata__":{"format":"pt","step":"7"},"layer/w \"1\"":{"dtype":"F64","shape":[2,3],"data_offsets":[0,48]})") ==
        8);
  const sw::checkpoint_reader made(file);
  REQUIRE(made.entries().size() == 4);
  CHECK(std::ranges::equal(made.read("narrow").bytes(), std::as_bytes(std::span(bits))));
  CHECK(made.read("byte").as<std::uint8_t>().front() == 200);
  const auto compared = run_tool({"inspect", directory / "model.ckpt-7", "--diff", file});
  CHECK(compared.how == exit_code::differs);
  CHECK(compared.out.find("narrow") == std::string::npos);
  CHECK(compared.out.find("only in a") != std::string::npos);
  CHECK(run_tool({"inspect", file, "--diff", file}).how == exit_code::good);
  CHECK(run_tool({"verify", file}).out.find("not covered by a checksum") != std::string::npos);
  CHECK(run_tool({"inspect", file, "--json"}).out.find("crc32c") == std::string::npos);
  CHECK(run_tool({"export", file, "--npz", directory / "m.npz"}).how == exit_code::good);
  CHECK(run_tool({"inspect", directory / "m.npz", "--print", "narrow"}).out.find("float32") != std::string::npos);
  CHECK(run_tool({"export", file, "--npz", directory / "n.npz", "--safetensors", directory / "n"}).how == exit_code::usage);
}
