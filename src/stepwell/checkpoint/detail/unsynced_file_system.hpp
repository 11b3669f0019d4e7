// SPDX-License-Identifier: Apache-2.0
//
// Internal: a file system that does not sync, for savers with `sync` off.
#pragma once

#include "stepwell/io/file_system.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace stepwell::detail {

/// Forwards all calls except `sync` and `sync_directory`, which do nothing.
class unsynced_file_system final : public io::file_system {
public:
  explicit unsynced_file_system(std::shared_ptr<io::file_system> base) : base_(std::move(base)) {}

  result<std::unique_ptr<io::file>> open(const std::string& path, io::open_mode mode) override {
    auto opened = base_->open(path, mode);
    if (!opened) { return opened; }
    return std::make_unique<unsynced_file>(std::move(opened).value());
  }
  result<void> rename(const std::string& from, const std::string& to) override { return base_->rename(from, to); }
  result<void> remove(const std::string& path) override { return base_->remove(path); }
  result<void> sync_directory(const std::string&) override { return {}; }
  result<void> create_directories(const std::string& directory) override { return base_->create_directories(directory); }
  result<void> create_directory(const std::string& path) override { return base_->create_directory(path); }
  result<std::vector<std::string>> list(const std::string& directory) override { return base_->list(directory); }
  result<io::file_info> stat(const std::string& path) override { return base_->stat(path); }
  result<std::string> canonical(const std::string& path) override { return base_->canonical(path); }
  result<std::unique_ptr<io::file_lock>> lock(const std::string& path) override { return base_->lock(path); }

private:
  class unsynced_file final : public io::file {
  public:
    explicit unsynced_file(std::unique_ptr<io::file> base) : file(base->path()), base_(std::move(base)) {}
    result<void> write_at(std::uint64_t offset, std::span<const std::byte> bytes) override { return base_->write_at(offset, bytes); }
    result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> into) override { return base_->read_at(offset, into); }
    std::uint64_t skip_hole(std::uint64_t offset) noexcept override { return base_->skip_hole(offset); }
    result<void> sync() override { return {}; }
    result<std::uint64_t> size() override { return base_->size(); }
    result<void> truncate(std::uint64_t size) override { return base_->truncate(size); }
    result<void> close() override { return base_->close(); }

  private:
    std::unique_ptr<io::file> base_;
  };

  std::shared_ptr<io::file_system> base_;
};

}  // namespace stepwell::detail
