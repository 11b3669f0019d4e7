// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/format/examples/example.hpp>

#include <stepwell/format/proto/example.pb.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sw = stepwell;
namespace format = stepwell::format;

namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

const format::example sample{{{"empty", std::monostate()},
                              {"image", std::vector<std::string>{std::string("\x00\xff", 2), ""}},
                              {"label", std::vector<std::int64_t>{-1, 1LL << 40}},
                              {"weights", std::vector<float>{0.5F, -2}}}};

}  // namespace

TEST_CASE("an example is what protobuf's own classes read and write", "[format][example]") {
  ::tensorflow::Example message;
  REQUIRE(message.ParseFromString(encode(sample)));
  const auto& features = message.features().feature();
  CHECK(features.size() == 4);
  CHECK(features.at("image").bytes_list().value(0) == std::string("\x00\xff", 2));
  CHECK(features.at("label").int64_list().value(1) == 1LL << 40);
  CHECK(features.at("weights").float_list().value(1) == -2);
  CHECK(features.at("empty").kind_case() == ::tensorflow::Feature::KIND_NOT_SET);
  const auto decoded = format::decode_example(bytes_of(message.SerializeAsString()));
  REQUIRE(decoded.ok());
  CHECK(*decoded == sample);
}

TEST_CASE("an example has the bytes that TensorFlow's documentation gives", "[format][example]") {
  // tf.train.Example{features{feature{key: "a", value{int64_list{value: 3}}}}}, by the wire format of protobuf.
  const std::string bytes(
      "\x0a\x0c\x0a\x0a\x0a\x01"
      "a"
      "\x12\x05\x1a\x03\x0a\x01\x03",
      14);
  CHECK(encode(format::example{{{"a", std::vector<std::int64_t>{3}}}}) == bytes);
}

TEST_CASE("values are read by name and type, and an error says which there are", "[format][example]") {
  CHECK(sw::value_or_throw(integers(sample, "label"))[1] == 1LL << 40);
  CHECK(sw::value_or_throw(floats(sample, "weights"))[0] == 0.5F);
  CHECK(sw::value_or_throw(byte_strings(sample, "image"))[1].empty());
  CHECK_THAT(floats(sample, "width").error().message, ContainsSubstring("its features are: \"empty\", \"image\", \"label\", \"weights\""));
  CHECK_THAT(floats(sample, "label").error().message, ContainsSubstring("\"label\" holds integers, not floats"));
  CHECK(floats(sample, "empty").error().code == sw::errc::invalid_argument);
}

TEST_CASE("bytes that are no example are data loss", "[format][example]") {
  const auto whole = encode(sample);
  CHECK(format::decode_example({}).ok());
  CHECK_FALSE(format::decode_example(bytes_of(std::string_view(whole).substr(0, whole.size() - 1))).ok());
  CHECK(format::decode_example(bytes_of("\x0a\xff\xff")).error().code == sw::errc::data_loss);
}
