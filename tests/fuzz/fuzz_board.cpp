// SPDX-License-Identifier: Apache-2.0
//
// The HTTP surface of the board: the parser of requests and all answers, in memory. The input is what a client sends. The first byte
// selects a directory or a session, and whether the client has the token.
#include <stepwell/board/detail/board_service.hpp>
#include <stepwell/board/http_server.hpp>
#include <stepwell/summary/writer.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace sw = stepwell;
using namespace sw::board;

namespace {

/// A directory with one run, which is removed at the end.
struct fuzzed_directory {
  std::string path = std::filesystem::temp_directory_path() / ("fuzz_board." + std::to_string(std::random_device()()));
  fuzzed_directory() {
    sw::summary::writer out(path + "/a");
    for (int step = 1; step <= 20; ++step) { out.add_scalar("loss", 1.0f / static_cast<float>(step), step); }
    out.add_histogram("weights", std::vector<float>{1, 2, 3}, 1);
    out.add_text("note", "text", 1);
  }
  ~fuzzed_directory() { std::filesystem::remove_all(path); }
};

std::shared_ptr<board_service> make_service(const std::string& path, bool has_session) {
  const auto live = has_session ? std::make_shared<live_state>() : nullptr;
  return std::make_shared<board_service>(service_options{.title = "fuzz",
                                                         .directory = path,
                                                         .live = live,
                                                         .checkpoint_directory = has_session ? path : std::string(),
                                                         .live_directory = has_session ? path + "/a" : std::string(),
                                                         .signals = std::make_shared<sw::session_signals>()},
                                         access_rules({}, "token"), run_directory(sw::io::posix_file_system(), path, 2));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzzed_directory directory;
  static const std::shared_ptr<board_service> services[] = {make_service(directory.path, false), make_service(directory.path, true)};
  if (size == 0) { return 0; }
  const auto& service = services[data[0] % 2];
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  static_cast<void>(answer_bytes(text, {.port = 6007}, [&](const request& asked) { return service->answer_to(asked); }));
  // The same bytes as the target of a request that passes the rules.
  request asked{
      .method = (data[0] & 2) != 0 ? "POST" : "GET", .target = "/api/" + text, .body = text, .address = "127.0.0.1", .port = 6007};
  asked.hosts = {"localhost:6007"};
  asked.content_type = "application/json";
  asked.last_event_id = text.substr(0, 20);
  if ((data[0] & 4) != 0) { asked.authorization = "Bearer token"; }
  const auto said = service->answer_to(asked);
  if (said.status < 200 || said.status > 599) { std::abort(); }
  if (said.events) { static_cast<void>(said.events->next()); }
  return 0;
}
