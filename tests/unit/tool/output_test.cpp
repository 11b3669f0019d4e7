// SPDX-License-Identifier: Apache-2.0
#include "support/file_text.hpp"
#include "support/temporary_directory.hpp"
#include "tool_run.hpp"

#include <stepwell/base/variable.hpp>
#include <stepwell/checkpoint/detail/checkpoint_writer.hpp>
#include <stepwell/checkpoint/saver.hpp>
#include <stepwell/checkpoint/snapshot.hpp>
#include <stepwell/summary/writer.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace sw = stepwell;
using sw::test::temporary_directory;
using sw::test::tool_rig;
using sw::tool::exit_code;

namespace {

bool is_ascii(const std::string& text) {
  return std::ranges::all_of(text, [](char letter) { return static_cast<unsigned char>(letter) < 0x80; });
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Writes two checkpoints and an event file with names that are not ASCII.
void write_run(const std::string& directory, float value) {
  sw::saver saver(directory, {.basename = "mπ", .max_to_keep = sw::none});
  for (const std::int64_t step : {1, 2}) {
    std::vector<float> weights{value, static_cast<float>(step)};
    const sw::variable_list variables{sw::variable_ref("w/π", weights)};
    sw::snapshot_pool pool(sw::snapshot_size(variables), 1);
    saver.save_and_wait(sw::snapshot::capture(pool.acquire(), variables, step));
  }
  saver.close();
  const std::vector<std::string> words{"zwölf"};
  sw::detail::checkpoint_writer strings(directory + "/wörter");
  strings.add_strings("s/π", {1}, words);
  strings.commit();
  sw::test::write_file_text(directory + "/.tmp-1-1-mπ-4.index", "left by a killed save");
  sw::test::write_file_text(directory + "/mπ-9.data-00000-of-00001", "no index");
  sw::summary::writer writer(directory, {.clock = std::make_shared<sw::manual_clock>(), .filename_suffix = ".π"});
  writer.add_hparams({{"größe", static_cast<double>(value)}, {"optimierer", std::string(value > 1 ? "größer" : "kleiner")}});
  for (std::int64_t step = 1; step <= 3; ++step) { writer.add_scalar("loss/π", value, step); }
  writer.add_text("note", "für π", 3);
  writer.close();
}

}  // namespace

TEST_CASE("all commands print only ASCII if the locale has no more, except as JSON and CSV", "[tool][output]") {
  const temporary_directory directory;
  const auto a = directory / "α";
  const auto b = directory / "b";
  write_run(a, 1);
  write_run(b, 2);
  const tool_rig rig{.ascii = true};
  const std::vector<std::vector<std::string>> lines = {
      {"events", a},
      {"events", directory.path(), "--recursive"},
      {"events", b, "--lines"},
      {"events", b, "--tag", "nothing"},
      {"compare", a, b},
      {"compare", a, b, "--tag", "nothing"},
      {"plot", a, b},
      {"stats", a},
      {"inspect", a + "/mπ-2"},
      {"inspect", a + "/mπ-2", "--stats"},
      {"inspect", a + "/mπ-2", "--print", "w/π"},
      {"inspect", b + "/wörter", "--print", "s/π"},
      {"inspect", a + "/mπ-2", "--diff", b + "/mπ-2"},
      {"inspect", a + "/mπ-2", "--diff", a + "/mπ-2"},
      {"inspect", a + "/ππ"},
      {"verify", a},
      {"prune", b, "--basename", "mπ", "--max-to-keep", "1"},
      {"export", b + "/mπ-2", "--npz", b + "/ß.npz"},
      {"export", b + "/wörter", "--npz", b + "/ß.npz", "--tensor", "π"},
      {"πrune"},
      {"events", "--λ", a},
  };
  for (const auto& line : lines) {
    const auto said = rig.run(line);
    INFO(line.front() << ' ' << line.back() << '\n' << said.out << said.err);
    CHECK(is_ascii(said.out + said.err));
    CHECK(contains(said.out + said.err, "\\xc"));
  }
  for (const std::vector<std::string>& line : {std::vector<std::string>{"events", a, "--json"},
                                               {"events", a, "--csv"},
                                               {"events", a, "--summary", "--json"},
                                               {"compare", a, b, "--json"},
                                               {"inspect", a + "/mπ-2", "--json"},
                                               {"inspect", b + "/wörter", "--print", "s/π", "--json"},
                                               {"verify", a, "--json"},
                                               {"stats", a, "--json"},
                                               {"prune", b, "--basename", "mπ", "--json"}}) {
    INFO(line.front() << ' ' << line.back());
    CHECK(contains(rig.run(line).out, "π"));
  }
  const auto table = rig.run({"compare", a, b, "--tag", "loss/*"}).out;
  INFO(table);
  CHECK(contains(table, "\nloss/\\xcf\\x80  " + directory.path() + "/\\xce\\xb1 "));
  CHECK(contains(table, "\n               " + directory.path() + "/b        "));  // the columns are as wide as the escaped names
  CHECK(contains(tool_rig().run({"compare", a, b}).out, "\nloss/π  " + directory.path() + "/α "));
  CHECK(contains(tool_rig().run({"events", b, "--lines"}).out, "für π"));
}
