// SPDX-License-Identifier: Apache-2.0
//
// All readers of checkpoints and event files, all commands of the tool that read them, and the board, beside another process that saves a
// checkpoint at each step and keeps one. None of them may take a change of the directory for damage.
//
// STEPWELL_READER_CALLS sets the number of calls of each reader (default: 20). An argument selects the readers whose names contain it. The
// exit code is 0 if all calls gave the right answer.
#include "stress/rounds.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/checkpoint/detail/checkpoint_directory.hpp>
#include <stepwell/checkpoint/find_checkpoints.hpp>
#include <stepwell/creation/scaffold.hpp>
#include <stepwell/hooks/best_checkpoint_hook.hpp>
#include <stepwell/hooks/summary_saver_hook.hpp>
#include <stepwell/model/model.hpp>
#include <stepwell/training/evaluation.hpp>
#include <stepwell/training/monitored_training_session.hpp>
#include <tool/command_line.hpp>

#if STEPWELL_HAS_BOARD
#include "support/http_client.hpp"

#include <stepwell/board/board_hook.hpp>
#endif

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace sw = stepwell;

namespace {

struct model_t {
  struct result {
    float loss;
  };
  std::vector<float> weights = std::vector<float>(1000);
  std::int64_t count = 0;

  result step() {
    weights[static_cast<std::size_t>(++count) % weights.size()] += 1;
    return {1.0F / static_cast<float>(count)};
  }
  sw::variable_list variables() { return sw::variables({{"weights", weights}, {"count", count}}); }
};

/// Trains in `directory` until the parent process has ended. Each step improves the best state.
int train(const std::string& directory) {
  const auto parent = ::getppid();
  model_t model;
  sw::training_options options;
  options.checkpoint_dir = directory;
  options.saves.save_steps = 1;
  options.summaries.save_steps = 10;
  options.saves.saver.max_to_keep = 1;
  options.saves.saver.sync = false;
  auto session =
      sw::monitored_training_session(model, std::move(options), sw::summaries(sw::summary::scalar("loss", &model_t::result::loss)),
                                     sw::best_checkpoint_hook{{.saver = {.sync = false}}, &model_t::result::loss});
  while (::getppid() == parent) { session.run(); }
  return 0;
}

/// Runs a command of the tool, and returns its exit code and all that it has printed.
std::pair<sw::tool::exit_code, std::string> run_tool(const std::vector<std::string>& line, std::string* errors = nullptr) {
  std::ostringstream out;
  std::ostringstream err;
  sw::tool::console to{.out = out, .err = err, .files = sw::io::posix_file_system(), .time = sw::system_clock()};
  const auto how = sw::tool::run(line, to);
  if (errors != nullptr) { *errors = err.str(); }
  return {how, out.str() + err.str()};
}

bool has_summary(const std::string& directory) { return run_tool({"events", directory}).second.find("loss") != std::string::npos; }

/// A process that trains in a directory of its own. The destructor kills it.
class trainer {
public:
  explicit trainer(const char* program) : process_(::fork()) {
    if (process_ == 0) {
      ::execl("/proc/self/exe", program, "--train", path().c_str(), static_cast<char*>(nullptr));
      ::_exit(1);
    }
    const auto has_all = [this] { return sw::latest_checkpoint(path()) && sw::latest_checkpoint(path() + "/best") && has_summary(path()); };
    while (process_ > 0 && !has_all()) {
      if (::waitpid(process_, nullptr, WNOHANG) != 0) { throw std::runtime_error("the training ended"); }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  trainer(const trainer&) = delete;
  trainer& operator=(const trainer&) = delete;
  ~trainer() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }

  [[nodiscard]] std::string path() const { return directory_.path(); }

private:
  sw::test::temporary_directory directory_;
  pid_t process_;
};

void promise(bool kept, const std::string& what) {
  if (!kept) { throw std::logic_error(what); }
}

using reader = std::pair<std::string, std::function<void(const std::string& directory)>>;

/// Returns a reader that runs a command of the tool.
reader command(std::string name, std::vector<std::string> arguments, std::string expected) {
  return {name, [arguments = std::move(arguments), expected = std::move(expected)](const std::string& directory) {
            auto line = arguments;
            for (auto& word : line) {
              if (const auto at = word.find("DIR"); at != std::string::npos) { word.replace(at, 3, directory); }
            }
            std::string errors;
            const auto [how, text] = run_tool(line, &errors);
            const bool is_right = how == sw::tool::exit_code::good || (line.front() == "inspect" && how == sw::tool::exit_code::differs);
            promise(is_right && errors.empty(), "exit code " + std::to_string(static_cast<int>(how)) + ": " + text);
            promise(text.find(expected) != std::string::npos, "without \"" + expected + "\": " + text);
            for (const auto* wrong : {"DAMAGED", "damaged", "orphan  ", "left by a killed save"}) {
              promise(text.find(wrong) == std::string::npos, text);
            }
          }};
}

#if STEPWELL_HAS_BOARD
/// A board of the directory that a reader reads. It stays until the directory is another one, and follows the files meanwhile.
struct served_directory {
  std::string path;
  std::unique_ptr<sw::directory_board> board;
  std::uint16_t port = 0;

  void serve(const std::string& directory) {
    if (path == directory) { return; }
    path = directory;
    board = std::make_unique<sw::directory_board>(
        sw::board_options{.port = 0, .runs_directory = directory, .on_ready = [](const std::string& /*url*/) {}});
    const auto url = board->url();
    port = static_cast<std::uint16_t>(std::stoi(url.substr(url.find(':', std::string_view("http://").size()) + 1)));
  }
};

/// Returns a reader that asks a board.
reader request(const std::string& target, std::string expected) {
  return {"the board: " + target,
          [target, expected = std::move(expected), served = std::make_shared<served_directory>()](const std::string& directory) {
            served->serve(directory);
            const auto text = sw::test::http_client(served->port).ask("GET", target);
            promise(text.starts_with("HTTP/1.1 200 ") && text.find(expected) != std::string::npos, "without \"" + expected + "\": " + text);
          }};
}
#endif

std::vector<reader> all_readers(const std::string& output) {
  return {
      {"latest_checkpoint", [](const std::string& directory) { promise(sw::latest_checkpoint(directory).has_value(), "none"); }},
      {"latest_whole_checkpoint",
       [](const std::string& directory) { promise(sw::latest_whole_checkpoint(directory).has_value(), "none"); }},
      {"open_newest and restore",
       [](const std::string& directory) {
         model_t model;
         sw::restore(model, sw::open_newest(directory).value());
       }},
      {"the files that the board shows",
       [](const std::string& directory) {
         promise(!sw::detail::find_checkpoint_files(*sw::io::posix_file_system(), directory).empty(), "none");
       }},
      {"list_checkpoints",
       [](const std::string& directory) { static_cast<void>(sw::get_checkpoint_mtimes(sw::list_checkpoints(directory))); }},
      {"best_checkpoint", [](const std::string& directory) { promise(sw::best_checkpoint(directory).has_value(), "none"); }},
      {"wait_for_new_checkpoint",
       [](const std::string& directory) {
         promise(sw::wait_for_new_checkpoint(directory, std::nullopt, {.timeout = 0}).has_value(), "none");
       }},
      {"checkpoints_iterator",
       [](const std::string& directory) {
         int count = 0;
         for ([[maybe_unused]] const auto& prefix : sw::checkpoints_iterator(directory, {.wait = {.timeout = 0}, .all_listed = true})) {
           if (++count == 3) { break; }
         }
         promise(count > 0, "none");
       }},
      {"checkpoint_reader of one checkpoint",
       [](const std::string& directory) {
         try {
           sw::checkpoint_reader(sw::latest_checkpoint(directory).value()).verify();
         } catch (const sw::not_found_error&) {}  // NOLINT(bugprone-empty-catch): deleted since
       }},
      {"init_from_checkpoint",
       [](const std::string& directory) {
         model_t model;
         sw::init_from_checkpoint(directory, {{"weights", "weights"}}).apply(model.variables());
       }},
      {"evaluate_repeatedly",
       [](const std::string& directory) {
         model_t model;
         int made = 0;
         for ([[maybe_unused]] const auto& found : sw::evaluate_repeatedly(
                  model, directory, [] { return sw::no_source{}; },
                  {.evaluation = {.num_evals = 1}, .eval_interval_secs = 0, .max_number_of_evaluations = 1, .timeout = 0})) {
           ++made;
         }
         promise(made == 1, "no evaluation");
       }},
      command("verify", {"verify", "DIR"}, "ok "),
      command("verify --json", {"verify", "DIR", "--json"}, "\"whole\":true"),
      command("verify of the best", {"verify", "DIR/best"}, "ok "),
      command("inspect", {"inspect", "DIR"}, "weights"),
      command("inspect --stats --json", {"inspect", "DIR", "--stats", "--json"}, "weights"),
      command("inspect --print", {"inspect", "DIR", "--print", "count"}, ""),
      command("inspect --diff", {"inspect", "DIR", "--diff", "DIR/best"}, ""),
      command("export --npz", {"export", "DIR", "--npz", output + "/all.npz"}, "wrote"),
      command("export --npy", {"export", "DIR", "--npy", output + "/all"}, "wrote"),
      command("export --safetensors", {"export", "DIR", "--safetensors", output + "/all.safetensors"}, "wrote"),
      command("stats", {"stats", "DIR"}, "model.ckpt-"),
      command("stats --json", {"stats", "DIR", "--json"}, "model.ckpt-"),
      command("prune", {"prune", "DIR", "--max-to-keep", "1"}, "model.ckpt-"),
      command("prune --json", {"prune", "DIR", "--max-to-keep", "1", "--json"}, "model.ckpt-"),
      command("events", {"events", "DIR"}, "loss"),
      command("events --json", {"events", "DIR", "--json"}, "loss"),
      command("events --tag", {"events", "DIR", "--tag", "loss"}, "loss"),
      command("plot", {"plot", "DIR", "--tag", "loss", "--width", "80"}, "loss"),
      command("compare", {"compare", "DIR", "DIR/."}, "loss"),
      command("compare --json", {"compare", "DIR", "DIR/.", "--json"}, "loss"),
#if STEPWELL_HAS_BOARD
      request("/api/runs", "\"run\":\".\""),
      request("/api/tags?run=.", "loss"),
      request("/api/curve?run=.&tag=loss", ""),
      request("/api/marks?run=.", "marks"),
      request("/api/checkpoints?run=.", "model.ckpt-"),
#endif
  };
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 3 && std::string_view(arguments[1]) == "--train") { return train(arguments[2]); }
  constexpr std::uint64_t calls_of_one_trainer = 200;  // the event files of a training grow
  const std::string selected = count == 2 ? arguments[1] : "";
  const auto calls = sw::test::stress_setting("STEPWELL_READER_CALLS", 20);
  const sw::test::temporary_directory output;
  int result = 0;
  for (const auto& [name, read] : all_readers(output.path())) {
    if (name.find(selected) == std::string::npos) { continue; }
    std::uint64_t wrong = 0;
    const auto complain = [&](const std::string& what) {
      if (++wrong == 1) { std::fprintf(stderr, "%s: %s\n", name.c_str(), what.c_str()); }
    };
    for (std::uint64_t done = 0; done < calls;) {
      const trainer other(arguments[0]);
      for (std::uint64_t i = 0; i < calls_of_one_trainer && done < calls; ++i, ++done) {
        const sw::test::log_capture log;
        try {
          read(other.path());
          for (const auto& line : log.messages()) {
            if (line.level >= sw::log_level::warning) { complain(line.text); }
          }
        } catch (const std::exception& failure) { complain(failure.what()); }
      }
    }
    std::printf("%-40s %llu of %llu calls wrong\n", name.c_str(), static_cast<unsigned long long>(wrong),
                static_cast<unsigned long long>(calls));
    std::fflush(stdout);
    if (wrong != 0) { result = 1; }
  }
  return result;
}
