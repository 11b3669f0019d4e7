// SPDX-License-Identifier: Apache-2.0
//
// live_under_faults SCENARIO RESOURCE FIRST once|always DIRECTORY
//
// Runs SCENARIO while request number FIRST for RESOURCE (threads, descriptors or memory) is refused, alone or with all
// later requests. Then runs it again without faults, in the same process and directory. Prints one line:
//
//   done|error THREADS DESCRIPTORS MEMORY OPEN TEXT
//
// The numbers are the requests of the first run and the descriptors that are open at the end; TEXT is the error
// message. If FIRST is 0, no request is refused. Exit code 0; 3 if the first run ended with an exception that is not a
// stepwell::error, 4 if the second one failed. SIGALRM ends a scenario that hangs.
#include "fault/exhausted_resources.hpp"
#include "fault/scenarios.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/base/log.hpp>

#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>

namespace sw = stepwell;
using sw::test::resource;

namespace {

constexpr unsigned patience_seconds = 120;

resource resource_called(std::string_view name) {
  if (name == "threads") { return resource::threads; }
  return name == "descriptors" ? resource::descriptors : resource::memory;
}

std::ptrdiff_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::distance(begin(all), end(all));
}

struct outcome {
  std::string how = "done";
  std::string text;
  int exit_code = 0;
};

outcome outcome_of(const sw::test::scenario& run, const std::string& directory) {
  try {
    run(directory);
    return {};
  } catch (const sw::error& typed) { return {"error", typed.what(), 0}; } catch (const std::exception& other) {
    return {"foreign", std::string(typeid(other).name()) + ": " + other.what(), 3};
  }
}

}  // namespace

int main(int count, char** words) {
  if (count != 6) { return 2; }
  ::alarm(patience_seconds);
  if (std::getenv("STEPWELL_FAULT_LOG") == nullptr) {
    sw::set_log_sink([](sw::log_level, std::string_view) {});
  }
  const auto run = sw::test::scenario_called(words[1]);
  if (!run) { return 2; }
  const std::string directory = words[5];
  sw::test::refuse(resource_called(words[2]), std::strtoull(words[3], nullptr, 10), std::string_view(words[4]) == "always");
  auto found = outcome_of(run, directory);
  const bool was_refused = sw::test::refuse_no_more();
  if (found.how == "error" && !was_refused) { found.exit_code = 3; }
  if (found.exit_code == 0) {
    if (const auto again = outcome_of(run, directory); again.how != "done") {
      found = {"again", again.how + ": " + again.text + " (after: " + found.text + ")", 4};
    }
  }
  std::ranges::replace(found.text, '\n', ' ');
  std::printf("%s %llu %llu %llu %td %s\n", found.how.c_str(), static_cast<unsigned long long>(sw::test::requests(resource::threads)),
              static_cast<unsigned long long>(sw::test::requests(resource::descriptors)),
              static_cast<unsigned long long>(sw::test::requests(resource::memory)), open_descriptors(), found.text.c_str());
  return found.exit_code;
}
