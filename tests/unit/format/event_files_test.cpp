// SPDX-License-Identifier: Apache-2.0
//
// Compares event files of TensorFlow and of TensorBoard's writer with the results of independent readers.
#include "bytes.hpp"
#include "support/file_text.hpp"
#include "support/sha256.hpp"
#include "support/testdata.hpp"

#include <stepwell/format/events/detail/summary_values.hpp>
#include <stepwell/format/events/event.hpp>

#include <google/protobuf/empty.pb.h>
#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <numeric>

#include <nlohmann/json.hpp>

namespace sw = stepwell;
namespace format = stepwell::format;
namespace test = stepwell::test;
using google::protobuf::UnknownFieldSet;
using nlohmann::json;
using test::bytes_of;

namespace {

std::string short_digest(std::string_view bytes) { return test::sha256_hex(bytes).substr(0, 16); }

std::string hex_of(std::string_view bytes) {
  std::string text;
  for (const char letter : bytes) {
    const auto byte = static_cast<unsigned char>(letter);
    text.append({"0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]});
  }
  return text;
}

// JSON has no NaN, so the expected files contain it as text.
double number_of(const json& value) { return value.is_string() ? std::stod(value.get<std::string>()) : value.get<double>(); }

bool same_number(double seen, const json& expected) {
  const double value = number_of(expected);
  return seen == value || (std::isnan(seen) && std::isnan(value));
}

// --- Messages that are passed on unchanged: their fields are counted ------------------------------------------------

// Returns an empty message that keeps all fields as unknown fields.
google::protobuf::Empty fields_of(const std::string& bytes) {
  google::protobuf::Empty message;
  REQUIRE(message.ParseFromString(bytes));
  return message;
}

const UnknownFieldSet& all_fields(const google::protobuf::Empty& message) { return message.GetReflection()->GetUnknownFields(message); }

std::vector<std::string> texts(const google::protobuf::Empty& message, int number) {
  std::vector<std::string> all;
  for (int i = 0; i < all_fields(message).field_count(); ++i) {
    const auto& field = all_fields(message).field(i);
    if (field.number() == number) { all.push_back(field.length_delimited()); }
  }
  return all;
}

void check_graph(const std::string& bytes, const json& expected) {
  const auto graph = fields_of(bytes);
  CHECK(texts(graph, 1).size() == expected.at("nodes"));
  const auto library = texts(graph, 2);
  CHECK((library.empty() ? 0 : texts(fields_of(library[0]), 1).size()) == expected.value("functions", std::size_t{0}));
  if (expected.contains("producer")) {
    const auto versions = fields_of(texts(graph, 4).at(0));
    CHECK(all_fields(versions).field(0).varint() == expected.at("producer").get<std::uint64_t>());
  }
}

void check(const format::graph_def& seen, const json& expected) {
  CHECK(seen.bytes.size() == expected.at("bytes"));
  check_graph(seen.bytes, expected);
}

void check(const format::meta_graph_def& seen, const json& expected) {
  CHECK(seen.bytes.size() == expected.at("bytes"));
  const auto meta = fields_of(seen.bytes);
  check_graph(texts(meta, 2).at(0), {{"nodes", expected.at("nodes")}, {"functions", 0}});
  CHECK(texts(fields_of(texts(meta, 1).at(0)), 5).at(0) == expected.at("tf_version").get<std::string>());
  std::vector<std::string> collections;
  for (const auto& entry : texts(meta, 4)) { collections.push_back(texts(fields_of(entry), 1).at(0)); }
  std::sort(collections.begin(), collections.end());
  CHECK(json(collections) == expected.at("collections"));
}

void check(const format::tagged_run_metadata& seen, const json& expected) {
  CHECK(seen.tag == expected.at("tag").get<std::string>());
  CHECK(seen.run_metadata.size() == expected.at("bytes"));
  std::vector<std::string> devices;
  for (const auto& stats : texts(fields_of(seen.run_metadata), 1)) {
    for (const auto& device : texts(fields_of(stats), 1)) { devices.push_back(texts(fields_of(device), 1).at(0)); }
  }
  CHECK(json(devices) == expected.at("devices"));
}

// --- Values ----------------------------------------------------------------------------------------------------------

void check(float seen, const json& expected) { CHECK(same_number(static_cast<double>(seen), expected)); }

void check(const format::image_value& seen, const json& expected) {
  CHECK(json{{"height", seen.height},
             {"width", seen.width},
             {"colorspace", seen.colorspace},
             {"bytes", seen.encoded.size()},
             {"sha", short_digest(seen.encoded)}} == expected);
}

void check(const format::audio_value& seen, const json& expected) {
  CHECK(json{{"sample_rate", seen.sample_rate},
             {"channels", seen.num_channels},
             {"frames", seen.length_frames},
             {"content_type", seen.content_type},
             {"bytes", seen.encoded.size()},
             {"sha", short_digest(seen.encoded)}} == expected);
}

void check(const format::histogram_value& seen, const json& expected) {
  CHECK(same_number(seen.min, expected.at("min")));
  CHECK(same_number(seen.max, expected.at("max")));
  CHECK(same_number(seen.num, expected.at("num")));
  CHECK(same_number(seen.sum, expected.at("sum")));
  CHECK(same_number(seen.sum_squares, expected.at("sum_squares")));
  CHECK(seen.buckets.size() == expected.at("buckets"));
  REQUIRE(seen.bucket_limits.size() == expected.at("limits"));
  CHECK(same_number(seen.bucket_limits.front(), expected.at("first_limit")));
  CHECK(same_number(seen.bucket_limits.back(), expected.at("last_limit")));
  CHECK(same_number(std::accumulate(seen.buckets.begin(), seen.buckets.end(), 0.0), expected.at("bucket_total")));
}

void check_strings(std::span<const std::string> seen, const json& expected) {
  CHECK(seen.size() == expected.at("count"));
  std::string joined;
  for (const auto& text : seen) { joined += text; }
  CHECK(joined.size() == expected.at("bytes"));
  CHECK(short_digest(joined) == expected.at("sha").get<std::string>());
  for (std::size_t i = 0; i < expected.at("head").size(); ++i) {
    // The heads are Latin-1 in the JSON. Only the first 60 characters are compared; the digest covers the rest.
    std::string utf8;
    for (const char letter : seen[i].substr(0, 60)) {
      const auto byte = static_cast<unsigned char>(letter);
      if (byte < 0x80) {
        utf8.push_back(static_cast<char>(byte));
      } else {
        utf8.append({static_cast<char>(0xC0 | byte >> 6), static_cast<char>(0x80 | (byte & 0x3F))});
      }
    }
    CHECK(utf8 == expected.at("head")[i].get<std::string>());
  }
}

std::vector<double> doubles_of(const sw::tensor& seen) {
  std::vector<double> all;
  if (seen.dtype() == sw::dtype::float32) {
    for (const float value : seen.as<float>()) { all.push_back(static_cast<double>(value)); }
  } else {
    REQUIRE(seen.dtype() == sw::dtype::float64);
    all.assign(seen.as<double>().begin(), seen.as<double>().end());
  }
  return all;
}

void check_numbers(const std::vector<double>& seen, const json& expected) {
  CHECK(seen.size() == expected.at("count"));
  const auto sum = static_cast<double>(std::accumulate(seen.begin(), seen.end(), 0.0L));
  CHECK((same_number(sum, expected.at("sum")) || sum == Approx(number_of(expected.at("sum"))).epsilon(1e-14).margin(1e-14)));
  if (expected.contains("values")) {
    REQUIRE(seen.size() == expected.at("values").size());
    for (std::size_t i = 0; i < seen.size(); ++i) { CHECK(same_number(seen[i], expected.at("values")[i])); }
  }
  if (expected.contains("first_row")) {
    double counted = 0;
    for (std::size_t i = 2; i < seen.size(); i += 3) { counted += seen[i]; }
    CHECK(same_number(counted, expected.at("count_sum")));
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(same_number(seen[i], expected.at("first_row")[i]));
      CHECK(same_number(seen[seen.size() - 3 + i], expected.at("last_row")[i]));
    }
  }
}

void check(const sw::tensor& seen, const json& expected) {
  CHECK(test::tensorflow_name(to_string(seen.dtype())) == expected.at("dtype").get<std::string>());
  CHECK(json(seen.shape()) == expected.at("shape"));
  if (seen.dtype() == sw::dtype::string) {
    check_strings(seen.strings(), expected);
  } else {
    check_numbers(doubles_of(seen), expected);
  }
}

template<class Other>
void check(const Other&, const json& expected) {
  FAIL("unexpected kind of value for " << expected.dump());
}

// --- Hyperparameters -------------------------------------------------------------------------------------------------

json json_of(const format::hparam_value& value) {
  return std::visit([](const auto& held) { return json(held); }, value.get());
}

json json_of(const format::hparams_record& record) {
  json made;
  if (const auto* experiment = std::get_if<format::hparams_experiment>(&record)) {
    for (const auto& name : experiment->hparams) { made["experiment"]["hparams"].push_back(name); }
    for (const auto& tag : experiment->metrics) { made["experiment"]["metrics"].push_back(tag); }
  } else if (const auto* start = std::get_if<format::hparams_start>(&record)) {
    auto& inside = made["sessionStartInfo"];
    for (const auto& [name, value] : start->hparams) { inside["hparams"][name] = json_of(value); }
    inside["groupName"] = start->group_name;
    inside["startTimeSecs"] = start->start_time_secs;
  } else {
    const auto& end = std::get<format::hparams_end>(record);
    CHECK(end.status == format::hparams_status::success);
    made["sessionEndInfo"] = {{"status", "STATUS_SUCCESS"}, {"endTimeSecs", end.end_time_secs}};
  }
  return made;
}

// Returns the part of an expected record that is read.
json part_read(const json& expected) {
  if (!expected.contains("experiment")) { return expected; }
  json made;
  for (const auto& info : expected.at("experiment").at("hparamInfos")) { made["experiment"]["hparams"].push_back(info.at("name")); }
  for (const auto& info : expected.at("experiment").at("metricInfos")) {
    made["experiment"]["metrics"].push_back(info.at("name").at("tag"));
  }
  return made;
}

// Returns the size of the record as this library writes it.
struct written_size {
  std::size_t operator()(const format::hparams_experiment&) const { return 0; }  // never written
  std::size_t operator()(const auto& record) const { return format::make_hparams_value(record).metadata->plugin_content.size(); }
};

// --- Events ----------------------------------------------------------------------------------------------------------

std::string kind_of(const format::summary_value& value) {
  static const char* const kinds[] = {"", "simple_value", "histo", "image", "audio", "tensor", "tensor", "obsolete"};
  return kinds[value.value.index()];
}

void check_metadata(const format::summary_value& seen, const json& expected) {
  CHECK(seen.metadata.has_value() == expected.contains("plugin"));
  if (!seen.metadata) { return; }
  CHECK(seen.metadata->plugin_name == expected.at("plugin").get<std::string>());
  CHECK(hex_of(seen.metadata->plugin_content) == expected.at("plugin_content").get<std::string>());
  CHECK(static_cast<int>(seen.metadata->data_class) == expected.at("data_class"));
  CHECK(seen.metadata->description == expected.value("description", ""));
  if (expected.contains("hparams")) {
    const auto record = format::decode_hparams(bytes_of(seen.metadata->plugin_content));
    REQUIRE(record.ok());
    CHECK(json_of(*record) == part_read(expected.at("hparams")));
    const auto written = std::visit(written_size(), *record);
    CHECK((written == 0 || written == seen.metadata->plugin_content.size()));
  }
}

void check_value(const format::summary_value& seen, const json& expected) {
  INFO("tag " << seen.tag);
  CHECK(seen.tag == expected.at("tag").get<std::string>());
  check_metadata(seen, expected);
  if (expected.at("kind").is_null()) {
    CHECK(seen.value.index() == 0);
    return;
  }
  CHECK(kind_of(seen) == expected.at("kind").get<std::string>());
  std::visit([&](const auto& value) { check(value, expected.at("value")); }, seen.value);
}

void check(const format::session_log& seen, const json& expected) {
  static const char* const names[] = {"STATUS_UNSPECIFIED", "START", "STOP", "CHECKPOINT"};
  CHECK(names[static_cast<std::size_t>(seen.status)] == expected.at("status").get<std::string>());
  CHECK(seen.message == expected.at("msg").get<std::string>());
  CHECK(!seen.checkpoint_path.empty() == expected.at("checkpoint_path_set").get<bool>());
}

// A visitor that checks the content of an event and returns the name of its kind.
struct what_checker {
  const json& expected;

  std::string operator()(std::monostate) const { return "nothing"; }
  std::string operator()(const format::file_version& seen) const {
    CHECK(seen.text == expected.at("file_version").get<std::string>());
    return "file_version";
  }
  std::string operator()(const format::graph_def& seen) const {
    check(seen, expected.at("graph"));
    return "graph_def";
  }
  std::string operator()(const format::meta_graph_def& seen) const {
    check(seen, expected.at("meta_graph"));
    return "meta_graph_def";
  }
  std::string operator()(const format::tagged_run_metadata& seen) const {
    check(seen, expected.at("run_metadata"));
    return "tagged_run_metadata";
  }
  std::string operator()(const format::session_log& seen) const {
    check(seen, expected.at("session_log"));
    return "session_log";
  }
  std::string operator()(const format::log_message& seen) const {
    CHECK(seen.message == expected.at("log_message").get<std::string>());
    return "log_message";
  }
  std::string operator()(const format::summary& seen) const {
    REQUIRE(seen.values.size() == expected.at("values").size());
    for (std::size_t i = 0; i < seen.values.size(); ++i) { check_value(seen.values[i], expected.at("values")[i]); }
    return "summary";
  }
};

void check_event(const format::event& seen, const json& expected) {
  INFO("event " << expected.at("index"));
  CHECK(seen.wall_time == expected.at("wall_time").get<double>());
  CHECK(seen.step == expected.at("step").get<std::int64_t>());
  CHECK(std::visit(what_checker{expected}, seen.what) == expected.at("what").get<std::string>());
}

void check_file(const std::string& directory, const json& expected) {
  INFO(directory);
  const auto read = test::records_of(test::file_text(directory + "/" + expected.at("file").get<std::string>()));
  CHECK(read.ended_by == sw::errc::truncated);
  CHECK(read.pending == 0);
  REQUIRE(read.data.size() == expected.at("records"));
  for (std::size_t i = 0; i < read.data.size(); ++i) {
    const auto seen = format::decode_event(bytes_of(read.data[i]));
    REQUIRE(seen.ok());
    check_event(*seen, expected.at("events")[i]);
    // Encoding the decoded event again must give an event with the same content.
    const auto again = format::decode_event(bytes_of(format::encode_event(*seen)));
    REQUIRE(again.ok());
    check_event(*again, expected.at("events")[i]);
  }
}

}  // namespace

TEST_CASE("real event files decode to what other readers see in them", "[format][event][testdata]") {
  const auto root = test::testdata("events");
  if (root.empty()) { return; }
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().filename() != "expected.json") { continue; }
    for (const auto& expected : json::parse(test::file_text(entry.path().string()))) {
      check_file(entry.path().parent_path().string(), expected);
      ++files;
    }
  }
  CHECK(files == 10);
}

TEST_CASE("a small real event file cut short or with any bit flipped gives an error, never wrong values", "[format][event][testdata]") {
  const auto root = test::testdata("events/tf2_hparams/run-0");
  if (root.empty()) { return; }
  const auto good = test::file_text(root + "/events.out.tfevents.1585792155.host.128712.150258.v2");
  const auto whole = test::records_of(good).data;
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    auto changed = good;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    const auto read = test::records_of(changed);
    if (read.ended_by != sw::errc::data_loss || read.data.size() >= whole.size()) { FAIL("bit " << bit); }
  }
  for (std::size_t size = 0; size < good.size(); ++size) {
    const auto read = test::records_of(std::string_view(good).substr(0, size));
    if (read.ended_by != sw::errc::truncated || read.data.size() >= whole.size()) { FAIL("size " << size); }
  }
  SUCCEED();
}
