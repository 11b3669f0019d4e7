// SPDX-License-Identifier: Apache-2.0
#include "support/file_text.hpp"
#include "support/temporary_directory.hpp"
#include "tool_run.hpp"

#include <stepwell/kernel/detail/simd.hpp>
#include <tool/commands.hpp>
#include <tool/elements.hpp>
#include <tool/json.hpp>
#include <tool/output.hpp>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>

namespace sw = stepwell;
namespace tool = stepwell::tool;
using sw::test::run_tool;
using tool::exit_code;

TEST_CASE("help lists every command and every exit code, and each command has its own", "[tool][command_line]") {
  const auto help = run_tool({"--help"});
  CHECK(help.how == exit_code::good);
  for (const std::string name :
       {"inspect", "verify", "events", "plot", "board", "compare", "prune", "export", "stats", "completion", "man"}) {
    CHECK(help.out.find("\n  " + name + " ") != std::string::npos);
    const auto own = run_tool({name, "--help"});
    CHECK(own.how == exit_code::good);
    CHECK(own.out.find("stepwell " + name + " [OPTIONS]") != std::string::npos);
  }
  CHECK(help.out.find("exit codes: 0 done") != std::string::npos);
}

TEST_CASE("the version names the instructions of the numeric kernels", "[tool][command_line]") {
  const auto version = run_tool({"--version"});
  CHECK(version.how == exit_code::good);
  CHECK(version.out.find(std::string("\nnumeric kernels: ") + sw::kernel::simd().name + "\n") != std::string::npos);
}

TEST_CASE("a command line that makes no sense ends with 2, and says why on the error stream", "[tool][command_line]") {
  const std::vector<std::vector<std::string>> wrong = {{},
                                                       {"inspekt"},
                                                       {"inspect"},
                                                       {"inspect", "a", "--limit", "3"},
                                                       {"inspect", "a", "--diff", "b", "--tolerance", "-1"},
                                                       {"events", "a", "--csv", "--json"},
                                                       {"events", "a", "-f", "-r"},
                                                       {"plot"},
                                                       {"compare", "a"},
                                                       {"prune", "a", "--max-to-keep", "-1"},
                                                       {"export", "a"},
                                                       {"completion", "csh"}};
  for (const auto& words : wrong) {
    const auto said = run_tool(words);
    INFO((words.empty() ? "nothing" : words.back()));
    CHECK(said.how == exit_code::usage);
    CHECK(said.out.empty());
    CHECK(said.err.starts_with("stepwell: "));
  }
}

TEST_CASE("an option that a command does not have is named, with the nearest one", "[tool][command_line]") {
  const auto message = [](const std::vector<std::string>& words) {
    const auto said = run_tool(words);
    CHECK(said.how == exit_code::usage);
    return said.err;
  };
  CHECK(message({"stats", "--jsn"}).find("stats has no option \"--jsn\"; did you mean --json?") != std::string::npos);
  CHECK(message({"plot", "run", "--with=3"}).find("plot has no option \"--with\"; did you mean --width?") != std::string::npos);
  CHECK(message({"--frobnicate"}).find("has no option \"--frobnicate\"") != std::string::npos);
  CHECK(message({"-x", "stats", "run"}).find("has no option \"-x\"") != std::string::npos);
  CHECK(message({"prune", "run", "--max-to-keep", "abc"}).find("abc is not a number of at least 0") != std::string::npos);
}

TEST_CASE("an unknown command names the nearest one", "[tool][command_line]") {
  const auto said = run_tool({"exprot", "run"});
  CHECK(said.how == exit_code::usage);
  CHECK(said.err.find("there is no command \"exprot\"; did you mean export?") != std::string::npos);
  const auto far = run_tool({"frobnicate"});
  CHECK(far.how == exit_code::usage);
  CHECK(far.err.find("did you mean") == std::string::npos);
  CHECK(far.err.find("commands are inspect, verify") != std::string::npos);
  CHECK(tool::nearest_name("sats", {"stats", "man"}) == "stats");
  CHECK(tool::nearest_name("", {"stats"}).empty());
}

TEST_CASE("the installed manual page is the one that the program makes", "[tool][command_line]") {
  const auto said = run_tool({"man"});
  CHECK(said.how == exit_code::good);
  CHECK(said.out == sw::test::file_text(STEPWELL_MANUAL_PAGE));
}

TEST_CASE("output that cannot be written is a failure", "[tool][command_line]") {
  std::ostringstream out;
  std::ostringstream err;
  out.setstate(std::ios::failbit);
  tool::console to{.out = out, .err = err};
  CHECK(tool::run({"completion", "bash"}, to) == exit_code::unreadable);
  CHECK(err.str().find("could not write all of the output") != std::string::npos);
}

TEST_CASE("each shell gets a script that knows commands and options", "[tool][command_line]") {
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    const auto said = run_tool({"completion", shell});
    CHECK(said.how == exit_code::good);
    for (const std::string word : {"inspect", "keep-every-n-hours", "follow", "together"}) {
      INFO(shell);
      CHECK(said.out.find(word) != std::string::npos);
    }
  }
}

TEST_CASE("bash completes a name with spaces as one word", "[tool][command_line]") {
  const sw::test::temporary_directory directory;
  std::filesystem::create_directory(directory / "my run");
  std::filesystem::create_directory(directory / "my other run");
  sw::test::write_file_text(directory / "completion", run_tool({"completion", "bash"}).out);
  sw::test::write_file_text(directory / "try",
                            "cd \"$1\"; source ./completion; COMP_WORDS=(stepwell stats my); COMP_CWORD=2; _stepwell; "
                            "printf '%s\\n' \"${COMPREPLY[@]}\" | sort > words\n");
  REQUIRE(std::system(("bash " + (directory / "try") + " " + directory.path()).c_str()) == 0);
  CHECK(sw::test::file_text(directory / "words") == "my other run\nmy run\n");
}

TEST_CASE("messages of the library are on the error stream of the command", "[tool][command_line]") {
  const sw::test::temporary_directory directory;
  std::filesystem::create_directory(directory / "checkpoint");  // makes the state file unreadable
  CHECK(run_tool({"inspect", directory.path()}).how == exit_code::unreadable);
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

TEST_CASE("JSON has texts for NaN and infinities, and escapes control characters", "[tool][text]") {
  using limits = std::numeric_limits<double>;
  std::ostringstream out;
  tool::json_document document(out);
  document.add("a\"\\\n\x01", tool::json_number(0.1));
  document.add_list("odd", std::vector{limits::quiet_NaN(), limits::infinity(), -limits::infinity(), -0.0}, tool::json_number<double>);
  document.add("f", tool::json_number(0.1f));
  document.add("whole", tool::json_number(3.0));
  document.add("bad", "\xff");
  document.add("steering", "\x7f\xc2\x9bπ");
  document.add_list("list", std::vector<int>{1, 2});
  document.add_list("none", std::vector<int>{});
  document.end();
  CHECK(out.str() == R"({"a\"\\\n\u0001": 0.1, "odd": ["nan", "inf", "-inf", -0.0], "f": 0.1, "whole": 3, "bad": ")"
                     "\xef\xbf\xbd"
                     R"(", "steering": "\u007f\u009bπ", "list": [1, 2], "none": []})"
                     "\n");
}

TEST_CASE("an object of many members is made without searching for each", "[tool][text]") {
  const std::map<std::string, int> many{{"a", 1}, {"b", 2}};
  CHECK(tool::json_text(tool::json_members(many)) == R"({"a":1,"b":2})");
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
