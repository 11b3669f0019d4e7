// SPDX-License-Identifier: Apache-2.0
#include "bytes.hpp"

#include <stepwell/format/proto/event.pb.h>
#include <stepwell/format/proto/summary.pb.h>
#include <stepwell/format/events/detail/summary_values.hpp>
#include <stepwell/format/events/event.hpp>

#include <complex>

namespace sw = stepwell;
namespace format = stepwell::format;
namespace test = stepwell::test;
using test::bytes_of;

namespace {

sw::result<format::summary> decoded(const tensorflow::Summary& message) {
  tensorflow::Event happened;
  *happened.mutable_summary() = message;
  const auto read = format::decode_event(bytes_of(happened.SerializeAsString()));
  if (!read) { return read.error(); }
  return std::get<format::summary>(read->what);
}
sw::result<format::summary> decoded(const tensorflow::TensorProto& tensor) {
  tensorflow::Summary message;
  auto& value = *message.add_value();
  value.set_tag("t");
  *value.mutable_tensor() = tensor;
  return decoded(message);
}

tensorflow::Summary encoded(const format::summary& values) {
  tensorflow::Event happened;
  REQUIRE(happened.ParseFromString(format::encode_event({.wall_time = 0, .step = 0, .what = values, .source_writer = {}})));
  return happened.summary();
}

tensorflow::TensorProto proto_of(sw::dtype type, const std::vector<std::int64_t>& shape) {
  tensorflow::TensorProto message;
  message.set_dtype(static_cast<tensorflow::DataType>(type));
  for (const auto size : shape) { message.mutable_tensor_shape()->add_dim()->set_size(size); }
  return message;
}

template<class T>
std::vector<T> elements(const tensorflow::TensorProto& message) {
  const auto read = decoded(message);
  REQUIRE(read.ok());
  const auto& made = std::get<sw::tensor>(read->values.at(0).value);
  std::vector<T> all(made.bytes().size() / sizeof(T));
  std::memcpy(all.data(), made.bytes().data(), made.bytes().size());
  return all;
}

bool refused(const tensorflow::TensorProto& message) {
  const auto read = decoded(message);
  return !read.ok() && read.error().code == sw::errc::data_loss && read.error().place == "tag t";
}

}  // namespace

TEST_CASE("a tensor's numbers are found in the typed field of its dtype", "[format][summary]") {
  using sw::dtype;
  auto float32 = proto_of(dtype::float32, {2});
  float32.add_float_val(1.5F);
  float32.add_float_val(-2);
  CHECK(elements<float>(float32) == std::vector<float>{1.5F, -2});
  auto float64 = proto_of(dtype::float64, {1});
  float64.add_double_val(0.1);
  CHECK(elements<double>(float64) == std::vector<double>{0.1});
  auto int8 = proto_of(dtype::int8, {2});
  int8.add_int_val(-3);
  int8.add_int_val(4);
  CHECK(elements<std::int8_t>(int8) == std::vector<std::int8_t>{-3, 4});
  auto uint16 = proto_of(dtype::uint16, {1});
  uint16.add_int_val(65'535);
  CHECK(elements<std::uint16_t>(uint16) == std::vector<std::uint16_t>{65'535});
  auto half = proto_of(dtype::half, {1});
  half.add_half_val(0x3c00);
  CHECK(elements<std::uint16_t>(half) == std::vector<std::uint16_t>{0x3c00});
  auto int64 = proto_of(dtype::int64, {1});
  int64.add_int64_val(std::int64_t{-1} << 40);
  CHECK(elements<std::int64_t>(int64) == std::vector<std::int64_t>{std::int64_t{-1} << 40});
  auto uint64 = proto_of(dtype::uint64, {1});
  uint64.add_uint64_val(~std::uint64_t{0});
  CHECK(elements<std::uint64_t>(uint64) == std::vector<std::uint64_t>{~std::uint64_t{0}});
  auto boolean = proto_of(dtype::boolean, {3});
  boolean.add_bool_val(true);
  boolean.add_bool_val(false);
  CHECK(elements<char>(boolean) == std::vector<char>{1, 0, 0});
  auto float8 = proto_of(dtype::float8_e4m3fn, {3});
  float8.set_float8_val("\x38\xb8");
  CHECK(elements<std::uint8_t>(float8) == std::vector<std::uint8_t>{0x38, 0xb8, 0xb8});
  auto int4 = proto_of(dtype::int4, {2});
  int4.add_int_val(-8);
  int4.add_int_val(7);
  CHECK(elements<std::int8_t>(int4) == std::vector<std::int8_t>{-8, 7});
}

TEST_CASE("complex numbers come in pairs, and the last pair is what is repeated", "[format][summary]") {
  auto message = proto_of(sw::dtype::complex64, {3});
  for (const float part : {1.0F, 2.0F, 3.0F, 4.0F}) { message.add_scomplex_val(part); }
  CHECK(elements<float>(message) == std::vector<float>{1, 2, 3, 4, 3, 4});
}

TEST_CASE("one value with a larger shape fills the tensor, and no value means zeros", "[format][summary]") {
  auto message = proto_of(sw::dtype::float32, {2, 3});
  CHECK(elements<float>(message) == std::vector<float>(6, 0.0F));
  message.add_float_val(2.5F);
  CHECK(elements<float>(message) == std::vector<float>(6, 2.5F));
  auto strings = proto_of(sw::dtype::string, {2});
  strings.add_string_val("same");
  const auto read = decoded(strings);
  REQUIRE(read.ok());
  CHECK(std::get<sw::tensor>(read->values[0].value).strings()[1] == "same");
}

TEST_CASE("a tensor whose shape and content disagree is refused, with its tag", "[format][summary]") {
  auto message = proto_of(sw::dtype::float32, {2});
  message.set_tensor_content(std::string(9, 'x'));
  CHECK(refused(message));
  message.set_tensor_content(std::string(8, 'x'));
  CHECK_FALSE(refused(message));
  message.mutable_tensor_shape()->set_unknown_rank(true);
  CHECK(refused(message));
  CHECK(refused(proto_of(sw::dtype::float32, {-1})));
  auto many = proto_of(sw::dtype::float32, {1});
  many.add_float_val(1);
  many.add_float_val(2);
  CHECK(refused(many));
}

TEST_CASE("a few bytes cannot ask for more memory than a tensor may have", "[format][summary]") {
  const std::int64_t big = std::int64_t{1} << 31;
  for (const auto type : {sw::dtype::float32, sw::dtype::string, sw::dtype::complex128}) {
    for (const auto& shape : {std::vector<std::int64_t>{big}, {big, big, big}, {big, big, big, big, big}, {1 << 20, 1 << 10}}) {
      auto message = proto_of(type, shape);
      CHECK(refused(message));
      message.add_float_val(1);
      message.add_string_val("x");
      message.add_dcomplex_val(1);
      message.add_dcomplex_val(1);
      CHECK(refused(message));
    }
  }
  CHECK_FALSE(refused(proto_of(sw::dtype::float32, {0, big, big})));
}

TEST_CASE("one long string cannot be repeated beyond the memory that a tensor may have", "[format][summary]") {
  auto message = proto_of(sw::dtype::string, {1000});
  message.add_string_val(std::string(100, 'x'));
  CHECK_FALSE(refused(message));
  message.add_string_val(std::string(10'000, 'x'));  // the last one is repeated
  CHECK(refused(message));
}

TEST_CASE("a tensor we cannot hold is passed on as it is", "[format][summary]") {
  tensorflow::Summary message;
  auto& tensor = *message.add_value()->mutable_tensor();
  tensor.set_dtype(tensorflow::DT_VARIANT);
  tensor.add_variant_val("whatever");
  tensor.mutable_tensor_shape();
  const auto read = decoded(message);
  REQUIRE(read.ok());
  CHECK(std::holds_alternative<format::opaque_tensor>(read->values[0].value));
  CHECK(encoded(*read).SerializeAsString() == message.SerializeAsString());
}

TEST_CASE("metadata, node names, audio and old histograms are kept", "[format][summary]") {
  tensorflow::Summary message;
  auto& sound = *message.add_value();
  sound.set_node_name("node");
  sound.mutable_audio()->set_sample_rate(8000);
  sound.mutable_audio()->set_num_channels(2);
  sound.mutable_audio()->set_length_frames(3);
  sound.mutable_audio()->set_encoded_audio_string("RIFF");
  sound.mutable_audio()->set_content_type("audio/wav");
  auto& metadata = *sound.mutable_metadata();
  metadata.mutable_plugin_data()->set_plugin_name("p");
  metadata.mutable_plugin_data()->set_content(std::string("\0\1", 2));
  metadata.set_display_name("d");
  metadata.set_summary_description("s");
  metadata.set_data_class(tensorflow::DATA_CLASS_BLOB_SEQUENCE);
  message.add_value()->set_obsolete_old_style_histogram("old");
  const auto read = decoded(message);
  REQUIRE(read.ok());
  CHECK(read->values[0].metadata->data_class == format::data_class::blob_sequence);
  CHECK(encoded(*read).SerializeAsString() == message.SerializeAsString());
}

static sw::result<format::hparams_record> decoded(const format::hparams_start& start) {
  return format::decode_hparams(bytes_of(format::make_hparams_value(start).metadata->plugin_content));
}

TEST_CASE("hyperparameters of every kind come back", "[format][hparams]") {
  const format::hparams_start start{{{"lr", 1e-3}, {"layers", 3}, {"name", "mlp"}, {"augment", false}}, "group", 12.5};
  const auto read = decoded(start);
  REQUIRE(read.ok());
  const auto& same = std::get<format::hparams_start>(*read);
  CHECK(same.hparams == start.hparams);
  CHECK(std::get<double>(same.hparams.at("layers").get()) == 3);
  CHECK(std::get<std::string>(same.hparams.at("name").get()) == "mlp");
  CHECK(same.group_name == "group");
  CHECK(same.start_time_secs == 12.5);
}

TEST_CASE("text that is not UTF-8 is mended, for a reader would refuse the whole event", "[format][summary]") {
  const format::summary_value value{"bad\xff", "\xfe", format::summary_metadata{"p\x80", "\x80", "\xc3", "\xc3", {}}, 1.0F};
  const auto read = decoded(encoded({{value}}));
  REQUIRE(read.ok());
  CHECK(read->values[0].tag == "bad\xef\xbf\xbd");
  CHECK(read->values[0].metadata->plugin_content == "\x80");
  const format::hparams_start start{{{"na\xffme", "va\xfflue"}}, "", 0};
  const auto again = decoded(start);
  REQUIRE(again.ok());
  CHECK(std::get<format::hparams_start>(*again).hparams.at("na\xef\xbf\xbdme") == format::hparam_value("va\xef\xbf\xbdlue"));
}

TEST_CASE("bytes that are no hyper-parameters are data loss", "[format][hparams]") {
  CHECK(format::decode_hparams({}).error().code == sw::errc::data_loss);
  CHECK(format::decode_hparams(bytes_of("\x0a")).error().code == sw::errc::data_loss);
}
