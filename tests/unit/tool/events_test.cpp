// SPDX-License-Identifier: Apache-2.0
#include "support/file_text.hpp"
#include "support/leaping_clock.hpp"
#include "support/memory_files.hpp"
#include "support/paths.hpp"
#include "support/testdata.hpp"
#include "tool_run.hpp"

#include <stepwell/format/events/detail/summary_values.hpp>
#include <stepwell/format/events/event.hpp>
#include <stepwell/format/events/record.hpp>

#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

namespace sw = stepwell;
namespace format = stepwell::format;
using nlohmann::json;
using sw::test::memory_files;
using sw::test::tool_rig;
using sw::tool::exit_code;

namespace {

std::string record_of(const format::event& happened) {
  std::vector<std::byte> bytes;
  const auto message = encode_event(happened);
  format::append_record(bytes, std::as_bytes(std::span(message)));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string scalar(const std::string& tag, float value, std::int64_t step) {
  return record_of({.wall_time = 1000 + static_cast<double>(step),
                    .step = step,
                    .what = format::summary{{make_scalar_value(tag, value, format::summary_style::simple)}},
                    .source_writer = {}});
}

std::shared_ptr<memory_files> files_of(std::map<std::string, std::string> content) {
  return std::make_shared<memory_files>(std::move(content));
}

std::vector<json> documents(const std::string& text) {
  std::vector<json> all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) { all.push_back(json::parse(line)); }
  return all;
}

bool is_same(const json& seen, const json& expected) {
  const auto number = [](const json& value) { return value.is_string() ? std::stod(value.get<std::string>()) : value.get<double>(); };
  const double a = number(seen);
  const double b = number(expected);
  return (std::isnan(a) && std::isnan(b)) || a == b || a == Approx(b).epsilon(1e-6);
}

void check_hparams(const json& seen, const json& expected) {
  if (expected.contains("sessionStartInfo")) {
    CHECK(seen["session_start"]["hparams"] == expected["sessionStartInfo"]["hparams"]);
  } else if (expected.contains("experiment")) {
    CHECK(seen["experiment"]["hparams"].size() == expected["experiment"]["hparamInfos"].size());
    CHECK(seen["experiment"]["metrics"][0] == expected["experiment"]["metricInfos"][0]["name"]["tag"]);
  } else {
    CHECK(seen["session_end"]["status"] == "success");
  }
}

void check_value(const json& seen, const json& expected) {
  INFO("tag " << expected["tag"]);
  CHECK(seen["tag"] == expected["tag"]);
  const auto& kind = expected["kind"];
  if (expected.contains("hparams")) {
    check_hparams(seen["value"], expected["hparams"]);
  } else if (kind == "simple_value") {
    CHECK(seen["kind"] == "scalar");
    CHECK(is_same(seen["value"], expected["value"]));
  } else if (kind == "histo") {
    CHECK(seen["kind"] == "histogram");
    for (const auto* name : {"min", "max", "num", "sum", "sum_squares"}) { CHECK(is_same(seen["value"][name], expected["value"][name])); }
    CHECK(seen["value"]["buckets"] == expected["value"]["buckets"]);
  } else if (kind == "image" || kind == "audio") {
    CHECK(seen["kind"] == kind);
    for (const auto& [name, value] : expected["value"].items()) {
      if (name != "sha") { CHECK(seen["value"][name] == value); }
    }
  } else if (kind == "tensor" && expected["value"]["shape"].empty() && expected["value"]["dtype"] != "DT_STRING") {
    CHECK(is_same(seen["value"], expected["value"]["values"][0]));
  } else if (kind == "tensor") {
    CHECK(seen["value"]["shape"] == expected["value"]["shape"]);
    if (expected["value"].contains("bytes")) { CHECK(seen["value"]["bytes"] == expected["value"]["bytes"]); }
  } else {
    CHECK(seen["value"].is_null());
  }
}

void check_file(const std::string& path, const json& expected) {
  const auto said = sw::test::run_tool({"events", path, "--json"});
  INFO(path << said.err);
  REQUIRE(said.how == exit_code::good);
  const auto seen = documents(said.out);
  std::size_t at = 0;
  for (const auto& event : expected["events"]) {
    const auto count = event["what"] == "summary" ? event["values"].size() : std::size_t{1};
    for (std::size_t i = 0; i < count; ++i, ++at) {
      REQUIRE(at < seen.size());
      CHECK(seen[at]["wall_time"] == event["wall_time"]);
      CHECK(seen[at]["step"] == event["step"]);
      if (event["what"] == "summary") {
        check_value(seen[at], event["values"][i]);
      } else {
        CHECK(seen[at]["kind"] == event["what"]);
      }
    }
  }
  CHECK(seen.size() == at);
  const auto summary = json::parse(sw::test::run_tool({"events", path, "--json", "--summary"}).out);
  CHECK(summary["files"][0]["records"] == expected["records"]);
}

}  // namespace

TEST_CASE("events sees in real event files what other readers see", "[tool][events][testdata]") {
  const auto root = sw::test::testdata("events");
  if (root.empty()) { return; }
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().filename() != "expected.json") { continue; }
    for (const auto& expected : json::parse(sw::test::file_text(entry.path().string()))) {
      check_file((entry.path().parent_path() / expected["file"].get<std::string>()).string(), expected);
      ++files;
    }
  }
  CHECK(files == 10);
}

TEST_CASE("events sums up each tag in a line", "[tool][events][golden]") {
  const auto rig =
      tool_rig{.files = files_of({{"run/events.out.tfevents.1", sw::test::file_text(sw::test::golden("/format/events.bin"))}})};
  const auto said = rig.run({"events", "run"});
  CHECK(said.how == exit_code::good);
  CHECK(said.out == sw::test::file_text(sw::test::golden("/tool/events.txt")));
}

TEST_CASE("the values of chosen tags come as lines, CSV or JSON", "[tool][events]") {
  const auto rig = tool_rig{.files = files_of({{"run/a.tfevents.1", scalar("loss", 0.5f, 1) + scalar("a,\"b\"", 2, 1)},
                                               {"run/b.tfevents.2", scalar("loss", 0.25f, 2)},
                                               {"run/notes.txt", "no events"}})};
  CHECK(rig.run({"events", "run", "--tag", "loss", "--lines"}).out ==
        "1970-01-01 00:16:41  1  loss  0.5\n1970-01-01 00:16:42  2  loss  0.25\n");
  CHECK(rig.run({"events", "run", "--csv"}).out ==
        "\"file\",\"wall_time\",\"step\",\"tag\",\"kind\",\"value\"\n"
        "\"run/a.tfevents.1\",\"1001\",\"1\",\"loss\",\"scalar\",\"0.5\"\n"
        "\"run/a.tfevents.1\",\"1001\",\"1\",\"a,\"\"b\"\"\",\"scalar\",\"2\"\n"
        "\"run/b.tfevents.2\",\"1002\",\"2\",\"loss\",\"scalar\",\"0.25\"\n");
  CHECK(documents(rig.run({"events", "run/b.tfevents.2", "--json"}).out)[0]["value"] == 0.25);
}

TEST_CASE("a tag that no value has is an error that names the tags there are", "[tool][events]") {
  const auto rig = tool_rig{.files = files_of({{"a.tfevents", scalar("loss", 0.5f, 1) + scalar("accuracy", 1, 1)}})};
  for (const std::string form : {"--csv", "--json", "--lines"}) {
    const auto said = rig.run({"events", "a.tfevents", "--tag", "los", "--tag", "accuracy", form});
    CHECK(said.how == exit_code::unreadable);
    CHECK(said.out.find("accuracy") != std::string::npos);
    CHECK(said.err.find("there is no tag \"los\"; tags are accuracy, loss") != std::string::npos);
  }
  CHECK(rig.run({"events", "a.tfevents", "--tag", "loss"}).how == exit_code::good);
  CHECK(rig.run({"events", "a.tfevents", "--tag", "l?s*"}).how == exit_code::good);  // patterns, as for plot
  CHECK(rig.run({"events", "a.tfevents", "--tag", "l?s*"}).out == rig.run({"events", "a.tfevents", "--tag", "loss"}).out);
  CHECK(rig.run({"events", "a.tfevents", "--tag", "los?", "--tag", "x*"}).how == exit_code::unreadable);
}

TEST_CASE("event files of directories below are read when asked for", "[tool][events]") {
  const auto rig = tool_rig{.files = files_of({{"run/eval/a.tfevents.1", scalar("loss", 1, 1)}})};
  const auto plotted = rig.run({"plot", "run", "--tag", "loss"});
  CHECK(plotted.err.find("below it, for example in run/eval; give that directory (") != std::string::npos);
  CHECK(plotted.err.find("--recursive") == std::string::npos);  // plot has no such option
  const auto refused = rig.run({"events", "run"});
  CHECK(refused.how == exit_code::unreadable);
  CHECK(refused.err.find("--recursive") != std::string::npos);
  CHECK(rig.run({"events", "run", "-r"}).out.find("loss") != std::string::npos);
}

TEST_CASE("a damaged event file is reported, and the files after it are read", "[tool][events]") {
  auto damaged = scalar("loss", 1, 1) + scalar("loss", 2, 2);
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  const auto rig = tool_rig{.files = files_of({{"run/a.tfevents.1", damaged}, {"run/b.tfevents.2", scalar("loss", 3, 3)}})};
  const auto said = rig.run({"events", "run", "--tag", "loss", "--csv"});
  CHECK(said.how == exit_code::damaged);
  CHECK(said.out.find(",\"1\",\"loss\",\"scalar\",\"1\"\n") != std::string::npos);
  CHECK(said.out.find(",\"2\",\"loss") == std::string::npos);
  CHECK(said.out.find(",\"3\",\"loss\",\"scalar\",\"3\"\n") != std::string::npos);
  CHECK(said.err.find("record 1 at byte") != std::string::npos);
}

TEST_CASE("a last record that is cut off is reported", "[tool][events]") {
  const auto whole = scalar("loss", 1, 1);
  const auto rig = tool_rig{.files = files_of({{"a.tfevents", whole + whole.substr(0, 9)}})};
  const auto said = rig.run({"events", "a.tfevents"});
  CHECK(said.how == exit_code::damaged);
  CHECK(said.err.find("the last record is truncated, only 9 bytes of it are present") != std::string::npos);
}

TEST_CASE("following shows later records, whole ones only, and continues with later files", "[tool][events]") {
  const auto whole = scalar("loss", 2, 2);
  std::stop_source stop;
  const auto time = std::make_shared<sw::test::leaping_clock>();
  const auto files = files_of({});
  files->content["run/a.tfevents.1"] = scalar("loss", 1, 1) + whole.substr(0, 10);
  time->meanwhile = [&](std::size_t wait) {
    if (wait == 1) { files->content["run/a.tfevents.1"] += whole.substr(10); }
    if (wait == 2) { files->content["run/b.tfevents.2"] = scalar("loss", 3, 3); }
    if (wait == 3) { stop.request_stop(); }
  };
  const auto rig = tool_rig{.files = files, .time = time, .stop = stop.get_token()};
  const auto said = rig.run({"events", "run", "-f", "--csv"});
  CHECK(said.how == exit_code::good);
  CHECK(said.err.empty());
  CHECK(said.out ==
        "\"file\",\"wall_time\",\"step\",\"tag\",\"kind\",\"value\"\n"
        "\"run/a.tfevents.1\",\"1001\",\"1\",\"loss\",\"scalar\",\"1\"\n"
        "\"run/a.tfevents.1\",\"1002\",\"2\",\"loss\",\"scalar\",\"2\"\n"
        "\"run/b.tfevents.2\",\"1003\",\"3\",\"loss\",\"scalar\",\"3\"\n");
}

TEST_CASE("an empty histogram has no least and no greatest value", "[tool][events]") {
  const double most = std::numeric_limits<double>::max();
  const auto rig = tool_rig{
      .files = files_of(
          {{"a.tfevents",
            record_of({.wall_time = 1000,
                       .step = 1,
                       .what = format::summary{{{"h", "", std::nullopt, format::histogram_value{most, -most, 0, 0, 0, {most}, {0}}}}},
                       .source_writer = {}})}})};
  CHECK(rig.run({"events", "a.tfevents", "--lines"}).out == "1970-01-01 00:16:40  1  h  no values\n");
  const auto seen = documents(rig.run({"events", "a.tfevents", "--json"}).out)[0]["value"];
  CHECK(seen["num"] == 0.0);
  CHECK(seen["min"].is_null());
  CHECK(seen["max"].is_null());
}

TEST_CASE("in JSON texts and paths are whole, in a line long ones are cut between two letters", "[tool][events]") {
  const std::string path(100, 'p');
  std::string umlauts = "x";
  for (int i = 0; i < 60; ++i) { umlauts += "\xc3\xa4"; }
  const auto rig = tool_rig{
      .files = files_of(
          {{"a.tfevents",
            record_of(
                {.wall_time = 1000,
                 .step = 1,
                 .what = format::session_log{.status = format::session_status::checkpoint, .checkpoint_path = path, .message = "a\nb"},
                 .source_writer = {}}) +
                record_of({.wall_time = 1000, .step = 1, .what = format::log_message{20, umlauts}, .source_writer = {}})}})};
  const auto seen = documents(rig.run({"events", "a.tfevents", "--json"}).out);
  CHECK(seen[0]["value"] == json({{"status", "CHECKPOINT"}, {"checkpoint_path", path}, {"message", "a\nb"}}));
  CHECK(seen[1]["value"] == umlauts);
  const auto lines = rig.run({"events", "a.tfevents", "--lines"}).out;
  CHECK(lines.find("\\x") == std::string::npos);
  CHECK(lines.find("\xc3\xa4...\n") != std::string::npos);
}

TEST_CASE("in JSON sizes and values are numbers", "[tool][events]") {
  const auto rig = tool_rig{
      .files = files_of(
          {{"a.tfevents",
            record_of({.wall_time = 1000, .step = 0, .what = format::graph_def{std::string(2000, 'g')}, .source_writer = {}}) +
                record_of({.wall_time = 1000, .step = 1, .what = format::tagged_run_metadata{"step1", "1234"}, .source_writer = {}}) +
                record_of({.wall_time = 1000, .step = 1, .what = format::log_message{20, "a text"}, .source_writer = {}}) +
                scalar("loss", 0.5f, 1)}})};
  auto seen = documents(rig.run({"events", "a.tfevents", "--json"}).out);
  CHECK(seen[0]["value"] == json({{"bytes", 2000}}));
  CHECK(seen[1]["value"] == json({{"tag", "step1"}, {"bytes", 4}}));
  CHECK(seen[2]["value"] == "a text");
  const auto tags = json::parse(rig.run({"events", "a.tfevents", "--json", "--summary"}).out)["tags"];
  for (const auto& tag : tags) {
    if (tag["kind"] == "graph_def") { CHECK(tag["last"]["bytes"] == 2000); }
    if (tag["tag"] == "loss") { CHECK(tag["last"] == 0.5); }
  }
}

TEST_CASE("a record that is too large to be shown is checked and passed over", "[tool][events]") {
  std::vector<std::byte> records;
  const std::string graph = "\x22\x80\x80\x80\x05" + std::string(10 << 20, 'g');  // graph_def of 10 MiB
  sw::format::append_record(records, std::as_bytes(std::span(graph)));
  std::string text(reinterpret_cast<const char*>(records.data()), records.size());
  const auto rig = tool_rig{.files = files_of({{"a.tfevents", text + scalar("loss", 1, 1)}})};
  const auto said = rig.run({"events", "a.tfevents", "--csv"});
  CHECK(said.how == exit_code::good);
  CHECK(said.out.find(",\"loss\",\"scalar\",\"1\"") != std::string::npos);
  CHECK(said.err.find("record 0 at byte 0 has 10485765 bytes") != std::string::npos);
  text[5 << 20] = 'x';
  const auto damaged = tool_rig{.files = files_of({{"a.tfevents", text + scalar("loss", 1, 1)}})}.run({"events", "a.tfevents", "--csv"});
  CHECK(damaged.how == exit_code::damaged);
  CHECK(damaged.err.find("checksum") != std::string::npos);
}

TEST_CASE("JSON of events has control characters as escapes, C1 too", "[tool][events]") {
  const auto rig = tool_rig{.files = files_of({{"a.tfevents", scalar("a\xc2\x80\xc2\x9b\xc2\xa0\x7f", 1, 1)}})};
  const auto said = rig.run({"events", "a.tfevents", "--json"});
  CHECK(said.out.find("\"tag\": \"a\\u0080\\u009b\xc2\xa0\\u007f\"") != std::string::npos);
}

TEST_CASE("names of tags and texts cannot steer the terminal", "[tool][events]") {
  const auto rig = tool_rig{.files = files_of({{"a.tfevents", scalar("evil\x1b[2Jtag", 1, 1)}}), .colours = true};
  for (const auto* form : {"--lines", "--csv", "--json"}) {
    const auto said = rig.run({"events", "a.tfevents", form});
    CHECK(said.out.find("\x1b[2J") == std::string::npos);
    CHECK(said.out.find("tag") != std::string::npos);
  }
}

namespace {

std::string start(std::int64_t step) {
  return record_of({.wall_time = 1000,
                    .step = step,
                    .what = format::session_log{.status = format::session_status::start, .checkpoint_path = {}, .message = {}},
                    .source_writer = {}});
}

}  // namespace

TEST_CASE("the event files of a directory are one run: values of steps that were made again count once", "[tool][events]") {
  const auto rig =
      tool_rig{.files = files_of({{"run/a.tfevents.1", start(1) + scalar("loss", 1, 1) + scalar("loss", 2, 2) + scalar("loss", 3, 3)},
                                  {"run/b.tfevents.2", start(2) + scalar("loss", 5, 2)}})};
  const std::string heading = "\"file\",\"wall_time\",\"step\",\"tag\",\"kind\",\"value\"\n";
  CHECK(
      rig.run({"events", "run", "--tag", "loss", "--csv"}).out ==
      heading +
          "\"run/a.tfevents.1\",\"1001\",\"1\",\"loss\",\"scalar\",\"1\"\n\"run/b.tfevents.2\",\"1002\",\"2\",\"loss\",\"scalar\",\"5\"\n");
  const auto summary = rig.run({"events", "run"});
  CHECK(summary.out.find(" in 2 event files\n") != std::string::npos);
  CHECK(summary.out.find("2 values of steps that were made again after a resume or a rollback left out; --all shows all\n") !=
        std::string::npos);
  const auto seen = json::parse(rig.run({"events", "run", "--json", "--summary"}).out);
  CHECK(seen["obsolete_values"] == 2);
  CHECK(seen["tags"].back()["count"] == 2);
  CHECK(documents(rig.run({"events", "run", "--tag", "loss", "--json", "--all"}).out).size() == 4);
  CHECK(documents(rig.run({"events", "run/a.tfevents.1", "--tag", "loss", "--json"}).out).size() == 3);
}

TEST_CASE("the runs below a directory are not mixed", "[tool][events]") {
  const auto rig = tool_rig{.files = files_of({{"runs/x/a.tfevents.1", start(1) + scalar("loss", 1, 5)},
                                               {"runs/y/a.tfevents.1", start(1) + scalar("loss", 2, 5)}})};
  const auto said = rig.run({"events", "runs", "-r", "--tag", "loss"});
  CHECK(said.out.find("RUN") != std::string::npos);
  CHECK(said.out.find("runs/x  loss  scalar      1") != std::string::npos);
  CHECK(said.out.find("runs/y  loss  scalar      1") != std::string::npos);
}

TEST_CASE("a record that cannot be decoded hides no other record from events, plot, stats and compare", "[tool][events][damage]") {
  const auto latin1 = [] {
    auto record = scalar("stat-e", 9, 2);
    const std::string message = record.substr(format::record_header_size, record.size() - format::record_overhead);
    auto changed = message;
    changed[changed.find("stat-e") + 4] = '\xe9';
    std::vector<std::byte> bytes;
    format::append_record(bytes, std::as_bytes(std::span(changed)));
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }();
  auto flipped = scalar("loss", 9, 2);
  flipped[flipped.size() - 6] ^= 1;
  auto large = record_of({.wall_time = 1002, .step = 2, .what = format::graph_def{std::string(9 << 20, 'g')}, .source_writer = {}});
  large[large.size() - 6] ^= 1;
  const auto start =
      record_of({.wall_time = 1002, .step = 2, .what = format::session_log{format::session_status::start, {}, {}}, .source_writer = {}});
  for (const auto& damaged : {latin1, flipped, large}) {
    const auto before = scalar("loss", 1, 1) + scalar("loss", 7, 2);
    const tool_rig rig{.files = files_of({{"run/events.out.tfevents.1", before + damaged + start + scalar("loss", 3, 3)}})};
    const auto where = "at byte " + std::to_string(before.size());

    const auto lines = rig.run({"events", "run", "--lines", "--tag", "loss"});
    CHECK(lines.how == exit_code::damaged);
    CHECK_THAT(lines.err, ContainsSubstring(where) && ContainsSubstring("the record is skipped"));
    CHECK_THAT(lines.out, ContainsSubstring("  3  loss") && ContainsSubstring("  1  loss"));
    CHECK_THAT(lines.out, !ContainsSubstring("  2  loss"));  // the START event after the damage makes it obsolete

    const auto stats = rig.run({"stats", "run", "--json"});
    CHECK(stats.how == exit_code::damaged);
    CHECK_THAT(stats.err, ContainsSubstring(where));
    CHECK(json::parse(stats.out)["last_step"] == 3);

    const auto plot = rig.run({"plot", "run", "--tag", "loss", "--ascii"});
    CHECK(plot.how == exit_code::damaged);
    CHECK_THAT(plot.out, ContainsSubstring("last 3"));

    const auto compared = rig.run({"compare", "run", "run", "--json"});
    CHECK(compared.how == exit_code::damaged);
    CHECK_THAT(compared.err, ContainsSubstring(where));
  }
}

TEST_CASE("many records that cannot be decoded are reported by a few messages and their number", "[tool][events][damage]") {
  std::vector<std::byte> bytes;
  for (int i = 0; i < 1000; ++i) { format::append_record(bytes, std::as_bytes(std::span("\xff\xff", 2))); }
  const std::string damaged(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const tool_rig rig{.files = files_of({{"run/events.out.tfevents.1", damaged + scalar("loss", 3, 3)}})};
  const auto said = rig.run({"events", "run", "--csv"});
  CHECK(said.how == exit_code::damaged);
  CHECK_THAT(said.out, ContainsSubstring(R"(,"3","loss",)"));
  CHECK(std::ranges::count(said.err, '\n') == 9);
  CHECK_THAT(said.err, ContainsSubstring("1000 records could not be read"));
}

TEST_CASE("the CSV of events has no cell that spreadsheets read as a formula", "[tool][events]") {
  const tool_rig rig{.files = files_of({{"run/events.out.tfevents.1", scalar("=1+1", -2, 3)}})};
  CHECK_THAT(rig.run({"events", "run", "--csv"}).out, ContainsSubstring(",\"3\",\"'=1+1\",\"scalar\",\"-2\"\n"));
}

TEST_CASE("times before 1970 and after 2262 are shown as dates", "[tool][events]") {
  CHECK(sw::tool::time_text(0) == "1970-01-01 00:00:00");
  CHECK(sw::tool::time_text(-0.5) == "1969-12-31 23:59:59");
  CHECK(sw::tool::time_text(-86401) == "1969-12-30 23:59:59");
  CHECK(sw::tool::time_text(10413792000) == "2300-01-01 00:00:00");
  CHECK(sw::tool::time_text(-62167219200) == "0000-01-01 00:00:00");
  CHECK(sw::tool::time_text(-62167219201) == "-");
  CHECK(sw::tool::time_text(1e300) == "-");
  CHECK(sw::tool::time_text(std::nan("")) == "-");
}
