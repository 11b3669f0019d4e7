// SPDX-License-Identifier: Apache-2.0
//
// Tests that protobuf's own classes can read the written metadata.
#include "support/catch.hpp"

#include <stepwell/format/proto/run_metadata.pb.h>
#include <stepwell/format/detail/run_metadata.hpp>

namespace sw = stepwell;
namespace format = stepwell::format;
using namespace std::chrono_literals;

namespace {

const sw::clock::time_point origin{1h};
const sw::clock::wall_time wall_origin{1'700'000'000s};

tensorflow::DeviceStepStats stats_of(const std::string& bytes) {
  tensorflow::RunMetadata read;
  REQUIRE(read.ParseFromString(bytes));
  REQUIRE(read.step_stats().dev_stats_size() == 1);
  return read.step_stats().dev_stats(0);
}

}  // namespace

TEST_CASE("EVT-9 run metadata hold a node for each span, with times of day and the names of threads", "[format][run_metadata]") {
  const sw::run_metadata observed{{{"run", "session", 1, "training", origin + 2500ns, origin + 10us, {{"step", "7"}, {"model", "toy"}}},
                                   {"write", "checkpoint", 3, "stepwell io 0", origin + 1s, origin + 3s}},
                                  origin,
                                  wall_origin,
                                  0};
  const auto stats = stats_of(format::encode_run_metadata(observed));
  CHECK(stats.device() == "/job:localhost/replica:0/task:0/device:CPU:0");
  REQUIRE(stats.node_stats_size() == 2);
  const auto& run = stats.node_stats(0);
  CHECK(run.node_name() == "run");
  CHECK(run.timeline_label() == "run = session(step=7, model=toy)");
  CHECK(run.thread_id() == 1);
  CHECK(run.all_start_micros() == 1'700'000'000'000'002);
  CHECK(run.op_start_rel_micros() == 0);
  CHECK(run.op_end_rel_micros() == 7);
  CHECK(run.all_end_rel_micros() == 7);
  CHECK(run.all_start_nanos() == 1'700'000'000'000'002'500);
  CHECK(run.op_end_rel_nanos() == 7'500);
  CHECK(run.all_end_rel_nanos() == 7'500);
  const auto& write = stats.node_stats(1);
  CHECK(write.timeline_label() == "write = checkpoint()");
  CHECK(write.thread_id() == 3);
  CHECK(write.all_start_micros() == 1'700'000'001'000'000);
  CHECK(write.all_end_rel_micros() == 2'000'000);
  REQUIRE(stats.thread_names_size() == 2);
  CHECK(stats.thread_names(0).key() == 1);
  CHECK(stats.thread_names(0).value() == "training");
  CHECK(stats.thread_names(1).key() == 3);
  CHECK(stats.thread_names(1).value() == "stepwell io 0");
}

TEST_CASE("the numbers of the fields are TensorFlow's", "[format][run_metadata]") {
  // node_name 1, all_start_micros 2, op_end_rel_micros 4, all_end_rel_micros 5, label 8, scheduled 9, thread 10, nanos.
  const sw::run_metadata observed{{{"a", "b", 1, "t", origin, origin + 2us}}, origin, sw::clock::wall_time(1us), 0};
  const std::string node =
      "\x0a\x01"
      "a"
      "\x10\x01\x20\x02\x28\x02\x42\x07"
      "a = b()"
      "\x48\x01\x50\x01"
      "\x68\xe8\x07\x78\xd0\x0f\x80\x01\xd0\x0f\x88\x01\xe8\x07";
  const std::string device =
      "\x0a\x03"
      "cpu"
      "\x12\x24" +
      node +
      "\x1a\x05\x08\x01\x12\x01"
      "t";
  const std::string stats = std::string("\x0a") + static_cast<char>(device.size()) + device;
  CHECK(format::encode_run_metadata(observed, "cpu") == std::string("\x0a") + static_cast<char>(stats.size()) + stats);
}

TEST_CASE("texts of run metadata that are not UTF-8 are mended, so that readers take the message", "[format][run_metadata]") {
  const sw::run_metadata observed{{{"bad\xff", "c", 1, "worse\xc3", origin, origin, {{"k", "\x80"}}}}, origin, wall_origin, 0};
  const auto stats = stats_of(format::encode_run_metadata(observed));
  CHECK(stats.node_stats(0).node_name() == "bad\xef\xbf\xbd");
  CHECK(stats.node_stats(0).timeline_label() == "bad\xef\xbf\xbd = c(k=\xef\xbf\xbd)");
  CHECK(stats.thread_names(0).value() == "worse\xef\xbf\xbd");
}

TEST_CASE("run metadata of nothing are a device without nodes", "[format][run_metadata]") {
  CHECK(stats_of(format::encode_run_metadata({})).node_stats_size() == 0);
}
