// SPDX-License-Identifier: Apache-2.0
#include "fault/crafted/cases.hpp"

#include "fault/crafted/scene.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <string_view>

namespace stepwell::test {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 8> targets = {"checkpoint",
                                                     "model.ckpt-4.index",
                                                     "model.ckpt-4.data-00000-of-00001",
                                                     "model.ckpt-3.index",
                                                     "model.ckpt-3.data-00000-of-00001",
                                                     "metrics.csv",
                                                     "metrics.jsonl",
                                                     "events.out.tfevents.1"};

// --- any file ---

std::string flip(scene& in) {
  const auto name = in.random.one_of(targets);
  in.write(name, mutated(in.original(name), in.random));
  return "bytes of " + std::string(name) + " changed";
}

std::string extend_with_hole(scene& in) {
  const auto name = in.random.one_of(targets);
  constexpr std::array<std::uint64_t, 5> sizes = {1ULL << 20, 64ULL << 20, 1ULL << 30, 3ULL << 30, 1ULL << 40};
  const auto size = in.random.one_of(sizes) + in.random.below(5);
  if (in.random.one_in(3)) { in.write(name, ""); }
  fs::resize_file(in.path(name), size);
  return std::string(name) + " is sparse, of " + std::to_string(size) + " bytes";
}

void make_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) { return; }
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const int made = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  static_cast<void>(::bind(made, reinterpret_cast<const sockaddr*>(&address), sizeof address));
  ::close(made);
}

std::string replace_by_special(scene& in) {
  constexpr std::array<std::string_view, 2> locks = {".stepwell.lock", "metrics.csv.lock"};
  const auto name = in.random.one_in(5) ? in.random.one_of(locks) : in.random.one_of(targets);
  const auto path = in.path(name);
  constexpr std::array<std::string_view, 8> kinds = {"pipe",
                                                     "socket",
                                                     "directory",
                                                     "link to itself",
                                                     "link to /dev/zero",
                                                     "link to another file",
                                                     "link to a pipe",
                                                     "hard link to another file"};
  const auto kind = in.random.one_of(kinds);
  fs::remove(path);
  in.write("other", "two years of work");
  ::mkfifo(in.path("a pipe").c_str(), 0666);
  if (kind == "pipe") { ::mkfifo(path.c_str(), 0666); }
  if (kind == "socket") { make_socket(path); }
  if (kind == "directory") { fs::create_directory(path); }
  if (kind == "link to itself") { fs::create_symlink(path, path); }
  if (kind == "link to /dev/zero") { fs::create_symlink("/dev/zero", path); }
  if (kind == "link to another file") { fs::create_symlink(in.path("other"), path); }
  if (kind == "link to a pipe") { fs::create_symlink(in.path("a pipe"), path); }
  if (kind == "hard link to another file") { fs::create_hard_link(in.path("other"), path); }
  return std::string(name) + " is a " + std::string(kind);
}

// --- state file ---

std::string many_paths(scene& in) {
  constexpr std::array<std::size_t, 5> counts = {10, 1000, 30'000, 100'000, 300'000};
  const auto count = in.random.one_of(counts);
  const auto style = in.random.below(5);
  std::string text = "model_checkpoint_path: \"model.ckpt-4\"\n";
  if (style == 4) { text += "all_model_checkpoint_paths: ["; }
  std::string around;
  for (std::size_t i = 0; i < count && text.size() < (std::size_t{40} << 20); ++i) {
    switch (style) {
      case 0: text += "all_model_checkpoint_paths: \"model.ckpt-" + std::to_string(i) + "\"\n"; break;
      case 1: text += "all_model_checkpoint_paths: \"model.ckpt-3\"\n"; break;
      case 2:  // one checkpoint with different spellings of its path
        around = around.size() > 400 ? "" : around + "./";
        text += "all_model_checkpoint_paths: \"" + around + std::string(i % 5, '/') + "model.ckpt-3\"\n";
        break;
      case 3: text += "all_model_checkpoint_timestamps: " + std::to_string(in.random.extreme()) + "\n"; break;
      default: text += i == 0 ? "\"\"" : ",\"\""; break;
    }
  }
  in.write("checkpoint", style == 4 ? text + "]" : text);
  return "a state file of " + std::to_string(count) + " values, style " + std::to_string(style);
}

std::string deep_state(scene& in) {
  const auto depth = 1 + in.random.below(300'000);
  const bool is_closed = in.random.one_in(2);
  std::string text = "model_checkpoint_path: \"model.ckpt-3\" x ";
  const std::string_view open = in.random.one_in(2) ? "{a " : "<a ";
  for (std::uint64_t i = 0; i < depth; ++i) { text += open; }
  text += "{}";
  if (is_closed) { text += std::string(depth, open.front() == '{' ? '}' : '>'); }
  in.write("checkpoint", text);
  return "a state file nested " + std::to_string(depth) + " deep";
}

std::string long_path(scene& in) {
  constexpr std::array<std::size_t, 4> sizes = {300, 5000, 1 << 20, 12 << 20};
  const auto size = in.random.one_of(sizes);
  in.write("checkpoint", "model_checkpoint_path: \"" + std::string(size, in.random.one_in(2) ? 'x' : '/') + "\"\n");
  return "a state file with a path of " + std::to_string(size) + " bytes";
}

// --- metrics ---

std::string long_metric_line(scene& in) {
  const std::string_view name = in.random.one_in(2) ? "metrics.csv" : "metrics.jsonl";
  const auto size = static_cast<std::uint64_t>(1) << (10 + in.random.below(31));
  fs::resize_file(in.path(name), fs::file_size(in.path(name)) + size);
  return std::string(name) + " ends in a hole of " + std::to_string(size) + " bytes";
}

struct weighted_craft {
  craft make;
  std::size_t times;
};
/// The weights of the cases. Changed bytes find the most errors and take the least time.
constexpr weighted_craft weighted_crafts[] = {{flip, 16},          {change_entries, 6},  {extend_with_hole, 2}, {replace_by_special, 3},
                                              {many_paths, 1},     {deep_state, 1},      {long_path, 1},        {many_tensors, 1},
                                              {sparse_strings, 1}, {shared_prefixes, 1}, {compressed_claim, 1}, {swollen_entry, 1},
                                              {large_record, 1},   {swollen_event, 1},   {hostile_names, 1},    {long_metric_line, 1}};

constexpr auto crafts = [] {
  std::array<craft, 39> all{};
  auto next = all.begin();
  for (const auto& [make, times] : weighted_crafts) { next = std::fill_n(next, times, make); }
  return all;
}();
static_assert(crafts.back() != nullptr);

}  // namespace

std::string write_crafted_case(const std::string& directory, const std::map<std::string, std::string>& good, std::uint64_t seed,
                               std::uint64_t number) {
  scene in{directory, good, choices(seed, number)};
  for (const auto& [name, text] : good) { in.write(name, text); }
  return in.random.one_of(crafts)(in);
}

}  // namespace stepwell::test
