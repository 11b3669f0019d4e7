// SPDX-License-Identifier: Apache-2.0
//
// Tests with a checkpoint written by TensorFlow 2.21. It contains every bit pattern of TensorFlow's types of 8 bits and
// fewer.
#include "support/bundle_oracle.hpp"
#include "support/narrow_table.hpp"
#include "support/paths.hpp"
#include "support/temporary_directory.hpp"
#include "tool_run.hpp"

#include <stepwell/checkpoint/checkpoint_reader.hpp>
#include <stepwell/checkpoint/detail/checkpoint_writer.hpp>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

namespace sw = stepwell;
using nlohmann::json;
using sw::test::run_tool;
using sw::tool::exit_code;

namespace {

const std::string narrow = sw::test::golden("/checkpoint/narrow");

double number_in(const json& value) { return value.is_string() ? std::stod(value.get<std::string>()) : value.get<double>(); }

}  // namespace

TEST_CASE("inspect names float8, float4, int4 and int2 as NumPy does", "[tool][inspect][golden]") {
  const auto seen = json::parse(run_tool({"inspect", narrow, "--json"}).out)["tensors"];
  REQUIRE(seen.size() == 10);
  for (const auto& tensor : seen) { CHECK("all/" + tensor["dtype"].get<std::string>() == tensor["name"].get<std::string>()); }
}

TEST_CASE("inspect prints the values of float8, float4, int4 and int2", "[tool][inspect][golden]") {
  for (const auto& row : sw::test::narrow_table()) {
    INFO(row.name);
    const auto said = run_tool({"inspect", narrow, "--print", "all/" + row.name, "--json"});
    REQUIRE(said.how == exit_code::good);
    const auto values = json::parse(said.out)["values"];
    REQUIRE(values.size() == row.values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto have = static_cast<float>(number_in(values[i]));
      CHECK((have == row.values[i] || (std::isnan(have) && std::isnan(row.values[i]))));
    }
  }
  CHECK(run_tool({"inspect", narrow, "--print", "all/int2"}).out == "all/int2  int2 [4]\n[0, 1, -2, -1]\n");
}

TEST_CASE("--stats knows NaN and infinities of float8", "[tool][inspect][golden]") {
  const auto seen = json::parse(run_tool({"inspect", narrow, "--stats", "--json"}).out)["tensors"];
  for (const auto& tensor : seen) {
    if (tensor["name"] == "all/float8_e5m2") {
      CHECK(tensor["nan"] == 6);
      CHECK(tensor["inf"] == 2);
      CHECK(tensor["max"] == 57344.0);
    }
    if (tensor["name"] == "all/float8_e4m3fn") {
      CHECK(tensor["nan"] == 2);
      CHECK(tensor["inf"] == 0);
      CHECK(tensor["max"] == 448.0);
    }
  }
}

TEST_CASE("narrow types are copied bit for bit by reader and writer, and --diff and verify see no difference", "[tool][inspect][golden]") {
  const sw::test::temporary_directory directory;
  const sw::checkpoint_reader reader(narrow);
  {
    sw::detail::checkpoint_writer writer(directory / "copy");
    for (const auto& entry : reader.entries()) { writer.add(entry.name, reader.read(entry.name).view()); }
    writer.commit();
  }
  const auto copied = sw::test::read_with_oracle(directory / "copy");
  const auto original = sw::test::read_with_oracle(narrow);
  REQUIRE(copied.size() == 10);
  for (const auto& [name, tensor] : original) {
    CHECK(copied.at(name).bytes == tensor.bytes);
    CHECK(copied.at(name).dtype == tensor.dtype);
    CHECK(copied.at(name).shape == tensor.shape);
  }
  CHECK(run_tool({"verify", directory / "copy"}).how == exit_code::good);
  CHECK(run_tool({"inspect", narrow, "--diff", directory / "copy"}).how == exit_code::good);
}

TEST_CASE("--diff and verify see one changed bit of a narrow type", "[tool][inspect][verify]") {
  const sw::test::temporary_directory directory;
  const sw::checkpoint_reader reader(narrow);
  const auto write = [&](const std::string& name, std::byte first) {
    auto values = reader.read("all/int4");
    values.bytes()[0] = first;
    sw::detail::checkpoint_writer writer(directory / name);
    writer.add("all/int4", values.view());
    writer.commit();
  };
  write("a", std::byte{1});
  write("b", std::byte{15});
  const auto differences = json::parse(run_tool({"inspect", directory / "a", "--diff", directory / "b", "--json"}).out)["differences"];
  REQUIRE(differences.size() == 1);
  CHECK(differences[0]["elements"] == 1);
  CHECK(differences[0]["max_abs"] == 2.0);  // 1 and -1
  auto data = sw::test::file_text(directory / "b.data-00000-of-00001");
  data[3] = static_cast<char>(data[3] ^ 1);
  sw::test::write_file_text(directory / "b.data-00000-of-00001", data);
  CHECK(run_tool({"verify", directory / "b"}).how == exit_code::damaged);
}
