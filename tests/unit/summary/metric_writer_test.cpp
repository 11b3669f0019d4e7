// SPDX-License-Identifier: Apache-2.0
#include "events_of.hpp"
#include "support/fault_file_system.hpp"
#include "support/file_text.hpp"
#include "support/gate.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/summary/metric_writer.hpp>
#include <stepwell/summary/writer.hpp>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sw = stepwell;
namespace io = stepwell::io;
namespace summary = stepwell::summary;
namespace test = stepwell::test;
using namespace std::chrono_literals;
using test::file_text;
using test::operation;

namespace {

// A file in its own directory, with a clock that stands still at 1700000000.
struct desk {
  test::temporary_directory directory;
  std::shared_ptr<sw::manual_clock> time = std::make_shared<sw::manual_clock>();
  std::shared_ptr<test::fault_file_system> files = std::make_shared<test::fault_file_system>();
  std::string path = directory / "run/metrics";

  [[nodiscard]] summary::metric_writer_options options() const {
    summary::metric_writer_options made;
    made.file_system = files;
    made.clock = time;
    return made;
  }
};

}  // namespace

TEST_CASE("a CSV file has a header, and a line a number with the time of its call", "[summary][metrics]") {
  const desk with;
  {
    summary::csv_writer csv(with.path, with.options());
    csv.add_scalar("loss", 0.1F, 1);
    with.time->advance(std::chrono::microseconds(250'001));
    csv.add_scalar("accuracy, top 5", 0.25, 1);
    csv.add_scalar("tokens", std::int64_t{9'007'199'254'740'993}, 2);
    csv.add_scalar("bad", std::nan(""), 2);
    csv.add_scalar("worse", -std::numeric_limits<float>::infinity(), 2);
  }
  CHECK(file_text(with.path) ==
        "wall_time,step,tag,value\n"
        "1700000000.000000,1,loss,0.1\n"
        "1700000000.250001,1,\"accuracy, top 5\",0.25\n"
        "1700000000.250001,2,tokens,9007199254740993\n"
        "1700000000.250001,2,bad,nan\n"
        "1700000000.250001,2,worse,-inf\n");
}

TEST_CASE("a JSON lines file has an object a number", "[summary][metrics]") {
  const desk with;
  {
    summary::jsonl_writer json(with.path, with.options());
    json.add_scalar("loss", 0.1F, 1);
    json.add_scalar("ok", true, 1);
    json.add_scalar("bad \"\xff\"", std::nan(""), 2);
    json.add_start(2);
  }
  CHECK(file_text(with.path) ==
        "{\"wall_time\":1700000000.000000,\"step\":1,\"tag\":\"loss\",\"value\":0.1}\n"
        "{\"wall_time\":1700000000.000000,\"step\":1,\"tag\":\"ok\",\"value\":1}\n"
        "{\"wall_time\":1700000000.000000,\"step\":2,\"tag\":\"bad \\\"\xef\xbf\xbd\\\"\",\"value\":\"NaN\"}\n"
        "{\"wall_time\":1700000000.000000,\"step\":2,\"tag\":\"stepwell/start\",\"value\":null}\n");
}

TEST_CASE("an existing file is continued, and has one header", "[summary][metrics]") {
  const desk with;
  for (int run = 1; run <= 2; ++run) {
    summary::csv_writer csv(with.path, with.options());
    if (run == 2) { csv.add_start(5); }
    csv.add_scalar("loss", run, 5);
  }
  CHECK(file_text(with.path) ==
        "wall_time,step,tag,value\n"
        "1700000000.000000,5,loss,1\n"
        "1700000000.000000,5,stepwell/start,\n"
        "1700000000.000000,5,loss,2\n");
}

TEST_CASE("half a line that a kill left is cut off with a warning", "[summary][metrics]") {
  const test::log_capture log;
  const desk with;
  const std::string header = "wall_time,step,tag,value\n";
  const auto [left, kept] = GENERATE_COPY(std::pair(header + "1.000000,1,loss,0.5\n1.0000", header + "1.000000,1,loss,0.5\n"),
                                          std::pair(header + std::string(10'000, 'x'), header), std::pair(header.substr(0, 7), header));
  { summary::csv_writer empty(with.path, with.options()); }
  test::write_file_text(with.path, left);
  { summary::csv_writer csv(with.path, with.options()); }
  CHECK(file_text(with.path) == kept);
  CHECK(log.contains(sw::log_level::warning,
                     "incomplete last line of " + std::to_string(left.size() - (left.size() < 20 ? 0 : kept.size())) + " bytes"));
}

TEST_CASE("a metric file is cut at the first zero byte that a power failure left, and continued", "[summary][metrics]") {
  const test::log_capture log;
  const desk with;
  const std::string header = "wall_time,step,tag,value\n";
  const std::string line = "1.000000,1,loss,0.5\n";
  const auto zeros = [](std::size_t count) { return std::string(count, '\0'); };
  const auto [left, kept] =
      GENERATE_COPY(std::pair(zeros(4000), header), std::pair(header + zeros(5000), header),
                    std::pair(header.substr(0, 9) + zeros(90), header), std::pair(header + line + "2.0" + zeros(2'000'000), header + line),
                    std::pair(header + line + zeros(4096) + line, header + line), std::pair(zeros(4096) + line + line, header));
  { summary::csv_writer empty(with.path, with.options()); }
  test::write_file_text(with.path, left);
  { summary::csv_writer csv(with.path, with.options()); }
  CHECK(file_text(with.path) == kept);
  CHECK(log.contains(sw::log_level::warning, "zero byte"));
  test::write_file_text(with.path, zeros(4000));
  {
    summary::jsonl_writer json(with.path, with.options());
    json.add_scalar("loss", 2, 5);
  }
  CHECK(file_text(with.path).starts_with("{\"wall_time\""));
}

TEST_CASE("a tag with a zero byte becomes no zero byte of a CSV file", "[summary][metrics]") {
  const desk with;
  {
    summary::csv_writer csv(with.path, with.options());
    csv.add_scalar(std::string("a\0b", 3), 1, 5);
  }
  CHECK(file_text(with.path) == "wall_time,step,tag,value\n1700000000.000000,5,\"a b\",1\n");
}

TEST_CASE("a binary file of others that begins with zeros is refused as metric file and not touched", "[summary][metrics]") {
  const desk with;
  const std::string other("\0\0\x08\x03 images", 11);
  { summary::csv_writer empty(with.path, with.options()); }
  test::write_file_text(with.path, other);
  CHECK_THROWS_AS(summary::csv_writer(with.path, with.options()), sw::invalid_argument_error);
  CHECK(file_text(with.path) == other);
}

TEST_CASE("a file of something else is refused and not touched", "[summary][metrics]") {
  const desk with;
  const std::string other = "step,loss\n1,0.5\nhalf";
  { summary::csv_writer empty(with.path, with.options()); }
  test::write_file_text(with.path, other);
  CHECK_THROWS_WITH(summary::csv_writer(with.path, with.options()), ContainsSubstring("\"wall_time,step,tag,value\""));
  CHECK_THROWS_AS(summary::jsonl_writer(with.path, with.options()), sw::invalid_argument_error);
  CHECK(file_text(with.path) == other);
}

TEST_CASE("a JSON document of others is refused as metric file and not touched", "[summary][metrics]") {
  const desk with;
  const std::string other = GENERATE("{\"name\": \"no line feed at the end\"}", "{}\n");
  { summary::jsonl_writer empty(with.path, with.options()); }
  test::write_file_text(with.path, other);
  CHECK_THROWS_AS(summary::jsonl_writer(with.path, with.options()), sw::invalid_argument_error);
  CHECK(file_text(with.path) == other);
}

TEST_CASE("a lock file of a metric file that links to another file is refused, and that file is not touched", "[summary][metrics]") {
  const desk with;
  const auto other = with.path + ".other";
  std::filesystem::create_directories(std::filesystem::path(with.path).parent_path());
  test::write_file_text(other, "two years of work");
  std::filesystem::create_symlink(other, with.path + ".lock");
  CHECK_THROWS_AS(summary::csv_writer(with.path, with.options()), sw::invalid_argument_error);
  CHECK(file_text(other) == "two years of work");
}

TEST_CASE("a metric file has one writer at a time", "[summary][metrics]") {
  const desk with;
  {
    summary::csv_writer csv(with.path, with.options());
    CHECK_THROWS_AS(summary::csv_writer(with.path, with.options()), sw::failed_precondition_error);
  }
  CHECK_NOTHROW(summary::csv_writer(with.path, with.options()));
}

TEST_CASE("a failed write of metrics is thrown once and reported", "[summary][metrics]") {
  const test::log_capture log;
  const desk with;
  summary::csv_writer csv(with.path, with.options());
  std::promise<sw::errc> told;
  csv.on_failure([&](const sw::status& failure) { told.set_value(failure.code); });
  with.files->inject({.kind = operation::write, .path_contains = "metrics", .errno_value = ENOSPC, .from_then_on = true});
  csv.add_scalar("loss", 1, 1);
  CHECK_THROWS_AS(csv.flush(), sw::resource_exhausted_error);
  CHECK(told.get_future().get() == sw::errc::resource_exhausted);
  CHECK(csv.has_failed());
  CHECK(csv.failure()->code == sw::errc::resource_exhausted);
  csv.add_scalar("loss", 2, 2);
  CHECK(csv.is_closed());
  CHECK(log.contains(sw::log_level::warning, "metric writer of"));
  CHECK_NOTHROW(csv.close());
}

TEST_CASE("a write that times out on the disk is a failure like others, not a full queue", "[summary][metrics]") {
  const test::log_capture quiet;
  const desk with;
  auto options = with.options();
  if (GENERATE(false, true)) { options.columns = {"loss"}; }
  summary::csv_writer csv(with.path, options);
  std::promise<void> told;
  csv.on_failure([&](const sw::status&) { told.set_value(); });
  with.files->inject({.kind = operation::write, .path_contains = "metrics", .errno_value = ETIMEDOUT});
  csv.add_scalar("loss", 1, 1);
  csv.request_flush();
  told.get_future().wait();
  CHECK_THROWS_AS(csv.add_scalar("loss", 2, 2), sw::deadline_exceeded_error);
  CHECK(csv.is_closed());
  CHECK_NOTHROW(csv.close());
}

TEST_CASE("the first line later than flush_secs after a flush flushes", "[summary][metrics]") {
  const desk with;
  summary::csv_writer csv(with.path, with.options());
  csv.flush();
  const auto before = with.files->operations();
  csv.add_scalar("loss", 1, 1);
  CHECK(with.files->operations() == before);
  std::promise<void> synced;
  with.files->before_each([&](const test::event& asked) {
    if (asked.kind == operation::sync) { synced.set_value(); }
  });
  with.time->advance(std::chrono::seconds(11));
  csv.add_scalar("loss", 2, 2);
  synced.get_future().wait();
  with.files->before_each(nullptr);
}

TEST_CASE("an event writer passes scalars and starts on to its metric writers, and nothing else", "[summary][metrics]") {
  const desk with;
  const auto csv = std::make_shared<summary::csv_writer>(with.path, with.options());
  summary::writer_options options;
  options.clock = with.time;
  options.metrics = {csv};
  summary::writer events(with.directory / "events", options);
  events.add_session_log(sw::format::session_status::start, 3);
  events.add_scalar("loss", 0.1, 3);
  events.add_text("note", "words", 3);
  events.add_session_log(sw::format::session_status::checkpoint, 3);
  events.close();
  CHECK_FALSE(csv->is_closed());
  CHECK(file_text(with.path) ==
        "wall_time,step,tag,value\n"
        "1700000000.000000,3,stepwell/start,\n"
        "1700000000.000000,3,loss,0.1\n");
  CHECK(test::events_of(events.path()).size() == 5);
}

TEST_CASE("a failure of a metric writer is one of the event writer that feeds it", "[summary][metrics]") {
  const test::log_capture log;
  const desk with;
  const auto csv = std::make_shared<summary::csv_writer>(with.path, with.options());
  summary::writer_options options;
  options.metrics = {csv};
  summary::writer events(with.directory / "events", options);
  std::promise<void> told;
  events.on_failure([&](const sw::status&) { told.set_value(); });
  with.files->inject({.kind = operation::write, .path_contains = "metrics", .errno_value = EIO, .from_then_on = true});
  events.add_scalar("loss", 1, 1);
  CHECK_THROWS_AS(events.flush(), sw::error);
  told.get_future().wait();
  CHECK(events.has_failed());
  CHECK(events.failure());
  CHECK_NOTHROW(events.close());
  CHECK(test::events_of(events.path()).size() == 2);  // the event file still contains it
}

namespace {

/// A destination in memory.
struct table_sink final : summary::metric_sink {
  struct row {
    std::int64_t step;
    std::string tag;
    double value;
    std::string text;
    bool is_start;
    friend bool operator==(const row&, const row&) = default;
  };
  struct content {
    std::vector<row> rows;
    int syncs = 0;
    int closes = 0;
    std::string failure;
  };
  explicit table_sink(std::shared_ptr<content> into_) : into(std::move(into_)) {}

  void write(std::span<const summary::metric> numbers) override {
    if (!into->failure.empty()) { throw std::runtime_error(into->failure); }
    for (const auto& one : numbers) {
      into->rows.push_back({one.step, std::string(one.tag), one.value, std::string(one.text), one.is_start});
    }
  }
  void sync() override { ++into->syncs; }
  void close() override { ++into->closes; }

  std::shared_ptr<content> into;
};

}  // namespace

TEST_CASE("a sink of the program receives the numbers in order", "[summary][metrics]") {
  const desk with;
  const auto table = std::make_shared<table_sink::content>();
  {
    summary::sink_writer writer("the table", std::make_unique<table_sink>(table), with.options());
    writer.add_start(1);
    writer.add_scalar("loss", 0.5, 1);
    writer.add_scalar("tokens", std::int64_t{9'007'199'254'740'993}, 2);
    writer.flush();
    CHECK(table->rows.size() == 3);
    CHECK(table->syncs >= 1);
    for (int i = 0; i < 10'000; ++i) { writer.add_scalar("a tag that is longer", i, i); }
  }
  CHECK(table->closes == 1);
  REQUIRE(table->rows.size() == 10'003);
  CHECK(table->rows[0] == table_sink::row{1, "stepwell/start", 0, "", true});
  CHECK(table->rows[1] == table_sink::row{1, "loss", 0.5, "0.5", false});
  CHECK(table->rows[2].text == "9007199254740993");
  CHECK(table->rows.back() == table_sink::row{9999, "a tag that is longer", 9999, "9999", false});
}

TEST_CASE("an exception of a sink is a failure of its writer, thrown once", "[summary][metrics]") {
  const test::log_capture log;
  const desk with;
  const auto table = std::make_shared<table_sink::content>();
  table->failure = "the server is gone";
  summary::sink_writer writer("the table", std::make_unique<table_sink>(table), with.options());
  writer.add_scalar("loss", 0.5, 1);
  try {
    writer.flush();
    FAIL("no failure");
  } catch (const sw::error& failure) {
    CHECK(std::string(failure.what()).find("the table: ") != std::string::npos);
    CHECK(std::string(failure.what()).find("the server is gone") != std::string::npos);
  }
  CHECK(writer.has_failed());
  CHECK_THROWS_AS(summary::sink_writer("none", nullptr, with.options()), sw::invalid_argument_error);
}

TEST_CASE("an event writer forwards its scalars to a sink of the program", "[summary][metrics]") {
  const desk with;
  const auto table = std::make_shared<table_sink::content>();
  const auto sink = std::make_shared<summary::sink_writer>("the table", std::make_unique<table_sink>(table), with.options());
  summary::writer events(with.directory / "events", {.file_system = with.files, .clock = with.time, .metrics = {sink}});
  events.add_scalar("loss", 0.25, 7);
  events.flush();
  CHECK(table->rows == std::vector<table_sink::row>{{7, "loss", 0.25, "0.25", false}});
}

TEST_CASE("a metric writer gets each number as the event writer received it, once", "[summary][metrics]") {
  const test::temporary_directory directory;
  const auto csv = std::make_shared<summary::csv_writer>(directory / "metrics.csv");
  {
    summary::writer events(directory / "events", {.metrics = {csv}});
    events.add_scalar("double", 0.1, 1);
    events.add_scalar("float", 0.1f, 1);
    events.add_scalar("int64", std::numeric_limits<std::int64_t>::min(), 1);
    events.add_scalar("uint64", std::numeric_limits<std::uint64_t>::max(), 1);
    events.add_scalar("int32", 16777217, 1);
    events.add_scalar("bool", true, 1);
    events.add_scalar("\xff", 2, 1);  // no UTF-8
    summary::add_metrics(events, summary::metric_list{{"listed", 1 + 1e-12}}, 1);
  }
  csv->close();
  std::string values;
  std::istringstream lines(file_text(directory / "metrics.csv"));
  for (std::string line; std::getline(lines, line);) { values += line.substr(line.find(',', line.find(',') + 1) + 1) + "\n"; }
  CHECK(values ==
        "tag,value\ndouble,0.1\nfloat,0.1\nint64,-9223372036854775808\nuint64,18446744073709551615\nint32,16777217\nbool,1\n"
        "\xef\xbf\xbd,2\nlisted,1.000000000001\n");
}

TEST_CASE("a CSV file can have a column for each tag", "[summary][metrics]") {
  const test::log_capture log;
  const desk with;
  auto options = with.options();
  options.columns = {"loss", "a,b"};
  {
    summary::csv_writer csv(with.path, options);
    csv.add_start(1);
    csv.add_scalar("loss", 0.1, 1);
    csv.add_scalar("a,b", 16777217, 1);
    csv.add_scalar("other", 1, 1);
    csv.add_scalar("other", 1, 2);
    csv.add_scalar("loss", 0.25f, 2);
    csv.flush();
    CHECK(file_text(with.path) ==
          "wall_time,step,loss,\"a,b\"\n1700000000.000000,1,,\n1700000000.000000,1,0.1,16777217\n"
          "1700000000.000000,2,0.25,\n");
    csv.add_scalar("a,b", 3, 2);  // after the flush: a line of its own
    csv.close();
  }
  CHECK(log.count(sw::log_level::warning) == 1);
  CHECK(log.contains(sw::log_level::warning, "the tag \"other\" is not one of the columns"));
  {
    summary::csv_writer csv(with.path, options);
    csv.add_start(2);
    csv.add_scalar("loss", 0.5, 2);
  }
  CHECK(file_text(with.path).ends_with("1700000000.000000,2,,3\n1700000000.000000,2,,\n1700000000.000000,2,0.5,\n"));
  CHECK_THROWS_AS(summary::csv_writer(with.path, with.options()), sw::invalid_argument_error);  // a file of the other form
  options.columns = {"loss"};
  CHECK_THROWS_AS(summary::csv_writer(with.path, options), sw::invalid_argument_error);
  CHECK_THROWS_WITH(summary::jsonl_writer(with.path + "l", options), ContainsSubstring("only a csv_writer has columns"));
  options.columns = {"loss", "loss"};
  CHECK_THROWS_WITH(summary::csv_writer(with.path + "2", options), ContainsSubstring("the column \"loss\" is given twice"));
}

namespace {

/// A pool of one thread that runs no job until the gate is opened, as if a disk hangs.
struct hanging_pool {
  hanging_pool() {
    gate.close();
    threads->post([this] { gate.pass(); });
    gate.wait_for_somebody();
  }
  void resume() {
    gate.open();
    threads->join();
  }

  test::gate gate;
  std::shared_ptr<io::pool> threads = std::make_shared<io::pool>(1);
};

bool is_ready(const std::future<void>& called) { return called.wait_for(10s) == std::future_status::ready; }

/// A writer with one column whose queue is full, and a thread that is blocked in `add_scalar`.
struct full_csv : desk {
  full_csv() {
    auto made = options();
    made.threads = disk.threads;
    made.max_queue_bytes = 512;
    made.columns = {"loss"};
    csv.emplace(path, made);
    added = std::async(std::launch::async, [this] {
      for (int step = 1; step <= steps; ++step) { csv->add_scalar("loss", step, step); }
    });
    CHECK(time->wait_for_pending(2));  // the timer of the writer, and the blocked thread
  }

  static constexpr int steps = 100;
  hanging_pool disk;
  std::optional<summary::csv_writer> csv;
  std::future<void> added;
};

}  // namespace

TEST_CASE("a sink of the program is closed once, after the last number, also if its writer does not wait for this", "[summary][metrics]") {
  const test::log_capture quiet;
  const desk with;
  const auto table = std::make_shared<table_sink::content>();
  hanging_pool disk;
  auto options = with.options();
  options.threads = disk.threads;
  {
    summary::sink_writer writer("the table", std::make_unique<table_sink>(table), options);
    writer.add_scalar("loss", 0.5, 1);
    if (GENERATE(false, true)) {
      writer.detach();
    } else {
      CHECK_THROWS_AS(writer.close(with.time->now()), sw::deadline_exceeded_error);
    }
  }
  CHECK(table->closes == 0);
  disk.resume();
  CHECK(table->rows.size() == 1);
  CHECK(table->syncs == 1);
  CHECK(table->closes == 1);
}

TEST_CASE("a failure after a close that reached its deadline is logged", "[summary][metrics]") {
  const test::log_capture log;
  const desk with;
  const auto table = std::make_shared<table_sink::content>();
  table->failure = "the server is gone";
  hanging_pool disk;
  auto options = with.options();
  options.threads = disk.threads;
  {
    summary::sink_writer writer("the table", std::make_unique<table_sink>(table), options);
    writer.add_scalar("loss", 0.5, 1);
    CHECK_THROWS_AS(writer.close(with.time->now()), sw::deadline_exceeded_error);
  }
  disk.resume();
  CHECK(log.contains(sw::log_level::error, "the server is gone"));
  CHECK(table->closes == 1);
}

TEST_CASE("the options of a sink writer are checked", "[summary][metrics]") {
  const desk with;
  const auto made = [](const summary::metric_writer_options& options) {
    summary::sink_writer writer("the table", std::make_unique<table_sink>(std::make_shared<table_sink::content>()), options);
  };
  auto options = with.options();
  options.max_queue_bytes = 0;
  CHECK_THROWS_WITH(made(options), ContainsSubstring("max_queue_bytes is 0"));
  options = with.options();
  options.flush_secs = -1;
  CHECK_THROWS_WITH(made(options), ContainsSubstring("flush_secs"));
}

TEST_CASE("with columns, a flush is requested at once although the queue is full and another thread waits for it", "[summary][metrics]") {
  full_csv with;
  const auto requested = std::async(std::launch::async, [&] {
    with.csv->request_flush();
    static_cast<void>(with.csv->start_flush());
    with.csv->detach();
  });
  CHECK(is_ready(requested));
  with.disk.resume();
  requested.wait();
  with.added.get();
  with.csv.reset();
  CHECK(file_text(with.path).ends_with("\n1700000000.000000,99,99\n1700000000.000000,100,100\n"));
}

TEST_CASE("with columns, a flush and a close keep their deadlines although the queue is full", "[summary][metrics]") {
  const test::log_capture quiet;
  full_csv with;
  auto flushed = std::async(std::launch::async, [&] { with.csv->flush(with.time->now() + 5s); });
  CHECK(with.time->wait_for_pending(3));
  with.time->advance(5s);
  CHECK(is_ready(flushed));
  auto closed = std::async(std::launch::async, [&] { with.csv->close(with.time->now()); });
  CHECK(is_ready(closed));
  with.disk.resume();
  CHECK_THROWS_AS(flushed.get(), sw::deadline_exceeded_error);
  CHECK_THROWS_AS(closed.get(), sw::deadline_exceeded_error);
  with.added.get();  // the numbers after the close are dropped
  CHECK(file_text(with.path).starts_with("wall_time,step,loss\n1700000000.000000,1,1\n1700000000.000000,2,2\n"));
}

TEST_CASE("with columns, the failure of a write is thrown by the next add, flush or close, and by no other function",
          "[summary][metrics]") {
  const test::log_capture quiet;
  const desk with;
  hanging_pool disk;
  auto options = with.options();
  options.threads = disk.threads;
  options.columns = {"loss"};
  summary::csv_writer csv(with.path, options);
  std::promise<void> told;
  csv.on_failure([&](const sw::status&) { told.set_value(); });
  with.files->inject({.kind = operation::write, .path_contains = "metrics", .errno_value = ENOSPC});
  csv.add_scalar("loss", 1, 1);
  with.time->advance(11s);
  csv.add_scalar("loss", 2, 2);  // completes the line of step 1, and starts a flush
  disk.gate.open();
  told.get_future().wait();
  CHECK_NOTHROW(csv.request_flush());
  CHECK_FALSE(csv.start_flush().wait().ok());
  CHECK_NOTHROW(csv.detach());
  SECTION("an add") { CHECK_THROWS_AS(csv.add_scalar("loss", 3, 2), sw::resource_exhausted_error); }
  SECTION("a flush") { CHECK_THROWS_AS(csv.flush(), sw::resource_exhausted_error); }
  SECTION("a close, which closes the file nevertheless") {
    CHECK_THROWS_AS(csv.close(), sw::resource_exhausted_error);
    CHECK_NOTHROW(summary::csv_writer(with.path, options));
  }
}

TEST_CASE("with columns, a number that is added after detach is written, too", "[summary][metrics]") {
  const desk with;
  auto options = with.options();
  options.columns = {"loss"};
  {
    summary::csv_writer csv(with.path, options);
    csv.add_scalar("loss", 1, 1);
    csv.detach();
    csv.add_scalar("loss", 2, 2);
  }
  CHECK(file_text(with.path) == "wall_time,step,loss\n1700000000.000000,1,1\n1700000000.000000,2,2\n");
}

TEST_CASE("with columns, a flush that the writer starts writes only complete lines", "[summary][metrics]") {
  const desk with;
  auto options = with.options();
  options.columns = {"loss", "accuracy"};
  options.flush_secs = 0;
  const std::string header = "wall_time,step,loss,accuracy\n";
  std::promise<std::string> written;
  bool is_written = false;
  summary::csv_writer csv(with.path, options);
  csv.add_scalar("loss", 1, 1);
  csv.add_scalar("accuracy", 0.5, 1);
  with.files->before_each([&](const test::event& asked) {
    if (asked.kind != operation::sync || is_written) { return; }
    auto text = file_text(with.path);
    if (text == header) { return; }  // an earlier flush: it may still wait for its turn
    is_written = true;
    written.set_value(std::move(text));
  });
  csv.add_scalar("loss", 2, 2);
  CHECK(written.get_future().get() == header + "1700000000.000000,1,1,0.5\n");
  with.files->before_each(nullptr);
}
