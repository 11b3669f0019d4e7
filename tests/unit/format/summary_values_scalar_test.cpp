// SPDX-License-Identifier: Apache-2.0
#include "bytes.hpp"

#include <stepwell/format/proto/event.pb.h>
#include <stepwell/format/events/detail/summary_values.hpp>

#include <cstring>
#include <limits>

namespace format = stepwell::format;
namespace test = stepwell::test;

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
            }
          }
        }
      }
    }
  }
  SUCCEED();
}
