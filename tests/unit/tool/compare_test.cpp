// SPDX-License-Identifier: Apache-2.0
#include "support/temporary_directory.hpp"
#include "tool_run.hpp"

#include <stepwell/summary/writer.hpp>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace sw = stepwell;
using nlohmann::json;
using sw::test::run_tool;
using sw::test::temporary_directory;
using sw::tool::exit_code;

namespace {

void write_run(const std::string& directory, double rate, const std::vector<double>& losses) {
  sw::summary::writer writer(directory, {.clock = std::make_shared<sw::manual_clock>()});
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
    sw::summary::writer writer(directory / "a", {.clock = std::make_shared<sw::manual_clock>()});
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

TEST_CASE("compare takes a loss for a loss and a score for a score, and stars nothing else", "[tool][compare]") {
  const temporary_directory directory;
  const std::vector<std::string> low = {"dice_loss",       "iou_loss",       "reward_loss",  "map_error",  "F1-Loss",
                                        "accuracyError",   "acc_perplexity", "val/loss",     "score/rmse", "losses/dice",
                                        "accuracy_errors", "eval/wer",       "train/loss_1", "recall.mse"};
  const std::vector<std::string> high = {"eval/top5_accuracy", "mAP",  "meanReward",     "auc_1",   "f1",
                                         "global_step/sec",    "dice", "glossary_score", "f1_score"};
  const std::vector<std::string> none = {"learning_rate", "grad_norm", "epoch", "memory", "glossy", "terror"};
  for (const std::string run : {"a", "b"}) {
    sw::summary::writer writer(directory / run, {.clock = std::make_shared<sw::manual_clock>()});
    for (const auto* tags : {&low, &high, &none}) {
      for (const auto& tag : *tags) { writer.add_scalar(tag, run == "a" ? 1.0 : 2.0, 1); }
    }
    writer.close();
  }
  const auto seen = json::parse(run_tool({"compare", directory / "a", directory / "b", "--json"}).out);
  CHECK(seen["tags"].size() == low.size() + high.size() + none.size());
  for (const auto& one : seen["tags"]) {
    const auto tag = one["tag"].get<std::string>();
    INFO(tag);
    const auto is_in = [&](const auto& list) { return std::ranges::find(list, tag) != list.end(); };
    if (is_in(none)) {
      CHECK(one["best"].is_null());
      CHECK_FALSE(one["runs"][0].contains("best"));
    } else {
      CHECK(one["best"] == (is_in(low) ? "min" : "max"));
    }
  }
  const auto said = run_tool({"compare", directory / "a", directory / "b", "--tag", "learning_rate"});
  CHECK(said.how == exit_code::good);
  CHECK(said.out.find('*') == std::string::npos);
  const auto chosen = run_tool({"compare", directory / "a", directory / "b", "--tag", "grad_*", "--tag", "f1*", "--lower-is-better",
                                "grad_norm", "--lower-is-better", "f1", "--json"});
  const auto tags = json::parse(chosen.out)["tags"];
  CHECK(tags[0]["best"] == "min");  // f1
  CHECK(tags[1]["best"] == "max");  // f1_score
  CHECK(tags[2]["best"] == "min");  // grad_norm
}

TEST_CASE("a direction of compare that matches no tag, or both directions of a tag, is an error", "[tool][compare]") {
  const temporary_directory directory;
  write_run(directory / "a", 0.5, {1, 0.25});
  write_run(directory / "b", 0.5, {1, 0.5});
  for (const std::string option : {"--higher-is-better", "--lower-is-better"}) {
    const auto said = run_tool({"compare", directory / "a", directory / "b", "--tag", "loss", option, "evla/*"});
    CHECK(said.how == exit_code::unreadable);
    CHECK(said.out.empty());
    CHECK(said.err.find("evla/*") != std::string::npos);
    CHECK(said.err.find("eval/accuracy") != std::string::npos);  // the tags that exist
    CHECK(run_tool({"compare", directory / "a", directory / "b", "--tag", "loss", option, "eval/*"}).how == exit_code::good);
  }
  const auto both = run_tool({"compare", directory / "a", directory / "b", "--higher-is-better", "lo*", "--lower-is-better", "loss"});
  CHECK(both.how == exit_code::usage);
  CHECK(both.out.empty());
}
