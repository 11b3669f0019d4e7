// SPDX-License-Identifier: Apache-2.0
#include "fault/crafted/readers.hpp"

#include "fault/crafted/good_run.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/base/log.hpp>
#include <stepwell/checkpoint/find_checkpoints.hpp>
#include <stepwell/checkpoint/restore.hpp>
#include <tool/command_line.hpp>

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <streambuf>
#include <string_view>
#include <vector>

namespace stepwell::test {
namespace {

/// A stream buffer that discards its output but records whether it contained terminal control bytes.
class watched_output final : public std::streambuf {
public:
  [[nodiscard]] bool has_control() const noexcept { return has_control_; }

protected:
  int_type overflow(int_type letter) override {
    const auto byte = static_cast<char>(letter);
    return xsputn(&byte, 1) == 1 ? letter : traits_type::eof();
  }
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    for (const auto byte : std::string_view(text, static_cast<std::size_t>(size))) {
      const auto value = static_cast<unsigned char>(byte);
      has_control_ = has_control_ || (value < 0x20 && value != '\n') || value == 0x7f || (before_ == 0xc2 && value < 0xa0);
      before_ = value;
    }
    return size;
  }

private:
  bool has_control_ = false;
  unsigned char before_ = 0;
};

class reader_run {
public:
  explicit reader_run(std::string directory) : directory_(std::move(directory)) {}

  /// Runs `act`, which may throw `stepwell::error`.
  template<class Act>
  bool run(std::string_view name, const Act& act) {
    try {
      act();
      return true;
    } catch (const error& failure) {
      if (std::ranges::any_of(std::string_view(failure.what()), [](char byte) { return byte != '\n' && (byte & '\xe0') == 0; })) {
        note(name, "what() with a control byte");
      }
    } catch (const std::exception& failure) { note(name, std::string("an exception of another type: ") + failure.what()); }
    return false;
  }

  void tool(std::vector<std::string> words) {
    watched_output out_bytes;
    watched_output err_bytes;
    std::ostream out(&out_bytes);
    std::ostream err(&err_bytes);
    tool::console to{.out = out, .err = err};
    const auto name = words.front() + " " + words.back();
    static_cast<void>(tool::run(std::move(words), to));
    if (out_bytes.has_control() || err_bytes.has_control()) { note(name, "a control byte for the terminal"); }
  }

  void note(std::string_view name, std::string_view what) { violations_ += std::string(name) + ": " + std::string(what) + "; "; }
  [[nodiscard]] const std::string& directory() const noexcept { return directory_; }
  [[nodiscard]] const std::string& violations() const noexcept { return violations_; }

private:
  std::string directory_;
  std::string violations_;
};

/// Returns the size of all files, including holes.
std::uintmax_t bytes_in(const std::string& directory) {
  std::uintmax_t sum = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    std::error_code failure;
    const auto size = entry.is_regular_file(failure) ? entry.file_size(failure) : 0;
    sum += failure ? 0 : size;
  }
  return sum;
}

void run_library(reader_run& all) {
  const auto& directory = all.directory();
  all.run("latest_checkpoint", [&] { static_cast<void>(latest_checkpoint(directory)); });
  const bool is_found = all.run("latest_whole_checkpoint", [&] {
    auto newest = latest_whole_checkpoint(directory);
    crafted_model model;
    all.run("restore", [&] { restore(model.variables(), newest.value()); });
    all.run("step", [&] { static_cast<void>(newest->step()); });
  });
  if (!is_found) { all.note("latest_whole_checkpoint", "no checkpoint found, though two are good"); }
  all.run("saver", [&] {
    saver keeper(directory, {.sync = false});
    static_cast<void>(keeper.restore_newest());
  });
  all.run("csv_writer", [&] { summary::csv_writer(directory + "/metrics.csv").add_scalar("loss", 1.0F, 21); });
  all.run("jsonl_writer", [&] { summary::jsonl_writer(directory + "/metrics.jsonl").add_scalar("loss", 1.0F, 21); });
  all.run("writer", [&] { summary::writer(directory).add_scalar("loss", 1.0F, 21); });
}

void run_tool(reader_run& all) {
  const auto& directory = all.directory();
  const auto newest = directory + "/model.ckpt-4";
  all.tool({"inspect", directory});
  all.tool({"inspect", "--json", newest});
  all.tool({"inspect", newest, "--print", "texts"});
  all.tool({"verify", directory});
  all.tool({"events", directory});
  for (const auto* form : {"--lines", "--csv", "--json"}) { all.tool({"events", directory, form}); }
  all.tool({"plot", directory, "--tag", "loss"});
  all.tool({"stats", directory});
  all.tool({"prune", directory});
  if (bytes_in(directory) > (std::uintmax_t{1} << 20)) { return; }  // the commands below read whole tensors and take time for each element
  all.tool({"inspect", newest, "--stats"});
  all.tool({"export", newest, "--npz", directory + "/out.npz"});
}

}  // namespace

std::string run_readers(const std::string& directory) {
  const auto before = set_log_sink([](log_level, std::string_view) {});
  reader_run all(directory);
  run_tool(all);  // first, because it changes nothing and must see the files as they were crafted
  run_library(all);
  set_log_sink(before);
  return all.violations();
}

}  // namespace stepwell::test
