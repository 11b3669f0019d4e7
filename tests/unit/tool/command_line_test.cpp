// SPDX-License-Identifier: Apache-2.0
#include "support/temporary_directory.hpp"
#include "tool_run.hpp"

#include <tool/elements.hpp>
#include <tool/json_writer.hpp>
#include <tool/text.hpp>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace sw = stepwell;
namespace tool = stepwell::tool;
using sw::test::run_tool;
using tool::outcome;

TEST_CASE("help lists every command and every exit code, and each command has its own", "[tool][command_line]") {
  const auto help = run_tool({"--help"});
  CHECK(help.how == outcome::good);
  for (const std::string name : {"inspect", "verify", "events", "plot", "prune", "export", "stats", "completion"}) {
    CHECK(help.out.find("\n  " + name + " ") != std::string::npos);
    const auto own = run_tool({name, "--help"});
    CHECK(own.how == outcome::good);
    CHECK(own.out.find("stepwell " + name + " [OPTIONS]") != std::string::npos);
  }
  CHECK(help.out.find("exit codes: 0 done") != std::string::npos);
}

TEST_CASE("a command line that makes no sense ends with 2, and says why on the error stream", "[tool][command_line]") {
  const std::vector<std::vector<std::string>> wrong = {{},
                                                       {"inspekt"},
                                                       {"inspect"},
                                                       {"inspect", "a", "--limit", "3"},
                                                       {"inspect", "a", "--diff", "b", "--tolerance", "-1"},
                                                       {"events", "a", "--csv", "--json"},
                                                       {"events", "a", "-f", "-r"},
                                                       {"plot", "a"},
                                                       {"prune", "a", "--max-to-keep", "-1"},
                                                       {"export", "a"},
                                                       {"completion", "csh"}};
  for (const auto& words : wrong) {
    const auto said = run_tool(words);
    INFO((words.empty() ? "nothing" : words.back()));
    CHECK(said.how == outcome::usage);
    CHECK(said.out.empty());
    CHECK_FALSE(said.err.empty());
  }
}

TEST_CASE("output that cannot be written is a failure", "[tool][command_line]") {
  std::ostringstream out;
  std::ostringstream err;
  out.setstate(std::ios::failbit);
  tool::console to{.out = out, .err = err};
  CHECK(tool::run({"completion", "bash"}, to) == outcome::unreadable);
  CHECK(err.str().find("could not write all of the output") != std::string::npos);
}

TEST_CASE("each shell gets a script that knows commands and options", "[tool][command_line]") {
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    const auto said = run_tool({"completion", shell});
    CHECK(said.how == outcome::good);
    for (const std::string word : {"inspect", "keep-every-n-hours", "follow", "svg"}) {
      INFO(shell);
      CHECK(said.out.find(word) != std::string::npos);
    }
  }
}

TEST_CASE("what the library logs goes to the error stream of the command", "[tool][command_line]") {
  const sw::test::temporary_directory directory;
  std::filesystem::create_directory(directory / "checkpoint");  // makes the state file unreadable
  CHECK(run_tool({"inspect", directory.path()}).how == outcome::unreadable);
}

TEST_CASE("sizes, times and lengths are said as people read them", "[tool][text]") {
  CHECK(tool::size_text(0) == "0 B");
  CHECK(tool::size_text(1536) == "1.5 KiB");
  CHECK(tool::size_text(1048575) == "1.0 MiB");
  CHECK(tool::size_text(std::numeric_limits<std::uint64_t>::max()) == "16.0 EiB");
  CHECK(tool::time_text(1795325644) == "2026-11-22 05:34:04");
  CHECK(tool::time_text(std::numeric_limits<double>::quiet_NaN()) == "-");
  CHECK(tool::time_text(1e300) == "-");
  CHECK(tool::duration_text(3723) == "1 h 2 min");
  CHECK(tool::count_text(1, "file") == "1 file");
}

TEST_CASE("names are shown without bytes that a terminal would obey", "[tool][text]") {
  CHECK(tool::printable("weights/π") == "weights/π");
  CHECK(tool::printable("a\x1b[31m\n") == "a\\x1b[31m\\x0a");
  CHECK(tool::printable("\xff\xc2\x9b") == "\\xff\\xc2\\x9b");
}

TEST_CASE("JSON says what it has no word for as texts, and mends what is no UTF-8", "[tool][text]") {
  std::ostringstream out;
  tool::json_writer json(out);
  json.begin_object();
  json.member("a\"\\\n\x01", 0.1);
  json.member("nan", std::numeric_limits<double>::quiet_NaN());
  json.member("f", 0.1f);
  json.member("bad", "\xff");
  json.key("list");
  tool::write_array(json, std::vector<int>{1, 2});
  json.end_object();
  const auto read = nlohmann::json::parse(out.str());
  CHECK(read["a\"\\\n\x01"] == 0.1);
  CHECK(read["nan"] == "nan");
  CHECK(out.str().find("\"f\": 0.1,") != std::string::npos);
  CHECK(read["list"] == nlohmann::json({1, 2}));
}

TEST_CASE("halves and bfloat16 widen exactly", "[tool][elements]") {
  CHECK(tool::to_float(tool::stored_number<sw::dtype::half>{0x3c00}) == 1.0f);
  CHECK(tool::to_float(tool::stored_number<sw::dtype::half>{0xc500}) == -5.0f);
  CHECK(tool::to_float(tool::stored_number<sw::dtype::half>{0x0001}) == std::ldexp(1.0f, -24));
  CHECK(tool::to_float(tool::stored_number<sw::dtype::half>{0x7bff}) == 65504.0f);
  CHECK(std::isnan(tool::to_float(tool::stored_number<sw::dtype::half>{0x7e00})));
  CHECK(std::isinf(tool::to_float(tool::stored_number<sw::dtype::half>{0xfc00})));
  CHECK(tool::to_float(tool::stored_number<sw::dtype::bfloat16>{0x4049}) == 3.140625f);
}
