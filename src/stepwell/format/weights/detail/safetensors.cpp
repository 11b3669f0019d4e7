// SPDX-License-Identifier: Apache-2.0
#include "stepwell/format/weights/detail/safetensors.hpp"

#include "stepwell/format/detail/coding.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

namespace stepwell::format {
namespace {

constexpr std::string_view metadata_name = "__metadata__";

struct named_type {
  std::string_view name;
  stepwell::dtype dtype;
  unsigned bits;
};
/// The types of the format. The first row of each dtype is its name in files that are written.
constexpr named_type safetensors_types[] = {
    {"F32", dtype::float32, 32},
    {"F64", dtype::float64, 64},
    {"F16", dtype::half, 16},
    {"BF16", dtype::bfloat16, 16},
    {"I64", dtype::int64, 64},
    {"I32", dtype::int32, 32},
    {"I16", dtype::int16, 16},
    {"I8", dtype::int8, 8},
    {"U64", dtype::uint64, 64},
    {"U32", dtype::uint32, 32},
    {"U16", dtype::uint16, 16},
    {"U8", dtype::uint8, 8},
    {"BOOL", dtype::boolean, 8},
    {"C64", dtype::complex64, 64},
    {"F8_E5M2", dtype::float8_e5m2, 8},
    {"F8_E4M3", dtype::float8_e4m3fn, 8},
    {"F8_E4M3FNUZ", dtype::float8_e4m3fnuz, 8},
    {"F8_E5M2FNUZ", dtype::float8_e5m2fnuz, 8},
    {"F8_E8M0", dtype::invalid, 8},
    {"F6_E2M3", dtype::invalid, 6},
    {"F6_E3M2", dtype::invalid, 6},
    {"F4", dtype::invalid, 4},
};

status damaged_header(std::string_view why) { return {errc::data_loss, fmt::format("the header of safetensors is damaged: {}", why)}; }

/// Receives the JSON of a header from the parser. Keeps no text besides the names.
class safetensors_events {
public:
  using json = nlohmann::json;

  std::vector<stored_array> arrays;  // the offset counts from the end of the header
  std::optional<std::string> failure;

  bool null() { return (at_ == place::top && key_ == metadata_name) || value("null"); }  // the reference takes it as no metadata
  bool boolean(bool) { return value("a boolean"); }
  bool number_integer(json::number_integer_t) { return value("a negative number"); }
  bool number_float(json::number_float_t, const std::string&) { return value("a fraction"); }
  bool binary(json::binary_t&) { return value("binary data"); }
  bool number_unsigned(json::number_unsigned_t number) {
    if (skipped_ > 0) { return true; }
    if (at_ != place::numbers) { return value("a number"); }
    if (is_shape_) {
      if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) { return refuse("a dimension is too large"); }
      arrays.back().shape.push_back(static_cast<std::int64_t>(number));
      return true;
    }
    if (offsets_ == 2) { return refuse("data_offsets has more than two numbers"); }
    ++offsets_;
    (offsets_ == 1 ? arrays.back().offset : end_) = number;
    return true;
  }
  bool string(std::string& text) {
    if (skipped_ > 0 || at_ == place::metadata) { return true; }
    if (at_ != place::array || key_ != "dtype") { return value("a text"); }
    if (std::exchange(has_type_, true)) { return refuse("a key is there twice"); }
    const auto found = std::ranges::find(safetensors_types, text, &named_type::name);
    if (found == std::end(safetensors_types)) { return refuse(fmt::format("the type \"{}\" is unknown", text)); }
    type_ = &*found;
    return true;
  }
  bool start_object(std::size_t) {
    if (skipped_ > 0 || is_other_key()) { return skip(); }
    switch (at_) {
      case place::before: at_ = place::top; return true;
      case place::top: at_ = key_ == metadata_name ? place::metadata : place::array; return at_ == place::metadata || begin_array();
      default: return value("an object");
    }
  }
  bool end_object() {
    if (skipped_ > 0) { return unskip(); }
    if (at_ == place::array && !end_array_description()) { return false; }
    at_ = at_ == place::top ? place::after : place::top;
    return true;
  }
  bool key(std::string& text) {
    if (skipped_ == 0) { key_ = std::move(text); }
    return true;
  }
  bool start_array(std::size_t) {
    if (skipped_ > 0 || is_other_key()) { return skip(); }
    if (at_ != place::array || key_ == "dtype") { return value("a list"); }
    is_shape_ = key_ == "shape";
    if (std::exchange(is_shape_ ? has_shape_ : has_offsets_, true)) { return refuse("a key is there twice"); }
    at_ = place::numbers;
    return true;
  }
  bool end_array() {
    if (skipped_ > 0) { return unskip(); }
    at_ = place::array;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const json::exception&) {
    return refuse(fmt::format("no JSON at byte {}", position));
  }

private:
  enum class place { before, top, metadata, array, numbers, after };

  bool refuse(std::string why) {
    failure = std::move(why);
    return false;
  }
  /// Accepts a value below a key of an array that the format does not define.
  bool value(std::string_view what) {
    if (skipped_ > 0 || is_other_key()) { return true; }
    return refuse(fmt::format("{} is in an unexpected place", what));
  }
  [[nodiscard]] bool is_other_key() const noexcept {
    return at_ == place::array && key_ != "dtype" && key_ != "shape" && key_ != "data_offsets";
  }
  bool skip() {
    ++skipped_;
    return true;
  }
  bool unskip() {
    --skipped_;
    return true;
  }

  bool begin_array() {
    arrays.push_back({.name = std::move(key_), .shape = {}});
    has_type_ = has_shape_ = has_offsets_ = false;
    offsets_ = 0;
    return true;
  }
  bool end_array_description() {
    auto& array = arrays.back();
    const auto refuse_array = [&](std::string_view why) { return refuse(fmt::format("array \"{}\": {}", array.name, why)); };
    if (!has_type_ || !has_shape_ || offsets_ != 2) { return refuse_array("dtype, shape or data_offsets is missing"); }
    array.dtype = type_->dtype;
    if (array.dtype == dtype::invalid) { array.unsupported = fmt::format("its type {} is not supported", type_->name); }
    if (end_ < array.offset) { return refuse_array("its end precedes its beginning"); }
    array.size = end_ - array.offset;
    const auto bits = size_of_shape(array.shape, type_->bits);
    if (!bits || *bits % 8 != 0 || *bits / 8 != array.size) { return refuse_array("its size is not that of its elements"); }
    array.shape.shrink_to_fit();
    return true;
  }

  place at_ = place::before;
  std::size_t skipped_ = 0;  // depth below a key that the format does not define
  std::string key_;
  bool has_type_ = false;
  bool has_shape_ = false;
  bool has_offsets_ = false;
  bool is_shape_ = false;
  const named_type* type_ = nullptr;
  int offsets_ = 0;
  std::uint64_t end_ = 0;
};

/// Receives the JSON of an index from the parser.
class shard_index_events : public nlohmann::json_sax<nlohmann::json> {
public:
  std::vector<indexed_array> arrays;
  bool has_map = false;

  bool null() override { return is_other(); }
  bool boolean(bool) override { return is_other(); }
  bool number_integer(number_integer_t) override { return is_other(); }
  bool number_unsigned(number_unsigned_t) override { return is_other(); }
  bool number_float(number_float_t, const string_t&) override { return is_other(); }
  bool binary(binary_t&) override { return is_other(); }
  bool string(string_t& text) override {
    if (!is_in_map()) { return true; }
    arrays.push_back({std::move(key_), std::move(text)});
    return true;
  }
  bool start_object(std::size_t) override {
    if (!is_other()) { return false; }
    ++depth_;
    if (depth_ == 2) { map_ = key_ == "weight_map"; }
    has_map = has_map || is_in_map();
    return true;
  }
  bool key(string_t& text) override {
    key_ = std::move(text);
    return true;
  }
  bool end_object() override {
    --depth_;
    return true;
  }
  bool start_array(std::size_t) override {
    if (!is_other()) { return false; }
    depth_ += 2;  // an object in a list is never the map
    return true;
  }
  bool end_array() override {
    depth_ -= 2;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override { return false; }

private:
  [[nodiscard]] bool is_in_map() const noexcept { return depth_ == 2 && map_; }
  [[nodiscard]] bool is_other() const noexcept { return !is_in_map(); }

  std::size_t depth_ = 0;
  bool map_ = false;
  std::string key_;
};

/// Returns the reason why the arrays do not cover the data exactly once, or an empty text. Sorts the arrays by their offsets.
std::string layout_error(std::vector<stored_array>& arrays, std::uint64_t data_size) {
  std::ranges::sort(arrays, {}, [](const stored_array& array) { return std::tuple(array.offset, array.size); });
  std::uint64_t end = 0;
  for (const auto& array : arrays) {
    if (array.offset != end) {
      return fmt::format("array \"{}\" begins at byte {} of the data, but the array before it ends at byte {}", array.name, array.offset,
                         end);
    }
    if (array.size > data_size - end) { return fmt::format("array \"{}\" ends after the end of the file", array.name); }
    end += array.size;
  }
  return end == data_size ? "" : fmt::format("the arrays end at byte {} of the data, which has {} bytes", end, data_size);
}

/// Returns a name that is there twice.
std::optional<std::string_view> repeated_name(const std::vector<stored_array>& arrays) {
  std::vector<std::string_view> names;
  names.reserve(arrays.size());
  for (const auto& array : arrays) { names.emplace_back(array.name); }
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  return twice == names.end() ? std::nullopt : std::optional(*twice);
}

}  // namespace

result<std::vector<stored_array>> decode_safetensors_header(std::string_view header, std::uint64_t data_size) {
  if (const auto begin = header.find_first_not_of(" \t\n\r"); begin == std::string_view::npos || header[begin] != '{') {
    return damaged_header("it does not begin with \"{\"");
  }
  if (header.find('\0') != std::string_view::npos) { return damaged_header("it contains a NUL byte"); }  // the parser would stop there
  safetensors_events events;
  if (!nlohmann::json::sax_parse(header, &events)) { return damaged_header(events.failure.value_or("no JSON")); }
  auto& arrays = events.arrays;
  if (const auto name = repeated_name(arrays)) { return damaged_header(fmt::format("array \"{}\" is there twice", *name)); }
  if (const auto why = layout_error(arrays, data_size); !why.empty()) { return damaged_header(why); }
  for (auto& array : arrays) { array.offset += safetensors_length_size + header.size(); }
  return std::move(arrays);
}

result<std::vector<indexed_array>> decode_shard_index(std::string_view index) {
  const auto damaged = [](std::string_view why) { return status(errc::data_loss, fmt::format("the index of files is damaged: {}", why)); };
  shard_index_events events;
  const bool is_json = index.find('\0') == std::string_view::npos && nlohmann::json::sax_parse(index, &events);
  if (!is_json || !events.has_map) { return damaged("it has no object \"weight_map\" with the file of each array"); }
  for (const auto& [name, file] : events.arrays) {
    if (file.empty() || file == "." || file == ".." || file.find_first_of("/\\") != std::string::npos) {
      return damaged(fmt::format("the file of \"{}\" is not in the directory of the index", name));
    }
  }
  return std::move(events.arrays);
}

std::string_view safetensors_type(dtype type) noexcept {
  switch (type) {
    case dtype::qint8: type = dtype::int8; break;
    case dtype::qint16: type = dtype::int16; break;
    case dtype::qint32: type = dtype::int32; break;
    case dtype::quint16: type = dtype::uint16; break;
    default: break;
  }
  if (type == dtype::invalid) { return {}; }
  const auto found = std::ranges::find(safetensors_types, type, &named_type::dtype);
  if (found != std::end(safetensors_types)) { return found->name; }
  return size_of(type) == 1 ? "U8" : "";
}

result<std::string> encode_safetensors_header(std::span<const safetensors_array> arrays,
                                              std::span<const std::pair<std::string, std::string>> metadata) {
  const auto refuse = [](std::string why) { return status(errc::invalid_argument, std::move(why)); };
  const auto quoted = [](std::string_view text) { return nlohmann::json(text).dump(); };
  std::string text = "{";
  const auto separate = [&] { text += text.size() > 1 ? "," : ""; };
  if (!metadata.empty()) {
    text += fmt::format("\"{}\":{{", metadata_name);
    for (const auto& [name, value] : metadata) {
      if (!is_utf8(name) || !is_utf8(value)) { return refuse("the metadata is not UTF-8"); }
      text += fmt::format("{}{}:{}", text.ends_with('{') ? "" : ",", quoted(name), quoted(value));
    }
    text += '}';
  }
  std::uint64_t begin = 0;
  for (const auto& array : arrays) {
    const auto type = safetensors_type(array.dtype);
    const auto size = size_of_shape(array.shape, size_of(array.dtype));
    if (!is_utf8(array.name) || array.name == metadata_name || type.empty() || !size) {
      return refuse(fmt::format("safetensors cannot hold the array \"{}\" of {}", to_utf8(array.name), to_string(array.dtype)));
    }
    separate();
    text += fmt::format(R"({}:{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})", quoted(array.name), type, to_string(array.shape), begin,
                        begin + *size);
    begin += *size;
  }
  text += '}';
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > max_safetensors_header) { return refuse("there are too many arrays for the header of a safetensors file"); }
  std::string made;
  append_fixed(made, std::uint64_t{text.size()});
  return made + text;
}

}  // namespace stepwell::format
