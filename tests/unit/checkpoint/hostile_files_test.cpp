// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints and state files of unknown origin. `crafted_files` in tests/fault generates thousands more.
#include "support/catch.hpp"
#include "support/file_text.hpp"
#include "support/log_capture.hpp"
#include "support/sanitized.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/base/variable.hpp>
#include <stepwell/checkpoint/checkpoint_reader.hpp>
#include <stepwell/checkpoint/detail/checkpoint_directory.hpp>
#include <stepwell/checkpoint/detail/checkpoint_writer.hpp>
#include <stepwell/checkpoint/find_checkpoints.hpp>
#include <stepwell/checkpoint/saver.hpp>
#include <stepwell/format/checkpoint/detail/bundle.hpp>
#include <stepwell/format/checkpoint/detail/table.hpp>
#include <stepwell/kernel/detail/crc32c.hpp>

#include <sys/stat.h>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace sw = stepwell;
using sw::format::bundle_entry;
using sw::test::log_capture;
using sw::test::temporary_directory;
using sw::test::write_file_text;

namespace {

constexpr std::int64_t terabyte = std::int64_t{1} << 40;

void write_checkpoint(const std::string& prefix) {
  const std::array<float, 4> w{1, 2, 3, 4};
  sw::detail::checkpoint_writer writer(prefix);
  writer.add("w", sw::view_of(w));
  writer.commit();
}

/// Writes a checkpoint with these entries and a sparse data file of `data_bytes` bytes.
void write_crafted(const std::string& prefix, const std::map<std::string, bundle_entry>& entries, std::int64_t data_bytes,
                   sw::format::table_options options = {}) {
  sw::format::table_writer table(options);
  CHECK(table.add("", encode(sw::format::bundle_header{.bad_consumers = {}})).ok());
  for (const auto& [name, entry] : entries) { CHECK(table.add(name, encode(entry)).ok()); }
  write_file_text(prefix + ".index", table.finish());
  write_file_text(prefix + ".data-00000-of-00001", "");
  std::filesystem::resize_file(prefix + ".data-00000-of-00001", static_cast<std::uintmax_t>(data_bytes));
}

bundle_entry zeros_at(std::int64_t offset, std::int64_t size) {
  const auto crc = sw::kernel::crc32c_mask(sw::kernel::crc32c_zeros(static_cast<std::uint64_t>(size)));
  return {.dtype = sw::dtype::uint8, .shape = {size}, .offset = offset, .size = size, .crc32c = crc, .slices = {}};
}

std::string newest(const temporary_directory& directory) {
  const auto reader = sw::latest_whole_checkpoint(directory.path());
  return reader ? std::filesystem::path(reader->prefix()).filename().string() : "";
}

}  // namespace

TEST_CASE("two tensors that share bytes of a data file are data loss", "[checkpoint][hostile]") {
  const temporary_directory directory;
  write_crafted(directory / "m", {{"a", zeros_at(0, 100)}, {"b", zeros_at(99, 100)}}, 1000);
  CHECK_THROWS_WITH(sw::checkpoint_reader(directory / "m"), ContainsSubstring("\"a\" and \"b\" share bytes"));
  CHECK_THROWS_AS(sw::checkpoint_reader(directory / "m"), sw::data_loss_error);
}

TEST_CASE("tensors side by side, with gaps, or without elements share nothing", "[checkpoint][hostile]") {
  const temporary_directory directory;
  write_crafted(directory / "m", {{"a", zeros_at(0, 100)}, {"b", zeros_at(100, 100)}, {"c", zeros_at(300, 7)}, {"d", zeros_at(50, 0)}},
                1000);
  CHECK_NOTHROW(sw::checkpoint_reader(directory / "m").verify());
}

TEST_CASE("a tensor of a terabyte of zeros in a hole is verified without reading it", "[checkpoint][hostile]") {
  const temporary_directory directory;
  write_crafted(directory / "m", {{"w", zeros_at(4096, terabyte)}}, 4096 + terabyte);
  const sw::checkpoint_reader reader(directory / "m");
  CHECK_NOTHROW(reader.verify());
  CHECK_NOTHROW(reader.verify("w"));
}

TEST_CASE("bytes between holes count, and so does a wrong checksum over a hole", "[checkpoint][hostile]") {
  const temporary_directory directory;
  write_crafted(directory / "m", {{"w", zeros_at(0, 64 << 20)}}, 64 << 20);
  const sw::checkpoint_reader reader(directory / "m");
  CHECK_NOTHROW(reader.verify());
  std::fstream(directory / "m.data-00000-of-00001", std::ios::in | std::ios::out | std::ios::binary).seekp(32 << 20).put('x');
  CHECK_THROWS_AS(reader.verify(), sw::data_loss_error);
}

TEST_CASE("strings by the billion in a hole are verified without memory, and a read of them is refused", "[checkpoint][hostile]") {
  const temporary_directory directory;
  write_crafted(directory / "m", {{"s", {.dtype = sw::dtype::string, .shape = {terabyte - 4}, .size = terabyte, .slices = {}}}}, terabyte);
  const sw::checkpoint_reader reader(directory / "m");
  CHECK_THROWS_AS(reader.verify(), sw::data_loss_error);  // the checksum of the lengths is wrong
  CHECK_THROWS_AS(reader.read("s"), sw::data_loss_error);
}

TEST_CASE("a tensor that memory is too small for is resource_exhausted, not bad_alloc", "[checkpoint][hostile]") {
  if (sw::test::is_sanitized) { return; }  // a sanitizer ends the program at such an allocation
  const temporary_directory directory;
  write_crafted(directory / "m", {{"w", zeros_at(0, 8 * terabyte)}}, 8 * terabyte);
  const sw::checkpoint_reader reader(directory / "m");
  CHECK_THROWS_AS(reader.read("w"), sw::resource_exhausted_error);
}

TEST_CASE("a checkpoint whose index would take many times its size in memory is passed over for an older one", "[checkpoint][hostile]") {
  const temporary_directory directory;
  write_checkpoint(directory / "model.ckpt-1");
  write_checkpoint(directory / "model.ckpt-2");
  const std::string name(400'000, 'n');
  std::map<std::string, bundle_entry> entries;
  for (int i = 0; i < 200; ++i) { entries[name + std::to_string(i)] = zeros_at(0, 0); }
  write_crafted(directory / "model.ckpt-2", entries, 1, {.block_size = 1 << 30, .restart_interval = 1 << 20});  // keys share their prefix
  const log_capture log;
  CHECK(newest(directory) == "model.ckpt-1");
  CHECK(log.contains(sw::log_level::warning, "requires more memory"));
}

TEST_CASE("a pipe in the place of any file of a checkpoint is passed over at once", "[checkpoint][hostile]") {
  const temporary_directory directory;
  write_checkpoint(directory / "model.ckpt-1");
  write_checkpoint(directory / "model.ckpt-2");
  write_file_text(directory / "checkpoint", "model_checkpoint_path: \"model.ckpt-2\"\n");
  const std::string name = GENERATE("checkpoint", "model.ckpt-2.index", "model.ckpt-2.data-00000-of-00001");
  std::filesystem::remove(directory / name);
  REQUIRE(::mkfifo((directory / name).c_str(), 0666) == 0);
  const log_capture log;
  CHECK(newest(directory) == (name == "checkpoint" ? "model.ckpt-2" : "model.ckpt-1"));
  CHECK(log.contains(sw::log_level::warning, "not a regular file"));
}

TEST_CASE("a link to itself in the place of any file of a checkpoint is skipped with a warning, also at the start of a saver",
          "[checkpoint][hostile]") {
  const temporary_directory directory;
  write_checkpoint(directory / "model.ckpt-1");
  write_checkpoint(directory / "model.ckpt-2");
  write_file_text(directory / "checkpoint", "model_checkpoint_path: \"" + (directory / "model.ckpt-2") + "\"\n");
  const std::string name = GENERATE("checkpoint", "model.ckpt-2.index", "model.ckpt-2.data-00000-of-00001");
  std::filesystem::remove(directory / name);
  std::filesystem::create_symlink(name, directory / name);
  const log_capture log;
  const auto expected = name == "checkpoint" ? "model.ckpt-2" : "model.ckpt-1";
  CHECK(newest(directory) == expected);
  CHECK(log.contains(sw::log_level::warning, "form a loop"));
  sw::saver saver(directory.path());
  CHECK(saver.restore_newest()->prefix() == directory / expected);
}

TEST_CASE("a state file with a name that is too long leads to the next older checkpoint", "[checkpoint][hostile]") {
  const temporary_directory directory;
  write_checkpoint(directory / "model.ckpt-1");
  write_file_text(directory / "checkpoint",
                  "model_checkpoint_path: \"" + std::string(300, 'a') + "\"\nall_model_checkpoint_paths: \"model.ckpt-1\"\n");
  const log_capture log;
  sw::saver saver(directory.path());
  CHECK(saver.restore_newest()->prefix() == directory / "model.ckpt-1");
  CHECK(log.contains(sw::log_level::warning, "choose a shorter name"));
}

TEST_CASE("a checkpoint that a state file spells in many ways is listed once", "[checkpoint][hostile]") {
  const temporary_directory directory;
  write_checkpoint(directory / "model.ckpt-1");
  std::filesystem::create_directory_symlink(directory.path(), directory / "link");
  write_file_text(directory / "checkpoint",
                  "model_checkpoint_path: \"model.ckpt-2\" all_model_checkpoint_paths: [\"model.ckpt-1\", \"./model.ckpt-1\", "
                  "\"link/model.ckpt-1\", \"link/.././" +
                      std::filesystem::path(directory.path()).filename().string() + "/model.ckpt-1\", \"model.ckpt-2\"]");
  const auto state = sw::detail::read_state_file(*sw::io::posix_file_system(), directory.path());
  REQUIRE(state);
  CHECK(state->prefixes.size() == 2);
  CHECK(state->prefixes.back() == directory / "model.ckpt-2");
}

TEST_CASE("a state file of fifty thousand paths is read in linear time", "[checkpoint][hostile]") {
  const temporary_directory directory;
  write_checkpoint(directory / "model.ckpt-1");
  std::string text = "model_checkpoint_path: \"model.ckpt-1\"\n";
  for (int i = 2; i < 50'000; ++i) { text += "all_model_checkpoint_paths: \"gone.ckpt-" + std::to_string(i) + "\"\n"; }
  write_file_text(directory / "checkpoint", text);
  const auto state = sw::detail::read_state_file(*sw::io::posix_file_system(), directory.path());
  REQUIRE(state);
  CHECK(state->prefixes.size() == 49'999);
  const log_capture log;
  CHECK(newest(directory) == "model.ckpt-1");
  std::filesystem::remove(directory / "model.ckpt-1.index");
  CHECK_THROWS_AS(sw::latest_whole_checkpoint(directory.path()), sw::data_loss_error);
  CHECK(log.messages().size() < 30);
}

TEST_CASE("a state file with more paths than a run can list, or longer ones than a system opens, is passed over", "[checkpoint][hostile]") {
  const temporary_directory directory;
  write_checkpoint(directory / "model.ckpt-1");
  std::string text = "model_checkpoint_path: \"gone\" all_model_checkpoint_paths: [\"\"";
  for (int i = 0; i < 300'000; ++i) { text += ",\"\""; }
  write_file_text(directory / "checkpoint", GENERATE_COPY(text + "]", "model_checkpoint_path: \"" + std::string(5000, 'x') + "\""));
  const log_capture log;
  CHECK(newest(directory) == "model.ckpt-1");
  CHECK(log.contains(sw::log_level::warning, "Invalid checkpoint state"));
}
