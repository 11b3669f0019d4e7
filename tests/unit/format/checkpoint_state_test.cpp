// SPDX-License-Identifier: Apache-2.0
#include <stepwell/format/checkpoint/detail/checkpoint_state.hpp>

#include "support/catch.hpp"
#include "support/file_text.hpp"
#include "support/testdata.hpp"

#include <string>

using namespace stepwell;
using namespace stepwell::format;

TEST_CASE("STATE-1 a state file is written one field a line", "[format][checkpoint_state]") {
  const checkpoint_state state{.model_checkpoint_path = "model.ckpt-1000",
                               .all_model_checkpoint_paths = {"model.ckpt-0", "model.ckpt-1000"},
                               .all_model_checkpoint_timestamps = {1646034740.25, 1646034741},
                               .last_preserved_timestamp = 1646034738.5};
  const std::string text =
      "model_checkpoint_path: \"model.ckpt-1000\"\n"
      "all_model_checkpoint_paths: \"model.ckpt-0\"\n"
      "all_model_checkpoint_paths: \"model.ckpt-1000\"\n"
      "all_model_checkpoint_timestamps: 1646034740.25\n"
      "all_model_checkpoint_timestamps: 1646034741\n"
      "last_preserved_timestamp: 1646034738.5\n";
  CHECK(encode(state) == text);
  CHECK(*decode_checkpoint_state(text) == state);
}

TEST_CASE("a path with quotes, backslashes and bytes beyond ASCII survives", "[format][checkpoint_state]") {
  const checkpoint_state state{
      .model_checkpoint_path = "C:\\run\n\"\xC3\xA4\xFF", .all_model_checkpoint_paths = {"'"}, .all_model_checkpoint_timestamps = {}};
  CHECK(*decode_checkpoint_state(encode(state)) == state);
  CHECK(decode_checkpoint_state("model_checkpoint_path: 'C:\\\\run'")->model_checkpoint_path == "C:\\run");
}

TEST_CASE("unknown fields, comments and short lists are passed over or understood", "[format][checkpoint_state]") {
  const auto state = decode_checkpoint_state(
      "# by hand\nmodel_checkpoint_path: \"b\" new_thing { a: 1 b: \"x\" c { d: [1, 2] } }\n"
      "all_model_checkpoint_paths: [\"a\", \"b\"] another: -1.5\n");
  REQUIRE(state);
  CHECK(state->model_checkpoint_path == "b");
  CHECK(state->all_model_checkpoint_paths == std::vector<std::string>{"a", "b"});
}

TEST_CASE("timestamps that do not match the paths are dropped", "[format][checkpoint_state]") {
  const auto state =
      decode_checkpoint_state("model_checkpoint_path: \"a\" all_model_checkpoint_paths: \"a\" all_model_checkpoint_timestamps: [1, 2]");
  CHECK(state->all_model_checkpoint_timestamps.empty());
}

TEST_CASE("a state file that is no such text is data loss, and says where", "[format][checkpoint_state]") {
  for (const std::string text : {"", "model_checkpoint_path", "model_checkpoint_path: \"a", "model_checkpoint_path: 7",
                                 "all_model_checkpoint_paths: \"a\"", "\x00\x01\x02", "{", "model_checkpoint_path: \"\""}) {
    CAPTURE(text);
    const auto state = decode_checkpoint_state(text);
    REQUIRE_FALSE(state.ok());
    CHECK(state.error().code == errc::data_loss);
  }
  CHECK(decode_checkpoint_state("\nmodel_checkpoint_path: 7").error().message.find("line 2") != std::string::npos);
}

TEST_CASE("a state file cut at any length is an error or a shorter truth, never a crash", "[format][checkpoint_state]") {
  const std::string text = "model_checkpoint_path: \"model.ckpt-2\"\nall_model_checkpoint_paths: \"model.ckpt-2\"\n";
  for (std::size_t length = 0; length < text.size(); ++length) {
    const auto state = decode_checkpoint_state(text.substr(0, length));
    if (state) { CHECK(state->model_checkpoint_path == "model.ckpt-2"); }
  }
}

TEST_CASE("unknown fields nested without end are an error, not the end of the stack", "[format][checkpoint_state]") {
  std::string text = "model_checkpoint_path: \"a\" ";
  for (int i = 0; i < 200'000; ++i) { text += "x {"; }
  CHECK_FALSE(decode_checkpoint_state(text).ok());
  text = "model_checkpoint_path: \"a\" x: ";
  for (int i = 0; i < 200'000; ++i) { text += "["; }
  CHECK_FALSE(decode_checkpoint_state(text).ok());
}

TEST_CASE("the state files of real training directories are read", "[format][checkpoint_state]") {
  const auto path = test::testdata("ckpt/tf1_estimator/checkpoint");
  if (path.empty()) { return; }
  const auto text = test::file_text(path);
  const auto state = decode_checkpoint_state(text);
  REQUIRE(state);
  CHECK(state->model_checkpoint_path == "model.ckpt-10000");
  CHECK(encode(*state) == text);
}
