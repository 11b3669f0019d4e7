// SPDX-License-Identifier: Apache-2.0
#include "support/temporary_directory.hpp"
#include "tool_run.hpp"

#include <stepwell/summary/writer.hpp>

#include <nlohmann/json.hpp>

namespace sw = stepwell;
using nlohmann::json;
using sw::test::run_tool;
using sw::test::temporary_directory;
using sw::tool::exit_code;

namespace {

void write_run(const std::string& directory, double rate, const std::vector<double>& losses) {
  sw::summary::writer writer(directory, {.time = std::make_shared<sw::manual_clock>()});
  writer.add_session_log(sw::format::session_status::start, 1);
  writer.add_hparams({{"rate", rate}, {"units", 32}});
  for (std::size_t i = 0; i < losses.size(); ++i) {
    writer.add_scalar("loss", losses[i], static_cast<std::int64_t>(i) + 1);
    writer.add_scalar("global_step/sec", losses[i], static_cast<std::int64_t>(i) + 1);
    writer.add_scalar("eval/accuracy", 1 - losses[i], static_cast<std::int64_t>(i) + 1);
  }
  writer.close();
}

}  // namespace

TEST_CASE("compare shows last and best values, and the hyper-parameters that differ", "[tool][compare]") {
  const temporary_directory directory;
  write_run(directory / "a", 0.5, {1, 0.25, 0.5});
  write_run(directory / "b", 0.125, {1, 0.5, 0.125});
  const auto said = run_tool({"compare", directory / "a", directory / "b"});
  CHECK(said.how == exit_code::good);
  CHECK(said.out.find("HYPER-PARAMETER") != std::string::npos);
  CHECK(said.out.find("rate") != std::string::npos);
  CHECK(said.out.find("units") == std::string::npos);  // the same in both
  const auto seen = json::parse(run_tool({"compare", directory / "a", directory / "b", "--json"}).out);
  CHECK(seen["tags"][0]["tag"] == "eval/accuracy");
  CHECK(seen["tags"][0]["best"] == "max");
  CHECK(seen["tags"][0]["runs"][0]["best"]["value"] == 0.75);
  CHECK(seen["tags"][1]["tag"] == "global_step/sec");
  CHECK(seen["tags"][1]["best"] == "max");
  CHECK(seen["tags"][2]["best"] == "min");
  CHECK(seen["tags"][2]["runs"][0]["last"]["value"] == 0.5);
  CHECK(seen["tags"][2]["runs"][0]["best"]["step"] == 2);
  CHECK(seen["tags"][2]["runs"][1]["best"]["value"] == 0.125);
  CHECK(seen["hparams"].size() == 1);
  CHECK(seen["hparams"][0]["runs"] == json{"0.5", "0.125"});
}

TEST_CASE("compare ignores the values of steps that were made again", "[tool][compare]") {
  const temporary_directory directory;
  write_run(directory / "a", 0.5, {1, 0.25});
  {
    sw::summary::writer writer(directory / "a", {.time = std::make_shared<sw::manual_clock>()});
    writer.add_session_log(sw::format::session_status::start, 2);
    writer.add_scalar("loss", 0.75, 2);
    writer.close();
  }
  write_run(directory / "b", 0.5, {1});
  const auto said = run_tool({"compare", directory / "a", directory / "b", "--tag", "loss", "--json"});
  const auto seen = json::parse(said.out);
  CHECK(seen["tags"].size() == 1);
  CHECK(seen["tags"][0]["runs"][0]["best"]["value"] == 0.75);
  CHECK(seen["hparams"].empty());
  CHECK(run_tool({"compare", directory / "a", directory / "b"}).out.find("the hyper-parameters are equal\n") != std::string::npos);
}

TEST_CASE("compare takes the direction of a metric from its name, or from the command line", "[tool][compare]") {
  const temporary_directory directory;
  write_run(directory / "a", 0.5, {1, 0.25});
  write_run(directory / "b", 0.5, {1, 0.5});
  const auto seen = json::parse(run_tool({"compare", directory / "a", directory / "b", "--higher-is-better", "lo*", "--json"}).out);
  CHECK(seen["tags"][2]["best"] == "max");
  CHECK(seen["tags"][2]["runs"][0]["best"]["value"] == 1);
  CHECK(run_tool({"compare", directory / "a", directory / "b", "--tag", "nothing"}).how == exit_code::unreadable);
}
