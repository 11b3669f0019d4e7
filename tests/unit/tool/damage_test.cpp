// SPDX-License-Identifier: Apache-2.0
//
// Runs every command of the tool on small files that are cut at every length and changed in every byte. Each command
// must print an error and return an exit code. It must not crash and must not accept a damaged file.
#include "support/file_text.hpp"
#include "support/memory_files.hpp"
#include "support/paths.hpp"
#include "support/sanitized.hpp"
#include "tool_run.hpp"

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sw = stepwell;
using sw::test::memory_files;
using sw::test::tool_rig;
using sw::tool::exit_code;

namespace {

struct damaged_files {
  std::shared_ptr<memory_files> files = std::make_shared<memory_files>();
  tool_rig rig{.files = files};

  explicit damaged_files(std::map<std::string, std::string> whole) { files->content = std::move(whole); }

  /// Calls `check` with a description of the damage, for each length of the file and for each change of a byte. Under a
  /// sanitizer, which is many times slower, it uses every second length and one change of each byte.
  template<class Check>
  void each_damage(const std::string& path, const Check& check) {
    constexpr std::array changes{0x01, 0x80, 0xff};
    const auto whole = files->content.at(path);
    for (std::size_t size = 0; size < whole.size(); size += sw::test::is_sanitized ? 2 : 1) {
      files->content[path] = whole.substr(0, size);
      check("cut to " + std::to_string(size), size, true);
    }
    for (std::size_t at = 0; at < whole.size(); ++at) {
      for (std::size_t i = 0; i < changes.size(); ++i) {
        if (sw::test::is_sanitized && i != at % changes.size()) { continue; }
        const int change = changes[i];
        files->content[path] = whole;
        files->content[path][at] = static_cast<char>(whole[at] ^ change);
        check("byte " + std::to_string(at) + " changed by " + std::to_string(change), at, false);
      }
    }
    files->content[path] = whole;
  }
};

std::map<std::string, std::string> small_checkpoint() {
  std::map<std::string, std::string> files;
  for (const std::string name : {"small.index", "small.data-00000-of-00002", "small.data-00001-of-00002"}) {
    files["run/" + name] = sw::test::file_text(sw::test::golden("/checkpoint/" + name));
  }
  return files;
}

/// Returns true if a failure printed an error, and a success printed none.
bool is_consistent(const sw::test::said& said) {
  return (said.how == exit_code::good) == said.err.empty() && said.how != exit_code::usage && said.how != exit_code::held;
}

}  // namespace

TEST_CASE("a damaged checkpoint is never called whole by verify, whatever byte it is", "[tool][damage]") {
  damaged_files here(small_checkpoint());
  REQUIRE(here.rig.run({"verify", "run/small"}).how == exit_code::good);
  for (const auto& [path, whole] : small_checkpoint()) {
    here.each_damage(path, [&](const std::string& what, std::size_t at, bool) {
      const auto said = here.rig.run({"verify", "run/small"});
      // The 48-byte footer of an index contains zero padding without meaning. Only the block positions and the magic
      // number matter.
      const bool may_be_filling = path.ends_with(".index") && at + 48 >= whole.size() && at + 8 < whole.size();
      if (!is_consistent(said) || (said.how == exit_code::good && !may_be_filling)) {
        FAIL(path << ": " << what << "\n" << said.out << said.err);
      }
    });
  }
  SUCCEED();
}

TEST_CASE("inspect of a damaged checkpoint fails with a message, or shows what is still known to be good", "[tool][damage]") {
  damaged_files here(small_checkpoint());
  const auto good = here.rig.run({"inspect", "run/small", "--stats"}).out;
  for (const auto& [path, whole] : small_checkpoint()) {
    here.each_damage(path, [&](const std::string& what, std::size_t, bool) {
      for (const auto& words : std::vector<std::vector<std::string>>{{"inspect", "run/small"},
                                                                     {"inspect", "run/small", "--json"},
                                                                     {"inspect", "run/small", "--stats"},
                                                                     {"inspect", "run", "--print", "layer/weights"},
                                                                     {"inspect", "run", "--diff", "run/small"},
                                                                     {"verify", "run", "--json"}}) {
        const auto said = here.rig.run(words);
        const bool is_stats = words.size() == 3 && words.back() == "--stats";
        if (!is_consistent(said) || (is_stats && said.how == exit_code::good && said.out != good)) {
          FAIL(path << ": " << what << " " << words.back() << "\n" << said.out << said.err);
        }
      }
    });
  }
  SUCCEED();
}

TEST_CASE("a damaged event file is never read to its end without complaint", "[tool][damage]") {
  const std::string path = "run/events.out.tfevents.1";
  damaged_files here(std::map<std::string, std::string>{{path, sw::test::file_text(sw::test::golden("/format/events.bin"))}});
  std::map<std::string, std::size_t> whole;
  for (const std::string form : {"--json", "--csv", "--lines"}) { whole[form] = here.rig.run({"events", "run", form}).out.size(); }
  here.each_damage(path, [&](const std::string& what, std::size_t, bool is_cut) {
    for (const auto& [form, size] : whole) {
      const auto said = here.rig.run({"events", "run", form});
      const bool is_shorter = is_cut && said.out.size() < size;  // cut between two records
      if (!is_consistent(said) || (said.how == exit_code::good && !is_shorter)) { FAIL(what << "\n" << said.out << said.err); }
    }
    const auto summary = here.rig.run({"events", "run"});
    if (!is_consistent(summary)) { FAIL(what << "\n" << summary.out << summary.err); }
  });
  SUCCEED();
}

TEST_CASE("plot and stats of damaged event files end with an exit code", "[tool][damage]") {
  const std::string path = "run/events.out.tfevents.1";
  damaged_files here(std::map<std::string, std::string>{{path, sw::test::file_text(sw::test::golden("/format/events.bin"))}});
  here.each_damage(path, [&](const std::string& what, std::size_t, bool) {
    const auto plot = here.rig.run({"plot", "run", "--tag", "loss", "--ascii"});
    const auto stats = here.rig.run({"stats", "run"});
    if (plot.how == exit_code::usage || !is_consistent(stats)) { FAIL(what << "\n" << plot.err << stats.err); }
  });
  SUCCEED();
}
