// SPDX-License-Identifier: Apache-2.0
//
// Compares with golden bytes assembled by hand, and with protobuf's own classes.
#include "bytes.hpp"
#include "support/file_text.hpp"
#include "support/paths.hpp"

#include <stepwell/format/proto/event.pb.h>
#include <stepwell/format/events/detail/summary_values.hpp>
#include <stepwell/format/events/event.hpp>

namespace sw = stepwell;
namespace format = stepwell::format;
namespace test = stepwell::test;
namespace kernel = stepwell::kernel;
using test::bytes_of;

namespace {

constexpr double when = 1600000000.5;

format::event summary_at(std::int64_t step, format::summary_value value) {
  format::summary all;
  all.values.push_back(std::move(value));
  return {when, step, std::move(all), ""};
}

// Returns a later value of a tag, which has no metadata.
format::summary_value bare(format::summary_value value) {
  value.metadata.reset();
  return value;
}

// Returns one event of each kind, the content of the golden file.
std::vector<format::event> every_kind() {
  using enum format::summary_style;
  const std::vector<double> few{0, 0, 1.05e-12};
  const std::vector<double> spread{0, 0.5, 1, 3};
  const format::hparams_start start{{{"lr", 0.125}, {"optimizer", "adam"}, {"augment", true}}, "", 1600000000};
  std::vector<format::event> all;
  all.push_back({1600000000, 0, format::file_version{"brain.Event:2"}, ""});
  all.push_back({when, 0, format::session_log{format::session_status::start, "", ""}, ""});
  all.push_back(summary_at(0, format::make_scalar_value("loss", 0.75F, simple)));
  all.push_back(summary_at(300, format::make_scalar_value("loss", 0.0F, simple)));
  all.push_back(summary_at(-1, format::make_scalar_value("loss", -2.5F, simple)));
  all.push_back(summary_at(1, format::make_scalar_value("accuracy", 0.5F, tensor)));
  all.push_back(summary_at(2, bare(format::make_scalar_value("accuracy", 0.625F, tensor))));
  all.push_back(summary_at(3, format::make_histogram_value("weights", kernel::make_growing_histogram(std::span(few)))));
  all.push_back(summary_at(3, format::make_histogram_value("gradients", kernel::make_equal_histogram(std::span(spread), 3))));
  all.push_back(summary_at(3, format::make_text_value("note", "a **bold** word")));
  all.push_back(summary_at(3, format::make_image_value("picture/image", 2, 1, 3, "not a png", simple)));
  all.push_back(summary_at(3, format::make_image_value("picture", 2, 1, 3, "not a png", tensor)));
  all.push_back(summary_at(0, format::make_hparams_value(start)));
  all.push_back({when, 3, format::session_log{format::session_status::checkpoint, "run/model.ckpt-3", ""}, ""});
  all.push_back({when, 0, format::graph_def{std::string("\x0a\x09\x0a\x01x\x12\x04NoOp", 11)}, ""});
  all.push_back({when, 4, format::tagged_run_metadata{"step_4", std::string("\x0a\0", 2)}, ""});
  all.push_back({when, 4, format::session_log{format::session_status::stop, "", ""}, ""});
  return all;
}

std::string golden() { return test::file_text(sw::test::golden("/format/events.bin")); }

}  // namespace

TEST_CASE("every kind of event is encoded to the golden bytes", "[format][event][golden]") {
  const auto expected = test::records_of(golden());
  CHECK(expected.ended_by == sw::errc::truncated);
  CHECK(expected.pending == 0);
  const auto events = every_kind();
  REQUIRE(events.size() == expected.data.size());
  std::vector<std::byte> stream;
  for (std::size_t i = 0; i < events.size(); ++i) {
    INFO("event " << i);
    CHECK(format::encode_event(events[i]) == expected.data[i]);
    format::append_record(stream, bytes_of(format::encode_event(events[i])));
  }
  CHECK(test::text_of(stream) == golden());
}

TEST_CASE("protobuf's own classes read the golden bytes and write them again", "[format][event][golden]") {
  for (const auto& data : test::records_of(golden()).data) {
    tensorflow::Event message;
    REQUIRE(message.ParseFromString(data));
    CHECK(message.SerializeAsString() == data);
    CHECK(message.GetReflection()->GetUnknownFields(message).empty());
  }
}

TEST_CASE("the golden bytes decode to values that encode to the same bytes", "[format][event][golden]") {
  for (const auto& data : test::records_of(golden()).data) {
    const auto read = format::decode_event(bytes_of(data));
    REQUIRE(read.ok());
    CHECK(format::encode_event(*read) == data);
  }
}

TEST_CASE("a golden file with any bit flipped gives the records before it and then an error", "[format][event][golden]") {
  const auto good = golden();
  const auto whole = test::records_of(good).data;
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    auto stream = good;
    stream[bit / 8] = static_cast<char>(stream[bit / 8] ^ (1 << bit % 8));
    const auto read = test::records_of(stream);
    const bool prefix = read.data.size() < whole.size() && std::equal(read.data.begin(), read.data.end(), whole.begin());
    if (!prefix || read.ended_by != sw::errc::data_loss) { FAIL("bit " << bit); }
  }
  SUCCEED();
}

TEST_CASE("an event with any bit flipped, or cut at any length, decodes to a value or an error", "[format][event]") {
  std::size_t refused = 0;
  const auto try_one = [&](const std::string& data) {
    const auto read = format::decode_event(bytes_of(data));
    if (read.ok()) {
      CHECK_NOTHROW(format::decode_event(bytes_of(format::encode_event(*read))).ok());
    } else {
      ++refused;
      if (read.error().code != sw::errc::data_loss) { FAIL(read.error().to_string()); }
    }
  };
  for (const auto& data : test::records_of(golden()).data) {
    for (std::size_t size = 0; size < data.size(); ++size) { try_one(data.substr(0, size)); }
    for (std::size_t bit = 0; bit < data.size() * 8; ++bit) {
      auto changed = data;
      changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
      try_one(changed);
    }
  }
  CHECK(refused > 0);
}

TEST_CASE("fields of the future are passed over", "[format][event]") {
  tensorflow::Event message;
  message.set_step(7);
  message.GetReflection()->MutableUnknownFields(&message)->AddLengthDelimited(99, "whatever");
  message.mutable_summary()->add_value()->set_simple_value(2);
  auto& value = *message.mutable_summary()->mutable_value(0);
  value.GetReflection()->MutableUnknownFields(&value)->AddVarint(77, 5);
  const auto read = format::decode_event(bytes_of(message.SerializeAsString()));
  REQUIRE(read.ok());
  CHECK(read->step == 7);
  CHECK(std::get<float>(std::get<format::summary>(read->what).values[0].value) == 2);
}

TEST_CASE("an empty record is an event without anything", "[format][event]") {
  const auto read = format::decode_event({});
  REQUIRE(read.ok());
  CHECK(read->step == 0);
  CHECK(std::holds_alternative<std::monostate>(read->what));
}

TEST_CASE("the name of the writer of a file is read back", "[format][event]") {
  const format::event first{1, 0, format::file_version{"brain.Event:2"}, "stepwell"};
  const auto read = format::decode_event(bytes_of(format::encode_event(first)));
  REQUIRE(read.ok());
  CHECK(read->source_writer == "stepwell");
}

TEST_CASE("a record of empty values, which would take a hundred times its size, is data loss", "[format][event]") {
  tensorflow::Event message;
  for (int i = 0; i < 200'000; ++i) { message.mutable_summary()->add_value(); }
  CHECK(format::decode_event(bytes_of(message.SerializeAsString())).error().code == sw::errc::data_loss);
}

TEST_CASE("a record with thousands of values, or with one value of many MiB, is read", "[format][event]") {
  tensorflow::Event many;
  for (int i = 0; i < 5000; ++i) { many.mutable_summary()->add_value()->set_simple_value(1); }
  CHECK(format::decode_event(bytes_of(many.SerializeAsString())).ok());
  tensorflow::Event large;
  large.set_graph_def(std::string(100 << 20, 'g'));
  CHECK(format::decode_event(bytes_of(large.SerializeAsString())).ok());
}

TEST_CASE("tensors that repeat a value expand to 8 MiB at most, all of a summary together", "[format][event]") {
  tensorflow::Event message;
  const auto count = GENERATE(1, 3);
  for (int i = 0; i < count; ++i) {
    auto& tensor = *message.mutable_summary()->add_value()->mutable_tensor();
    tensor.set_dtype(tensorflow::DT_FLOAT);
    tensor.mutable_tensor_shape()->add_dim()->set_size(1'000'000);
    tensor.add_float_val(1);
  }
  CHECK(format::decode_event(bytes_of(message.SerializeAsString())).ok() == (count == 1));
}
