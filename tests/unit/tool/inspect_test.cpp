// SPDX-License-Identifier: Apache-2.0
#include "support/fault_file_system.hpp"
#include "support/file_text.hpp"
#include "support/paths.hpp"
#include "support/temporary_directory.hpp"
#include "support/testdata.hpp"
#include "tool_run.hpp"

#include <stepwell/base/variable.hpp>
#include <stepwell/checkpoint/detail/checkpoint_writer.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

namespace sw = stepwell;
using nlohmann::json;
using sw::test::run_tool;
using sw::test::temporary_directory;
using sw::tool::exit_code;

namespace {

double number_in(const json& value) { return value.is_string() ? std::stod(value.get<std::string>()) : value.get<double>(); }

void check_values(const std::string& prefix, const json& expected) {
  const auto seen = run_tool({"inspect", prefix, "--print", expected["name"].get<std::string>(), "--json"});
  REQUIRE(seen.how == exit_code::good);
  const auto values = json::parse(seen.out)["values"];
  REQUIRE(values.size() == expected["values"].size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double want = number_in(expected["values"][i]);
    const double have = values[i].is_boolean() ? values[i].get<bool>() : number_in(values[i]);
    CHECK((have == want || (std::isnan(have) && std::isnan(want)) || have == Approx(want).epsilon(1e-6)));
  }
}

void check_sum(const json& seen, const json& expected) {
  if (!seen.contains("mean") || expected["sum"].is_array()) { return; }
  const double sum = number_in(expected["sum"]);
  if (seen["nan"] != 0 || seen["inf"] != 0 || !std::isfinite(sum)) { return; }
  const double scale = std::max({std::abs(number_in(seen["min"])), std::abs(number_in(seen["max"])), 1e-30});
  CHECK(std::abs(number_in(seen["mean"]) - sum / number_in(seen["count"])) <= 1e-9 * scale);
}

void check_checkpoint(const std::string& prefix, const json& expected) {
  const auto said = run_tool({"inspect", prefix, "--json", "--stats"});
  INFO(prefix << said.err);
  REQUIRE(said.how == exit_code::good);
  const auto seen = json::parse(said.out);
  CHECK(seen["shards"] == expected["header"]["num_shards"]);
  std::size_t at = 0;
  for (const auto& row : expected["tensors"]) {
    if (row["name"].is_null()) { continue; }
    REQUIRE(at < seen["tensors"].size());
    const auto& tensor = seen["tensors"][at++];
    INFO(row["name"]);
    CHECK(tensor["name"] == row["name"]);
    CHECK(sw::test::tensorflow_name(tensor["dtype"].get<std::string>()) == row["dtype"].get<std::string>());
    CHECK(tensor["shape"] == row["shape"]);
    CHECK(tensor["partitioned"] == row.contains("partitioned"));
    if (!row.contains("partitioned")) {
      CHECK(tensor["bytes"] == row["size"]);
      CHECK(tensor["crc32c"] == row["crc32c"]);
    }
    check_sum(tensor, row);
    if (row.contains("values") && row["dtype"] != "DT_STRING" && row["dtype"] != "DT_COMPLEX64" && row["dtype"] != "DT_COMPLEX128") {
      check_values(prefix, row);
    }
  }
  CHECK(seen["tensors"].size() == at);
}

void write_two(const std::string& prefix, std::vector<float> w, std::int64_t step, std::int32_t shards = 1) {
  sw::detail::checkpoint_writer writer(prefix, nullptr, shards);
  writer.add("layer/w", {sw::dtype::float32, {2, static_cast<std::int64_t>(w.size()) / 2}, std::as_bytes(std::span(w))});
  writer.add("global_step", sw::view_of(step));
  writer.commit();
}

}  // namespace

TEST_CASE("inspect sees in real and synthetic checkpoints what other readers see", "[tool][inspect][testdata]") {
  const auto folder = sw::test::testdata("");
  if (folder.empty()) { return; }
  int seen = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
    if (file.path().extension() != ".index") { continue; }
    const auto prefix = (file.path().parent_path() / file.path().stem()).string();
    if (!std::filesystem::exists(prefix + ".expected.json")) { continue; }  // no results of other readers were recorded
    check_checkpoint(prefix, json::parse(sw::test::file_text(prefix + ".expected.json")));
    ++seen;
  }
  CHECK(seen == 12);
}

TEST_CASE("inspect says of each tensor its name, dtype, shape, size and stored checksum", "[tool][inspect][golden]") {
  const auto said = run_tool({"inspect", sw::test::golden("/checkpoint/small")});
  CHECK(said.how == exit_code::good);
  auto shown = said.out;
  shown.erase(0, shown.find("small:"));  // removes the path of the golden files
  CHECK(shown == sw::test::file_text(sw::test::golden("/tool/inspect.txt")));
}

TEST_CASE("inspect of a directory means the checkpoint that its state file calls newest", "[tool][inspect]") {
  const temporary_directory directory;
  CHECK(run_tool({"inspect", directory.path()}).how == exit_code::unreadable);
  write_two(directory / "model.ckpt-5", {1, 2}, 5);
  write_two(directory / "model.ckpt-9", {1, 2}, 9);
  CHECK(run_tool({"inspect", directory.path()}).out.find("step 9") != std::string::npos);  // without a state file: the highest step
  sw::test::write_file_text(directory / "checkpoint", "model_checkpoint_path: \"model.ckpt-5\"\n");
  CHECK(run_tool({"inspect", directory.path()}).out.find("step 5") != std::string::npos);
  CHECK(run_tool({"inspect", directory / "model.ckpt-9.index"}).out.find("step 9") != std::string::npos);
  CHECK(run_tool({"inspect", directory / "model.ckpt-9.data-00000-of-00001"}).out.find("step 9") != std::string::npos);
  CHECK(run_tool({"inspect", directory / "model.ckpt-7"}).how == exit_code::unreadable);
}

TEST_CASE("--stats counts NaN and infinities, and leaves them out of the rest", "[tool][inspect]") {
  const temporary_directory directory;
  write_two(directory / "m", {1, 3, std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}, 1);
  const auto seen = json::parse(run_tool({"inspect", directory / "m", "--stats", "--json"}).out)["tensors"][1];
  CHECK(seen["count"] == 4);
  CHECK(seen["min"] == 1.0);
  CHECK(seen["max"] == 3.0);
  CHECK(seen["mean"] == 2.0);
  CHECK(seen["stddev"] == 1.0);
  CHECK(seen["nan"] == 1);
  CHECK(seen["inf"] == 1);
}

TEST_CASE("statistics of many pieces are those of the whole", "[tool][inspect]") {
  const temporary_directory directory;
  std::vector<float> many(1'000'000);  // read in four pieces
  for (std::size_t i = 0; i < many.size(); ++i) { many[i] = static_cast<float>(i % 1000); }
  write_two(directory / "m", many, 1);
  const auto seen = json::parse(run_tool({"inspect", directory / "m", "--stats", "--json"}).out)["tensors"][1];
  CHECK(seen["mean"].get<double>() == Approx(499.5));
  CHECK(seen["stddev"].get<double>() == Approx(288.674990));
  CHECK(seen["max"] == 999.0);
}

TEST_CASE("statistics of the greatest and the smallest doubles neither overflow nor vanish", "[tool][inspect]") {
  const temporary_directory directory;
  const auto most = std::numeric_limits<double>::max();
  const auto stats_of = [&](const std::vector<double>& values) {
    sw::detail::checkpoint_writer writer(directory / "m");
    writer.add("w", {sw::dtype::float64, {static_cast<std::int64_t>(values.size())}, std::as_bytes(std::span(values))});
    writer.commit();
    return json::parse(run_tool({"inspect", directory / "m", "--stats", "--json"}).out)["tensors"][0];
  };
  const auto check = [&](const json& seen, double mean, double stddev) {
    CHECK(seen["mean"].get<double>() == Approx(mean).epsilon(1e-12).margin(1e-12 * stddev));
    CHECK(seen["stddev"].get<double>() == Approx(stddev).epsilon(1e-12));
  };
  check(stats_of({1e300, -1e300}), 0, 1e300);
  check(stats_of({most, most}), most, 0);
  check(stats_of({most, -most}), 0, most);
  check(stats_of({1e-300, 3e-300}), 2e-300, 1e-300);
  std::vector<double> many(300'000, most);  // read in three pieces
  std::fill(many.begin() + 150'000, many.end(), -most);
  check(stats_of(many), 0, most);
}

TEST_CASE("--print --json gives strings that are not UTF-8 in base64, too", "[tool][inspect]") {
  const temporary_directory directory;
  const auto print = [&](const std::vector<std::string>& strings) {
    sw::detail::checkpoint_writer writer(directory / "m");
    writer.add_strings("s", {static_cast<std::int64_t>(strings.size())}, strings);
    writer.commit();
    return json::parse(run_tool({"inspect", directory / "m", "--print", "s", "--json"}).out);
  };
  CHECK_FALSE(print({"plain", "\xc3\xa4"}).contains("values_base64"));
  const auto seen = print({"plain", "\xff\xfe", "", std::string("\x00\x80\xff\x10", 4)});
  CHECK(seen["values"].size() == 4);
  CHECK(seen["values_base64"] == json({"cGxhaW4=", "//4=", "", "AID/EA=="}));
}

TEST_CASE("inspect says that a checkpoint contains a stop, with its cause and text", "[tool][inspect]") {
  const temporary_directory directory;
  const auto inspect = [&](const std::string& name, const std::vector<std::string>& strings, bool as_json) {
    sw::detail::checkpoint_writer writer(directory / "m");
    writer.add("global_step", sw::view_of(std::int64_t{7}));
    if (!name.empty()) { writer.add_strings("stepwell/stop/cause", {}, std::vector<std::string>{name}); }
    if (!strings.empty()) { writer.add_strings("stepwell/stop/text", {static_cast<std::int64_t>(strings.size())}, strings); }
    writer.commit();
    const auto seen = as_json ? run_tool({"inspect", directory / "m", "--json"}) : run_tool({"inspect", directory / "m"});
    CHECK(seen.how == exit_code::good);
    return seen.out;
  };
  sw::detail::checkpoint_writer writer(directory / "n");
  writer.add_strings("stepwell/stop/cause", {}, std::vector<std::string>{"requested"});
  writer.add_strings("stepwell/stop/text", {}, std::vector<std::string>{"good\x1b enough"});
  writer.commit();
  CHECK_THAT(run_tool({"inspect", directory / "n"}).out,
             ContainsSubstring(
                 "\ncontains a stop, cause requested: good\\x1b enough (a restart does no step, unless resume_after_stop is set)\n"));
  CHECK(json::parse(run_tool({"inspect", directory / "n", "--json"}).out)["stop"] ==
        json({{"cause", "requested"}, {"text", "good\x1b enough"}}));
  CHECK(inspect("", {}, false).find("stop") == std::string::npos);
  CHECK_FALSE(json::parse(inspect("", {}, true)).contains("stop"));
  CHECK(json::parse(inspect("odd", {"two", "texts"}, true))["stop"] == json({{"cause", "odd"}, {"text", ""}}));
}

TEST_CASE("--print --json of a tensor that cannot be read is a whole document with the error", "[tool][inspect]") {
  const auto unread = run_tool({"inspect", sw::test::golden("/checkpoint/variant"), "--print", "list", "--json"});
  CHECK(unread.how == exit_code::unsupported);
  REQUIRE(json::accept(unread.out));
  CHECK(json::parse(unread.out)["dtype"] == "variant");
  CHECK(json::parse(unread.out)["values"].empty());
  CHECK(json::parse(unread.out)["error"].get<std::string>().find("is of an unsupported kind") != std::string::npos);
  CHECK(unread.err.find("is of an unsupported kind") != std::string::npos);

  const temporary_directory directory;
  write_two(directory / "m", {1, 2, 3, 4}, 7);
  auto data = sw::test::file_text(directory / "m.data-00000-of-00001");
  data.front() = static_cast<char>(data.front() ^ 1);
  sw::test::write_file_text(directory / "m.data-00000-of-00001", data);
  const auto damaged = run_tool({"inspect", directory / "m", "--print", "layer/w", "--json"});
  CHECK(damaged.how == exit_code::damaged);
  REQUIRE(json::accept(damaged.out));
  CHECK(json::parse(damaged.out)["error"].get<std::string>().find("its checksum does not match") != std::string::npos);
}

TEST_CASE("--diff of checkpoints with the same numbers and a variant is unsupported, not different", "[tool][inspect]") {
  const std::string variant = sw::test::golden("/checkpoint/variant");
  const auto said = run_tool({"inspect", variant, "--diff", variant});
  CHECK(said.how == exit_code::unsupported);
  CHECK(said.out.find("not read") != std::string::npos);
}

TEST_CASE("--print shows the values between brackets, no more than --limit", "[tool][inspect]") {
  const temporary_directory directory;
  write_two(directory / "m", {0.1f, -2, 3, 4e30f}, 7);
  const auto print = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"inspect", directory / "m", "--print"});
    return run_tool(std::move(more));
  };
  CHECK(print({"layer/w"}).out == "layer/w  float32 [2,2]\n[[0.1, -2],\n [3, 4e+30]]\n");
  CHECK(print({"layer/w", "--limit", "1"}).out == "layer/w  float32 [2,2]\n[[0.1\n... and 3 more; --limit 0 shows all\n");
  CHECK(print({"global_step"}).out == "global_step  int64 []\n7\n");
  const auto absent = print({"layer/v"});
  CHECK(absent.how == exit_code::unreadable);
  CHECK(absent.err.find("the checkpoint has no tensor \"layer/v\"") != std::string::npos);
}

TEST_CASE("the holes of a sparse file are not read, and count as zeros", "[tool][inspect]") {
  const sw::test::temporary_directory directory;
  const auto prefix = directory / "model.ckpt-1";
  constexpr std::size_t count = (std::size_t{4} << 20) + 5;
  {
    std::vector<float> values(count);
    values.back() = static_cast<float>(count);
    sw::detail::checkpoint_writer writer(prefix);
    writer.add("values", sw::view_of(values));
    writer.commit();
  }
  const auto data = prefix + ".data-00000-of-00001";
  const auto size = std::filesystem::file_size(data);
  const auto content = sw::test::file_text(data);
  std::filesystem::resize_file(data, 0);
  std::filesystem::resize_file(data, size);
  std::fstream(data, std::ios::in | std::ios::out).seekp(static_cast<std::streamoff>(size - 4)) << content.substr(size - 4);
  const auto files = std::make_shared<sw::test::fault_file_system>();
  const auto run = [&](const std::vector<std::string>& arguments) {
    const auto before = files->operations(sw::test::operation::read);
    auto said = sw::test::tool_rig{.files = files}.run(arguments);
    CHECK(said.how == exit_code::good);
    CHECK(files->operations(sw::test::operation::read) - before < 8);
    return said.out;
  };
  CHECK(run({"inspect", prefix, "--print", "values", "--limit", "2"}).find("[0, 0") != std::string::npos);
  const auto stats = nlohmann::json::parse(run({"inspect", prefix, "--stats", "--json"}))["tensors"][0];
  CHECK(stats["count"] == count);
  CHECK(stats["min"] == 0);
  CHECK(stats["max"] == static_cast<double>(count));
  CHECK(std::abs(stats["mean"].get<double>() - 1) < 1e-9);
  run({"export", prefix, "--npz", directory / "values.npz"});
  CHECK(sw::test::file_text(directory / "values.npz").find(content.substr(size - 4)) != std::string::npos);
}

TEST_CASE("--diff of a checkpoint with itself finds nothing, in whatever shards it is stored", "[tool][inspect]") {
  const temporary_directory directory;
  write_two(directory / "a", {1, 2, std::numeric_limits<float>::quiet_NaN(), 4}, 7);
  write_two(directory / "b", {1, 2, std::numeric_limits<float>::quiet_NaN(), 4}, 7, 2);
  const auto said = run_tool({"inspect", directory / "a", "--diff", directory / "b"});
  CHECK(said.how == exit_code::good);
  CHECK(said.out.find("the same: 2 tensors") != std::string::npos);
}

TEST_CASE("--diff lists tensors that one checkpoint lacks, different dtypes and shapes, and the distance of values", "[tool][inspect]") {
  const temporary_directory directory;
  write_two(directory / "a", {1, 2, 3, 4}, 7);
  write_two(directory / "b", {1, 2.5, 3, 1}, 7);
  const auto diff = [&](const std::string& other, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"inspect", directory / "a", "--json", "--diff", directory / other});
    const auto said = run_tool(std::move(more));
    CHECK(said.how == (json::parse(said.out)["differences"].empty() ? exit_code::good : exit_code::differs));
    return json::parse(said.out)["differences"];
  };
  const auto values = diff("b");
  REQUIRE(values.size() == 1);
  CHECK(values[0]["name"] == "layer/w");
  CHECK(values[0]["what"] == "values");
  CHECK(values[0]["elements"] == 2);
  CHECK(values[0]["max_abs"] == 3.0);
  CHECK(values[0]["first"] == 1);
  CHECK(diff("b", {"--tolerance", "1"})[0]["elements"] == 1);
  CHECK(diff("b", {"--tolerance", "3"}).empty());

  float w = 1;
  sw::detail::checkpoint_writer writer(directory / "c");
  writer.add("global_step", sw::view_of(w));
  writer.add("other", sw::view_of(w));
  writer.commit();
  const auto others = diff("c");
  REQUIRE(others.size() == 3);
  CHECK(others[0]["what"] == "dtype");
  CHECK(others[1]["what"] == "only in a");
  CHECK(others[2]["what"] == "only in b");
  write_two(directory / "d", {1, 2, 3, 4, 5, 6}, 7);
  CHECK(diff("d")[0]["what"] == "shape");
}

TEST_CASE("a damaged tensor is reported, and the others are shown", "[tool][inspect]") {
  const temporary_directory directory;
  write_two(directory / "a", {1, 2, 3, 4}, 7);
  write_two(directory / "b", {1, 2, 3, 4}, 7);
  auto data = sw::test::file_text(directory / "b.data-00000-of-00001");
  data[0] = static_cast<char>(data[0] ^ 1);
  sw::test::write_file_text(directory / "b.data-00000-of-00001", data);
  const auto stats = run_tool({"inspect", directory / "b", "--stats"});
  CHECK(stats.how == exit_code::damaged);
  CHECK(stats.err.find("its checksum does not match") != std::string::npos);
  CHECK(stats.out.find("global_step") != std::string::npos);
  const auto diff = run_tool({"inspect", directory / "a", "--diff", directory / "b"});
  CHECK(diff.how == exit_code::damaged);
  CHECK(diff.out.find("damaged") != std::string::npos);
  CHECK(run_tool({"inspect", directory / "b", "--print", "layer/w"}).how == exit_code::damaged);
}
