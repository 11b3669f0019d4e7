// SPDX-License-Identifier: Apache-2.0
#include "stepwell/io/detail/byte_sink.hpp"

#include <utility>

namespace stepwell::io {
namespace {

class file_sink final : public byte_sink {
public:
  file_sink(std::unique_ptr<file> target, std::uint64_t offset) : target_(std::move(target)), offset_(offset) {}

  result<void> write(std::span<const std::byte> bytes) override {
    if (auto written = target_->write_at(offset_, bytes); !written) { return written; }
    offset_ += bytes.size();
    return {};
  }
  result<void> sync() override { return target_->sync(); }
  result<void> close() override { return target_->close(); }

private:
  std::unique_ptr<file> target_;
  std::uint64_t offset_;
};

}  // namespace

std::unique_ptr<byte_sink> sink_into(std::unique_ptr<file> target, std::uint64_t offset) {
  return std::make_unique<file_sink>(std::move(target), offset);
}

}  // namespace stepwell::io
