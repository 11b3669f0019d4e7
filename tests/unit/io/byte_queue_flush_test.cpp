// SPDX-License-Identifier: Apache-2.0
//
// Tests of flushes of a byte_queue that one place starts and another place waits for.
#include "support/catch.hpp"
#include "unit/io/fake_disk.hpp"

#include <future>
#include <memory>

namespace sw = stepwell;
namespace io = stepwell::io;
using namespace stepwell::test;

TEST_CASE("a thread of the pool may wait for a flush although no other thread is free to do it", "[io][byte_queue]") {
  small_queue on;
  CHECK(on.queue.append(bytes("held")).ok());
  std::promise<bool> written;
  on.threads->post([&] { written.set_value(on.queue.start_flush().wait().ok()); });  // this thread is the only one of the pool
  CHECK(written.get_future().get());
  CHECK(on.disk.text() == "held");
  CHECK(on.disk.syncs == 1);
  CHECK(on.queue.append(bytes("more")).ok());
  CHECK(on.queue.close().ok());
  CHECK(on.disk.text() == "heldmore");
}

TEST_CASE("a flush that was started may be waited for after the queue is gone, and has the failure of its bytes", "[io][byte_queue]") {
  fake_disk disk;
  disk.is_open = false;
  disk.write_outcome = full;
  const auto threads = std::make_shared<io::pool>(1);
  const auto time = std::make_shared<sw::manual_clock>();
  const auto late = [&] {
    io::byte_queue queue(std::make_unique<fake_sink>(disk), {.threads = threads, .clock = time});
    CHECK(queue.append(bytes("late")).ok());
    auto started = queue.start_flush();
    CHECK(queue.close(time->now()).error().code == sw::errc::deadline_exceeded);
    return started;
  }();
  disk.open_gate();
  CHECK(late.wait().error().message == "disk full");
}
