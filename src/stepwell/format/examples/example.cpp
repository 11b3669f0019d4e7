// SPDX-License-Identifier: Apache-2.0
#include "stepwell/format/examples/example.hpp"

#include "stepwell/format/detail/messages.hpp"
#include "stepwell/format/proto/example.pb.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <utility>

namespace stepwell::format {
namespace {

namespace pb = ::google::protobuf;

constexpr std::string_view name_of_kind[] = {"no values", "byte strings", "floats", "integers"};

std::string names_in(const example& from) {
  std::string names;
  for (const auto& [name, values] : from.features) { names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", name); }
  return names.empty() ? "none" : names;
}

template<class T>
result<std::span<const T>> list_of(const example& from, std::string_view name) {
  const auto found = from.features.find(name);
  if (found == from.features.end()) {
    return status(errc::not_found, fmt::format("the example has no feature \"{}\"; its features are: {}", name, names_in(from)));
  }
  const auto* const list = std::get_if<std::vector<T>>(&found->second);
  if (list != nullptr) { return std::span<const T>(*list); }
  return status(errc::invalid_argument, fmt::format("the feature \"{}\" holds {}, not {}; read it as those", name,
                                                    name_of_kind[found->second.index()], name_of_kind[feature(std::vector<T>()).index()]));
}

feature feature_of(const ::tensorflow::Feature& message) {
  const auto copied = [](const auto& list) { return feature(std::vector(list.value().begin(), list.value().end())); };
  switch (message.kind_case()) {
    case ::tensorflow::Feature::kBytesList: return copied(message.bytes_list());
    case ::tensorflow::Feature::kFloatList: return copied(message.float_list());
    case ::tensorflow::Feature::kInt64List: return copied(message.int64_list());
    case ::tensorflow::Feature::KIND_NOT_SET: break;
  }
  return {};
}

struct feature_writer {
  ::tensorflow::Feature& to;

  void operator()(std::monostate) const {}
  void operator()(const std::vector<std::string>& values) const {
    auto& list = *to.mutable_bytes_list();
    for (const auto& value : values) { list.add_value(value); }
  }
  void operator()(const std::vector<float>& values) const { to.mutable_float_list()->mutable_value()->Add(values.begin(), values.end()); }
  void operator()(const std::vector<std::int64_t>& values) const {
    to.mutable_int64_list()->mutable_value()->Add(values.begin(), values.end());
  }
};

}  // namespace

result<std::span<const std::string>> byte_strings(const example& from, std::string_view name) { return list_of<std::string>(from, name); }
result<std::span<const float>> floats(const example& from, std::string_view name) { return list_of<float>(from, name); }
result<std::span<const std::int64_t>> integers(const example& from, std::string_view name) { return list_of<std::int64_t>(from, name); }

result<example> decode_example(std::span<const std::byte> bytes) {
  ::tensorflow::Example message;
  if (!parse_message(message, bytes)) {
    return status(errc::data_loss,
                  fmt::format("a record of {} bytes is not a tf.Example; check that the file holds examples", bytes.size()));
  }
  example made;
  for (const auto& [name, values] : message.features().feature()) { made.features.emplace(name, feature_of(values)); }
  return made;
}

std::string encode(const example& value) {
  ::tensorflow::Example message;
  auto& features = *message.mutable_features()->mutable_feature();
  for (const auto& [name, values] : value.features) { std::visit(feature_writer{features[name]}, values); }
  std::string bytes;
  {
    pb::io::StringOutputStream out(&bytes);
    pb::io::CodedOutputStream coded(&out);
    coded.SetSerializationDeterministic(true);
    static_cast<void>(message.SerializeToCodedStream(&coded));  // cannot fail: the output is a string
  }
  return bytes;
}

}  // namespace stepwell::format
