// SPDX-License-Identifier: Apache-2.0
//
// A read-only file system in memory, which makes thousands of damaged files cheap. The part of a name before a '/' is a
// directory.
#pragma once

#include <stepwell/io/file_system.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell::test {

/// A file system over the map `content`.
/// @lifetime Must outlive the files opened in it.
class memory_files final : public io::file_system {
public:
  /// File contents by path. A test may change it at any time. An open file shows the current content, or no content
  /// after its entry is removed.
  std::map<std::string, std::string> content;

  memory_files() = default;
  explicit memory_files(std::map<std::string, std::string> files) : content(std::move(files)) {}

  result<std::unique_ptr<io::file>> open(const std::string& path, io::open_mode mode) override {
    const auto found = content.find(path);
    if (mode != io::open_mode::read) { return refused(path); }
    if (found == content.end()) { return status(errc::not_found, "no such file in memory", path); }
    return std::unique_ptr<io::file>(std::make_unique<memory_file>(path, *this));
  }
  result<void> rename(const std::string& from, const std::string&) override { return refused(from); }
  result<void> remove(const std::string& path) override { return refused(path); }
  result<void> sync_directory(const std::string&) override { return {}; }
  result<void> create_directories(const std::string& path) override { return refused(path); }
  result<std::vector<std::string>> list(const std::string& directory) override {
    std::set<std::string> names;
    for (const auto& [path, text] : content) {
      if (path.starts_with(directory + "/")) {
        const auto rest = path.substr(directory.size() + 1);
        names.insert(rest.substr(0, rest.find('/')));
      }
    }
    return std::vector(names.begin(), names.end());
  }
  result<io::file_info> stat(const std::string& path) override {
    const auto found = content.find(path);
    if (found != content.end()) { return io::file_info{.size = found->second.size(), .modified = {}, .is_directory = false}; }
    const auto is_inside = [&](const auto& file) { return file.first.starts_with(path + "/"); };
    if (std::ranges::any_of(content, is_inside)) { return io::file_info{.size = 0, .modified = {}, .is_directory = true}; }
    return status(errc::not_found, "no such file in memory", path);
  }
  result<std::string> canonical(const std::string& path) override { return path; }
  result<std::unique_ptr<io::file_lock>> lock(const std::string& path) override { return refused(path); }

private:
  static status refused(const std::string& path) { return {errc::permission_denied, "files in memory are to be read only", path}; }

  class memory_file final : public io::file {
  public:
    memory_file(std::string path, const memory_files& all) : file(std::move(path)), all_(all) {}
    result<void> write_at(std::uint64_t, std::span<const std::byte>) override { return refused(path()); }
    result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> into) override {
      const auto text = this->text();
      const auto rest = text.substr(static_cast<std::size_t>(std::min<std::uint64_t>(offset, text.size())));
      return rest.copy(reinterpret_cast<char*>(into.data()), into.size());
    }
    result<void> sync() override { return {}; }
    result<std::uint64_t> size() override { return std::uint64_t{text().size()}; }
    result<void> truncate(std::uint64_t) override { return refused(path()); }
    result<void> close() override { return {}; }

  private:
    [[nodiscard]] std::string_view text() const {
      const auto found = all_.content.find(path());
      return found == all_.content.end() ? std::string_view() : std::string_view(found->second);
    }
    const memory_files& all_;
  };
};

}  // namespace stepwell::test
