// SPDX-License-Identifier: Apache-2.0
#include "events_of.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/format/events/detail/summary_values.hpp>
#include <stepwell/summary/writer.hpp>

#include <limits>
#include <thread>

namespace sw = stepwell;
namespace format = stepwell::format;
namespace summary = stepwell::summary;
namespace test = stepwell::test;

namespace {

// A writer in its own directory, with a clock that stands still at 1700000000.
struct desk {
  test::temporary_directory directory;
  std::shared_ptr<sw::manual_clock> time = std::make_shared<sw::manual_clock>();

  [[nodiscard]] summary::writer_options options(format::summary_style style = format::summary_style::simple) const {
    summary::writer_options made;
    made.clock = time;
    made.style = style;
    return made;
  }
};

constexpr std::size_t first_record = 40;  // size in bytes of the record that contains brain.Event:2
constexpr std::size_t loss_record = 42;   // size in bytes of a scalar in the old style with the tag "loss" and a small step

bool has_metadata(const format::event& happened) { return test::values_of(happened).at(0).metadata.has_value(); }

}  // namespace

TEST_CASE("EVT-1 EVT-3 the first record says which format this is, and is on the disk at once", "[summary][writer]") {
  const desk with;
  const summary::writer writer(with.directory.path() + "/deep/run", with.options());
  CHECK(std::filesystem::path(writer.path()).parent_path() == std::filesystem::canonical(with.directory.path() + "/deep/run"));
  const auto events = test::events_of(writer.path());
  REQUIRE(events.size() == 1);
  CHECK(events[0].wall_time == 1'700'000'000);
  CHECK(std::get<format::file_version>(events[0].what).text == "brain.Event:2");
}

TEST_CASE("EVT-9 scalars stand in the file in order, each with the time of its call", "[summary][writer]") {
  const desk with;
  summary::writer writer(with.directory.path(), with.options());
  writer.add_scalar("loss", 0.5F, 0);
  with.time->advance(std::chrono::milliseconds(250));
  writer.add_scalar("loss", 0.25, 1);
  writer.add_scalar("count", 7, 1);
  writer.close();
  const auto events = test::events_of(writer.path());
  REQUIRE(events.size() == 4);
  CHECK(events[1].wall_time == 1'700'000'000);
  CHECK(events[2].wall_time == 1'700'000'000.25);
  CHECK(events[2].step == 1);
  CHECK(test::values_of(events[2])[0].tag == "loss");
  CHECK(std::get<float>(test::values_of(events[2])[0].value) == 0.25F);
  CHECK(std::get<float>(test::values_of(events[3])[0].value) == 7);
}

TEST_CASE("EVT-10 in tensor style the metadata come with the first value of a tag only", "[summary][writer]") {
  const desk with;
  summary::writer writer(with.directory.path(), with.options(format::summary_style::tensor));
  for (const int step : {1, 2}) {
    writer.add_scalar("loss", step, step);
    writer.add_histogram("weights", std::span<const float>(), step);
    writer.add_text("note", "text", step);
    writer.add_scalar("other", step, step);
  }
  writer.close();
  const auto events = test::events_of(writer.path());
  REQUIRE(events.size() == 9);
  for (std::size_t i = 1; i < events.size(); ++i) { CHECK(has_metadata(events[i]) == (i <= 4)); }
  CHECK(test::values_of(events[1])[0].metadata->plugin_name == "scalars");
  CHECK(test::values_of(events[2])[0].metadata->plugin_name == "histograms");
  CHECK(std::get<sw::tensor>(test::values_of(events[5])[0].value).as<float>()[0] == 2);

  summary::writer next(with.directory.path(), with.options(format::summary_style::tensor));
  next.add_scalar("loss", 3, 3);
  next.close();
  CHECK(has_metadata(test::events_of(next.path())[1]));
}

TEST_CASE("EVT-10 metadata that a caller gives again are left out", "[summary][writer]") {
  const desk with;
  summary::writer writer(with.directory.path(), with.options());
  format::summary_metadata mine;
  mine.plugin_name = "mine";
  for (const int step : {1, 2}) {
    format::summary values;
    for (const std::string tag : {"a", "b"}) { values.values.push_back({tag, "", mine, static_cast<float>(step)}); }
    writer.add_summary(std::move(values), step);
  }
  writer.close();
  const auto events = test::events_of(writer.path());
  REQUIRE(events.size() == 3);
  for (const auto& value : test::values_of(events[1])) { CHECK(value.metadata->plugin_name == "mine"); }
  for (const auto& value : test::values_of(events[2])) { CHECK_FALSE(value.metadata); }
}

TEST_CASE("histograms are TF1's in the old style and thirty equal buckets in the new", "[summary][writer]") {
  const desk with;
  const std::vector<float> values{0, 1, 2, 3};
  summary::writer old(with.directory.path(), with.options());
  old.add_histogram("weights", std::span<const float>(values), 5);
  old.close();
  const auto event = test::events_of(old.path()).at(1);
  const auto& histogram = std::get<format::histogram_value>(test::values_of(event)[0].value);
  CHECK(event.step == 5);
  CHECK(histogram.num == 4);
  CHECK(histogram.max == 3);
  CHECK(histogram.sum_squares == 14);

  summary::writer tensors(with.directory.path(), with.options(format::summary_style::tensor));
  const std::vector<double> doubles(values.begin(), values.end());
  tensors.add_histogram("weights", std::span<const double>(doubles), 5);
  tensors.close();
  const auto again = test::events_of(tensors.path()).at(1);
  CHECK(std::get<sw::tensor>(test::values_of(again)[0].value).shape() == sw::tensor_shape{30, 3});
}

TEST_CASE("values that are not finite are left out of a histogram, with one warning for each tag", "[summary][writer]") {
  const desk with;
  const test::log_capture log;
  const std::vector<float> values{1, std::numeric_limits<float>::quiet_NaN()};
  summary::writer writer(with.directory.path(), with.options());
  for (const int step : {1, 2, 3}) { writer.add_histogram("w", std::span<const float>(values), step); }
  writer.close();
  CHECK(log.count(sw::log_level::warning) == 1);
  CHECK(log.contains(sw::log_level::warning, "1 of the 2 values of histogram w at step 1"));
  CHECK(std::get<format::histogram_value>(test::values_of(test::events_of(writer.path()).at(3))[0].value).num == 1);
}

TEST_CASE("images are packed as PNG, in either style", "[summary][writer]") {
  const desk with;
  const std::vector<std::byte> pixels(12, std::byte{99});
  const summary::image_view image{pixels, 2, 2, 3};
  summary::writer old(with.directory.path(), with.options());
  old.add_image("picture", image, 1);
  old.close();
  const auto event = test::events_of(old.path()).at(1);
  CHECK(test::values_of(event)[0].tag == "picture/image");
  const auto& value = std::get<format::image_value>(test::values_of(event)[0].value);
  CHECK(value.colorspace == 3);
  CHECK(value.encoded.substr(1, 3) == "PNG");

  summary::writer tensors(with.directory.path(), with.options(format::summary_style::tensor));
  tensors.add_image("picture", image, 1);
  CHECK_THROWS_AS(tensors.add_image("picture", (summary::image_view{pixels, 2, 3, 3}), 1), sw::invalid_argument_error);
  tensors.close();
  const auto again = test::events_of(tensors.path());
  REQUIRE(again.size() == 2);
  const auto& held = std::get<sw::tensor>(test::values_of(again[1])[0].value);
  CHECK(test::values_of(again[1])[0].tag == "picture");
  CHECK(held.strings()[0] == "2");
  CHECK(held.strings()[2] == value.encoded);
}

TEST_CASE("hyperparameters are written once", "[summary][writer]") {
  const desk with;
  const test::log_capture log;
  summary::writer writer(with.directory.path(), with.options());
  writer.add_hparams({{"lr", 0.1}, {"layers", 2}, {"name", "mlp"}, {"augment", false}}, "group");
  writer.add_hparams({{"lr", 0.2}});
  writer.add_hparams_end(format::hparams_status::success);
  writer.close();
  CHECK(log.count(sw::log_level::warning) == 1);
  const auto events = test::events_of(writer.path());
  REQUIRE(events.size() == 3);
  CHECK(test::values_of(events[1])[0].tag == "_hparams_/session_start_info");
  const auto& content = test::values_of(events[1])[0].metadata->plugin_content;
  const auto start = std::get<format::hparams_start>(*format::decode_hparams(std::as_bytes(std::span(content))));
  CHECK(std::get<double>(start.hparams.at("lr").get()) == 0.1);
  CHECK(std::get<bool>(start.hparams.at("augment").get()) == false);
  CHECK(start.start_time_secs == 1'700'000'000);
  CHECK(start.group_name == "group");
}

TEST_CASE("EVT-9 EVT-11 session logs, graphs, run metadata and any other event are passed on", "[summary][writer]") {
  const desk with;
  summary::writer writer(with.directory.path(), with.options());
  writer.add_session_log(format::session_status::start, 11);
  writer.add_session_log(format::session_status::checkpoint, 20, "run/model.ckpt-20");
  writer.add_graph("graph");
  writer.add_meta_graph("meta");
  writer.add_run_metadata("metadata", "step_20", 20);
  CHECK_THROWS_AS(writer.add_run_metadata("metadata", "step_20", 21), sw::invalid_argument_error);
  writer.add_event({5, 3, format::log_message{20, "hello"}, ""});
  const auto bytes = format::encode_event({6, 4, {}, ""});
  writer.add_event_bytes(std::as_bytes(std::span(bytes)));
  writer.add_session_log(format::session_status::stop, 30);
  writer.close();
  const auto events = test::events_of(writer.path());
  REQUIRE(events.size() == 9);
  CHECK(std::get<format::session_log>(events[1].what).status == format::session_status::start);
  CHECK(events[1].step == 11);
  CHECK(std::get<format::session_log>(events[2].what).checkpoint_path == "run/model.ckpt-20");
  CHECK(std::get<format::graph_def>(events[3].what).bytes == "graph");
  CHECK(std::get<format::meta_graph_def>(events[4].what).bytes == "meta");
  CHECK(std::get<format::tagged_run_metadata>(events[5].what).tag == "step_20");
  CHECK(events[6].wall_time == 5);
  CHECK(events[7].step == 4);
  CHECK(std::get<format::session_log>(events[8].what).status == format::session_status::stop);
}

TEST_CASE("a tag that is not UTF-8 is mended, so that readers take the event", "[summary][writer]") {
  const desk with;
  for (const auto style : {format::summary_style::simple, format::summary_style::tensor}) {
    summary::writer writer(with.directory.path(), with.options(style));
    writer.add_scalar("bad\xff", 1, 1);
    writer.add_text("worse\xc3", "text \x80", 1);
    writer.add_scalar("g\xc3\xbcte", 1, 1);
    writer.close();
    const auto events = test::events_of(writer.path());
    CHECK(test::values_of(events.at(1))[0].tag == "bad\xef\xbf\xbd");
    CHECK(test::values_of(events.at(2))[0].tag == "worse\xef\xbf\xbd");
    CHECK(test::values_of(events.at(3))[0].tag == "g\xc3\xbcte");
  }
}

TEST_CASE("EVT-6 flush returns when all added events are in the file", "[summary][writer]") {
  const desk with;
  summary::writer writer(with.directory.path(), with.options());
  for (int step = 1; step <= 100; ++step) { writer.add_scalar("loss", step, step); }
  writer.flush();
  CHECK(test::events_of(writer.path()).size() == 101);
}

TEST_CASE("EVT-5 D-38 the first event later than flush_secs after a flush flushes, time alone does not", "[summary][writer]") {
  const desk with;
  summary::writer writer(with.directory.path(), with.options());
  const auto size = [&] { return std::filesystem::file_size(writer.path()); };
  const auto empty = size();
  writer.add_scalar("loss", 1, 1);
  with.time->advance(std::chrono::seconds(119));
  writer.add_scalar("loss", 2, 2);
  with.time->advance(std::chrono::seconds(2));
  CHECK(size() == empty);
  writer.add_scalar("loss", 3, 3);
  REQUIRE(test::eventually([&] { return size() == empty + 3 * loss_record; }));  // written in the background
  CHECK(test::events_of(writer.path()).size() == 4);
  const auto full = size();
  writer.add_scalar("loss", 4, 4);
  CHECK(size() == full);  // the flush started a new period
}

TEST_CASE("with a period of nothing every event is flushed", "[summary][writer]") {
  const desk with;
  auto options = with.options();
  options.flush_secs = 0;
  summary::writer writer(with.directory.path(), options);
  for (std::size_t step = 1; step <= 3; ++step) {
    writer.add_scalar("loss", 1, 1);
    REQUIRE(test::eventually([&] { return std::filesystem::file_size(writer.path()) == first_record + step * loss_record; }));
  }
}

TEST_CASE("EVT-1 a queue that is far smaller than the added events blocks and loses nothing", "[summary][writer]") {
  const desk with;
  auto options = with.options(format::summary_style::tensor);
  options.max_queue_bytes = 200;
  summary::writer writer(with.directory.path(), options);
  for (int step = 1; step <= 2'000; ++step) { writer.add_scalar("loss", step, step); }
  writer.add_text("long", std::string(5'000, 'x'), 3);
  writer.close();
  const auto events = test::events_of(writer.path());
  REQUIRE(events.size() == 2'002);
  for (int step = 1; step <= 2'000; ++step) {
    if (events[static_cast<std::size_t>(step)].step != step) { FAIL("step " << step); }
  }
}

TEST_CASE("several threads may add; each one's events keep their order, and metadata come first", "[summary][writer]") {
  const desk with;
  auto options = with.options(format::summary_style::tensor);
  options.max_queue_bytes = 4'096;
  summary::writer writer(with.directory.path(), options);
  const auto produce = [&](const std::string& own) {
    for (int step = 1; step <= 500; ++step) {
      writer.add_scalar(own, step, step);
      writer.add_scalar("shared", step, step);
      if (step % 100 == 0) { writer.add_text("text", own, step); }
    }
  };
  std::thread one(produce, "one");
  std::thread two(produce, "two");
  one.join();
  two.join();
  writer.close();
  const auto events = test::events_of(writer.path());
  CHECK(events.size() == 1 + 2 * 1'005);
  std::map<std::string, std::int64_t> last;
  for (std::size_t i = 1; i < events.size(); ++i) {
    const auto& value = test::values_of(events[i])[0];
    if (has_metadata(events[i]) != !last.contains(value.tag)) { FAIL("metadata of " << value.tag << " at " << i); }
    if (value.tag != "shared" && value.tag != "text" && events[i].step != last[value.tag] + 1) { FAIL("order of " << value.tag); }
    last[value.tag] = events[i].step;
  }
}

TEST_CASE("EVT-6 after close each add warns and drops, and closing again does nothing", "[summary][writer]") {
  const desk with;
  summary::writer writer(with.directory.path(), with.options());
  writer.close();
  const test::log_capture log;
  writer.add_scalar("loss", 1, 1);
  writer.add_text("note", "late", 1);
  writer.add_session_log(format::session_status::stop, 1);
  CHECK(log.count(sw::log_level::warning) == 3);
  CHECK(log.contains(sw::log_level::warning, writer.directory()));
  writer.add_hparams({{"lr", 1}});
  writer.add_image("i", {}, 1);
  writer.add_histogram("h", std::span<const float>(), 1);
  CHECK(log.count(sw::log_level::warning) == 6);
  writer.close();
  writer.flush();
  CHECK(writer.is_closed());
  CHECK(test::events_of(writer.path()).size() == 1);
}

TEST_CASE("a writer that is dropped has written everything", "[summary][writer]") {
  const desk with;
  std::string path;
  {
    summary::writer writer(with.directory.path(), with.options());
    path = writer.path();
    writer.add_scalar("loss", 1, 1);
  }
  CHECK(test::events_of(path).size() == 2);
}

TEST_CASE("EVT-6, D-9 a later writer never touches an earlier one's file", "[summary][writer]") {
  const desk with;
  std::vector<std::string> paths;
  for (int i = 0; i < 3; ++i) {
    summary::writer writer(with.directory.path(), with.options());
    writer.add_scalar("loss", i, i);
    paths.push_back(writer.path());
  }
  CHECK(std::ranges::is_sorted(paths));
  CHECK(test::file_names_in(with.directory.path()).size() == 3);
  for (const auto& path : paths) { CHECK(test::events_of(path).size() == 2); }
}

TEST_CASE("EVT-2 a suffix ends the name, and must not contain a path", "[summary][writer]") {
  const desk with;
  auto options = with.options();
  options.filename_suffix = ".eval";
  CHECK(summary::writer(with.directory.path(), options).path().ends_with(".eval"));
  options.filename_suffix = "/../x";
  CHECK_THROWS_AS(summary::writer(with.directory.path(), options), sw::invalid_argument_error);
}
