// SPDX-License-Identifier: Apache-2.0
#include "bytes.hpp"

#include <stepwell/format/proto/event.pb.h>
#include <stepwell/format/events/detail/summary_values.hpp>
#include <stepwell/format/events/event.hpp>

#include <bit>
#include <cstring>
#include <limits>

namespace format = stepwell::format;
namespace test = stepwell::test;
using test::bytes_of;

namespace {

// Returns the reference: the same event encoded by protobuf's own classes.
std::string by_protobuf(const format::scalar_event& happened, format::summary_style style, bool with_metadata) {
  tensorflow::Event message;
  message.set_wall_time(happened.wall_time);
  message.set_step(happened.step);
  auto& value = *message.mutable_summary()->add_value();
  value.set_tag(std::string(happened.tag));
  if (style == format::summary_style::simple) {
    value.set_simple_value(happened.value);
  } else {
    value.mutable_tensor()->set_dtype(tensorflow::DT_FLOAT);
    value.mutable_tensor()->mutable_tensor_shape();
    value.mutable_tensor()->set_tensor_content(&happened.value, sizeof happened.value);
    if (with_metadata) { value.mutable_metadata()->mutable_plugin_data()->set_plugin_name("scalars"); }
  }
  return message.SerializeAsString();
}

std::string by_hand(const format::scalar_event& happened, format::summary_style style, bool with_metadata) {
  const format::scalar_encoder encoder(happened, style, with_metadata);
  std::string out(encoder.size() + 8, '#');
  encoder.write(std::as_writable_bytes(std::span(out)).first(encoder.size()));
  CHECK(out.substr(encoder.size()) == "########");
  return out.substr(0, encoder.size());
}

std::uint64_t bits_of(double value) { return std::bit_cast<std::uint64_t>(value); }

// Returns true if the direct decoder reads the event. Protobuf must then read the same.
bool is_read_directly(const std::string& data) {
  std::vector<format::scalar_event> scalars;
  if (!format::decode_scalars(bytes_of(data), scalars)) {
    REQUIRE(scalars.empty());
    return false;
  }
  tensorflow::Event message;
  REQUIRE(message.ParseFromString(data));
  REQUIRE(static_cast<std::size_t>(message.summary().value_size()) == scalars.size());
  for (std::size_t i = 0; i < scalars.size(); ++i) {
    auto& value = *message.mutable_summary()->mutable_value(static_cast<int>(i));
    REQUIRE(value.tag() == scalars[i].tag);
    REQUIRE(value.has_simple_value());
    REQUIRE(std::bit_cast<std::uint32_t>(value.simple_value()) == std::bit_cast<std::uint32_t>(scalars[i].value));
    REQUIRE(bits_of(message.wall_time()) == bits_of(scalars[i].wall_time));
    REQUIRE(message.step() == scalars[i].step);
    value.clear_tag();
    value.clear_value();
    REQUIRE(value.ByteSizeLong() == 0);  // nothing else, also no unknown field
  }
  message.clear_wall_time();
  message.clear_step();
  message.clear_summary();
  REQUIRE(message.ByteSizeLong() == 0);
  return true;
}

// Returns an event with three values, two of them with the same tag.
tensorflow::Event three_values() {
  tensorflow::Event message;
  message.set_wall_time(1.7e9 + 0.25);
  message.set_step(300);
  for (const char* tag : {"loss", "", "loss"}) {
    auto& value = *message.mutable_summary()->add_value();
    value.set_tag(tag);
    value.set_simple_value(0.5F);
  }
  return message;
}

}  // namespace

TEST_CASE("the fast encoder writes what protobuf writes, byte for byte", "[format][scalar]") {
  using limits = std::numeric_limits<float>;
  const std::vector<std::string> tags{"",
                                      "a",
                                      "loss",
                                      "train/loss/\xc3\xa9",
                                      std::string(106, 't'),
                                      std::string(107, 't'),
                                      std::string(127, 't'),
                                      std::string(128, 't'),
                                      std::string(20'000, 't')};
  const std::vector<std::int64_t> steps{0,
                                        1,
                                        127,
                                        128,
                                        16'383,
                                        16'384,
                                        std::int64_t{1} << 35,
                                        -1,
                                        std::numeric_limits<std::int64_t>::max(),
                                        std::numeric_limits<std::int64_t>::min()};
  const std::vector<float> values{0.0F, -0.0F, 1.5F, limits::quiet_NaN(), limits::infinity(), limits::denorm_min()};
  for (const auto& tag : tags) {
    for (const auto step : steps) {
      for (const float value : values) {
        for (const double wall_time : {0.0, -0.0, 1.7e9 + 0.25}) {
          const format::scalar_event happened{wall_time, step, tag, value};
          for (const auto style : {format::summary_style::simple, format::summary_style::tensor}) {
            for (const bool with_metadata : {false, true}) {
              if (by_hand(happened, style, with_metadata) != by_protobuf(happened, style, with_metadata)) {
                FAIL("differs at tag of " << tag.size() << ", step " << step << ", value " << value);
              }
              const bool is_simple = style == format::summary_style::simple;
              if (is_read_directly(by_hand(happened, style, with_metadata)) != is_simple) { FAIL("read directly: " << !is_simple); }
            }
          }
        }
      }
    }
  }
  SUCCEED();
}

TEST_CASE("scalars are read directly, and events that have anything else are left to protobuf", "[format][scalar]") {
  CHECK(is_read_directly(three_values().SerializeAsString()));
  auto message = three_values();
  auto& last = *message.mutable_summary()->mutable_value(2);
  SECTION("a value without a number") { last.clear_value(); }
  SECTION("metadata") { last.mutable_metadata()->set_display_name("Loss"); }
  SECTION("a name of a node") { last.set_node_name("node"); }
  SECTION("a histogram") { last.mutable_histo(); }
  SECTION("no value") { message.mutable_summary()->clear_value(); }
  SECTION("another event") { message.set_file_version("brain.Event:2"); }
  SECTION("the name of the writer") { message.mutable_source_metadata()->set_writer("writer"); }
  SECTION("a field of the future") { message.GetReflection()->MutableUnknownFields(&message)->AddVarint(99, 1); }
  SECTION("more than 256 KiB") { last.set_tag(std::string(256 << 10, 't')); }
  CHECK_FALSE(is_read_directly(message.SerializeAsString()));
}

TEST_CASE("a tag that is not UTF-8 makes an event damaged, also one that is read directly", "[format][scalar]") {
  auto data = three_values().SerializeAsString();
  data[data.find("loss")] = '\xff';
  CHECK_FALSE(is_read_directly(data));
  CHECK(format::decode_event(bytes_of(data)).error().code == stepwell::errc::data_loss);
}

TEST_CASE("scalars with any bit flipped, or cut at any length, are read as protobuf reads them, or not directly", "[format][scalar]") {
  const auto good = three_values().SerializeAsString();
  std::size_t read = 0;
  for (std::size_t size = 0; size < good.size(); ++size) { read += is_read_directly(good.substr(0, size)) ? 1 : 0; }
  CHECK(read == 0);
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    auto changed = good;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    read += is_read_directly(changed) ? 1 : 0;
  }
  CHECK(read > 200);  // bits of the time, the step, the tags and the values
}
