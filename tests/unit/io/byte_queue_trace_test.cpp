// SPDX-License-Identifier: Apache-2.0
//
// Tests of the trace that receives the spans of a queue's sink.
#include "support/catch.hpp"
#include "support/trace_reading.hpp"

#include <stepwell/io/detail/byte_queue.hpp>

namespace sw = stepwell;
namespace io = stepwell::io;
namespace test = stepwell::test;

namespace {

/// A sink that records a span in each call.
class spanned_sink final : public io::byte_sink {
public:
  sw::result<void> write(std::span<const std::byte> /*bytes*/) override {
    const sw::trace_span span("write");
    return {};
  }
  sw::result<void> sync() override {
    const sw::trace_span span("sync");
    return {};
  }
  sw::result<void> close() override { return {}; }
};

struct spanned_queue {
  std::shared_ptr<io::pool> threads = std::make_shared<io::pool>(1);
  io::byte_queue queue{std::make_unique<spanned_sink>(), {.threads = threads}};

  void append() { REQUIRE(queue.append(std::as_bytes(std::span("bytes"))).ok()); }
  void flush() { REQUIRE(queue.flush().ok()); }
};

using names = std::vector<std::string>;

}  // namespace

TEST_CASE("a queue writes in the scope of the last append, and syncs in that of the last flush", "[io][byte_queue][trace]") {
  const test::traced first;
  const test::traced last;
  const test::traced flusher;
  spanned_queue on;
  for (const auto& recorder : {first.recorder, last.recorder}) {
    const sw::trace_scope scope(recorder);
    on.append();
  }
  on.append();  // by a caller without a trace
  {
    const sw::trace_scope scope(flusher.recorder);
    on.flush();
  }
  CHECK(first.recorder->take().spans.empty());
  CHECK(test::names_of(last.recorder->take()) == names{"write"});
  CHECK(test::names_of(flusher.recorder->take()) == names{"sync"});
}

TEST_CASE("a flush that has nothing to do leaves nothing for those that follow", "[io][byte_queue][trace]") {
  const test::traced with;
  spanned_queue on;
  {
    const sw::trace_scope scope(with.recorder);
    on.flush();
  }
  on.append();
  on.flush();
  CHECK(with.recorder->take().spans.empty());
}
