// SPDX-License-Identifier: Apache-2.0
#include "stepwell/board/detail/board_service.hpp"

#include "stepwell/base/clock.hpp"
#include "stepwell/base/detail/read_double.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/checkpoint/detail/checkpoint_directory.hpp"
#include "stepwell/checkpoint/find_checkpoints.hpp"
#include "stepwell/format/checkpoint/detail/bundle.hpp"
#include "stepwell/format/detail/coding.hpp"
#include "stepwell/format/detail/run_metadata.hpp"
#include "stepwell/protocol/prometheus.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>

namespace stepwell::board {
namespace {

using json = nlohmann::ordered_json;

constexpr std::size_t most_runs_asked = 64;
constexpr std::size_t most_checkpoints = 200;
constexpr std::size_t most_buckets = 8192;
constexpr std::size_t usual_buckets = 1024;
constexpr std::size_t most_histograms = 200;
constexpr std::size_t usual_histograms = 50;
constexpr std::int64_t most_traced_steps = 1000;
constexpr std::int64_t usual_traced_steps = 10;
constexpr std::string_view text_plain = "text/plain; charset=utf-8";

/// A request that cannot be answered. Caught by `answer_to`.
struct refused {
  int status;
  std::string why;
};

json number(double value) {
  if (std::isnan(value)) { return "nan"; }
  if (std::isinf(value)) { return value > 0 ? "inf" : "-inf"; }
  return value;
}

template<class T>
json or_null(const std::optional<T>& value) {
  if constexpr (std::is_same_v<T, double>) {
    return value ? number(*value) : json();
  } else {
    return value ? json(*value) : json();
  }
}

json numbers(const std::vector<double>& all) {
  auto made = json::array();
  for (const double one : all) { made.push_back(number(one)); }
  return made;
}

template<class Range, class Convert>
json list(const Range& all, Convert convert) {
  auto made = json::array();
  for (const auto& one : all) { made.push_back(convert(one)); }
  return made;
}

/// Returns the JSON in ASCII, so a terminal that shows it gets no control character.
std::string text_of(const json& value) { return value.dump(-1, ' ', true, json::error_handler_t::replace); }
answer good(const json& value) { return {200, text_of(value)}; }

/// Returns the number that is the whole text. Throws `refused` if it is not a number.
template<class Number>
Number parse(std::string_view name, std::string_view text) {
  Number made{};
  std::from_chars_result read{};
  if constexpr (std::is_floating_point_v<Number>) {
    read = stepwell::detail::read_double(text.data(), text.data() + text.size(), made);
  } else {
    read = std::from_chars(text.data(), text.data() + text.size(), made);
  }
  bool is_good = read.ec == std::errc() && read.ptr == text.data() + text.size();
  if constexpr (std::is_floating_point_v<Number>) { is_good = is_good && !std::isnan(made); }
  if (!is_good) { throw refused{400, "the parameter " + std::string(name) + " is not a number"}; }
  return made;
}

/// The parameters of a request.
class parameters {
public:
  explicit parameters(const target_parts& parts) : parts_(parts) {}

  [[nodiscard]] std::string need(std::string_view name) const {
    auto found = parts_.value(name);
    if (!found) { throw refused{400, "the parameter " + std::string(name) + " is missing"}; }
    return *std::move(found);
  }
  template<class Number>
  [[nodiscard]] std::optional<Number> number(std::string_view name) const {
    const auto found = parts_.value(name);
    return found ? std::optional(parse<Number>(name, *found)) : std::nullopt;
  }
  [[nodiscard]] std::size_t count(std::string_view name, std::size_t usual, std::size_t most) const {
    const auto found = number<std::size_t>(name).value_or(usual);
    if (found < 1 || found > most) {
      throw refused{400, "the parameter " + std::string(name) + " must be from 1 to " + std::to_string(most)};
    }
    return found;
  }
  [[nodiscard]] std::string text_or(std::string_view name, std::string_view otherwise) const {
    return parts_.value(name).value_or(std::string(otherwise));
  }
  [[nodiscard]] std::vector<std::string> runs() const {
    auto all = parts_.values("run");
    if (all.empty()) { throw refused{400, "the parameter run is missing"}; }
    if (all.size() > most_runs_asked) { throw refused{400, "give at most 64 runs"}; }
    return all;
  }

private:
  const target_parts& parts_;
};

json mark_json(const run_mark& mark) {
  return {{"kind", mark.kind}, {"step", mark.step}, {"time", number(mark.time)}, {"text", mark.text}};
}

json ending_json(const std::optional<run_ending>& of) {
  if (!of) { return {}; }
  return {{"how", to_string(of->how)}, {"cause", to_string(of->why.cause)}, {"text", of->why.text}, {"step", of->global_step}};
}

json line_json(const log_line& line) {
  return {{"number", line.number}, {"time", line.time}, {"level", to_string(line.level)}, {"text", line.text}};
}

json action_json(const action_record& of) {
  return {{"id", of.id},
          {"action", of.action},
          {"state", of.state},
          {"requested", of.requested},
          {"finished", or_null(of.finished)},
          {"step", or_null(of.step)},
          {"text", of.text},
          {"download", of.has_trace ? json("/api/trace/" + std::to_string(of.id)) : json()}};
}

/// A checkpoint as its files show it.
struct checkpoint_entry {
  std::string name;
  std::int64_t step = 0;
  double time = 0;
  std::uint64_t bytes = 0;
  bool is_verified = false;  ///< True if this process has restored it, which checks the checksums of all values that it reads.
};

json checkpoint_json(const checkpoint_entry& of) {
  return {
      {"name", of.name}, {"step", of.step}, {"time", of.time}, {"bytes", of.bytes}, {"is_verified", of.is_verified ? json(true) : json()}};
}

/// Returns the checkpoints of a directory, the newest first.
std::vector<checkpoint_entry> checkpoints_in(io::file_system& files, const std::string& directory) {
  std::vector<checkpoint_entry> all;
  try {
    for (const auto& one : detail::find_checkpoint_files(files, directory)) {
      const auto step = step_of_checkpoint(one.prefix);
      if (step) { all.push_back({io::base_name(one.prefix), *step, detail::wall_seconds(one.written), one.size_bytes}); }
    }
  } catch (const error&) { return {}; }
  std::ranges::sort(all, [](const auto& a, const auto& b) { return std::pair(a.time, a.step) > std::pair(b.time, b.step); });
  if (all.size() > most_checkpoints) { all.resize(most_checkpoints); }
  return all;
}

/// Returns the tag of a curve: the points of the event files, and the later ones in memory.
json scalar_json(const std::string& tag, const curve& in_files, const curve& later) {
  const bool has_files = !in_files.points().empty();
  const auto& first = has_files ? in_files.points().front() : later.points().front();
  const auto& last = later.points().empty() ? in_files.points().back() : later.points().back();
  auto extremes = in_files.extremes();
  extremes.add(later.extremes());
  const auto step_of = [](double value, std::int64_t step) { return std::isnan(value) ? json() : json(step); };
  return {{"tag", tag},
          {"kind", "scalar"},
          {"points", in_files.points().size() + later.points().size()},
          {"revision", has_files ? in_files.revision() : later.revision()},
          {"first_step", first.step},
          {"last_step", last.step},
          {"min", number(extremes.min)},
          {"max", number(extremes.max)},
          {"min_step", step_of(extremes.min, extremes.min_step)},
          {"max_step", step_of(extremes.max, extremes.max_step)},
          {"last", number(last.value)},
          {"non_finite", extremes.non_finite}};
}

/// Returns the tags of a run. `live` has the values in memory, which count as far as the event files do not have them. May be null.
json tags_json(const std::string& run, const run_history& of, const live_state* live) {
  std::vector<std::pair<std::string, json>> tags;
  auto first_time = of.first_time();
  auto last_time = of.last_time();
  auto last_step = of.last_step();
  const auto add_curve = [&](const std::string& tag, const curve& in_files, const curve& later) {
    tags.emplace_back(tag, scalar_json(tag, in_files, later));
    for (const auto& points : {in_files.points(), later.points()}) {
      if (points.empty()) { continue; }
      first_time = std::min(first_time.value_or(points.front().time), points.front().time);
      last_time = std::max(last_time.value_or(points.back().time), points.back().time);
      last_step = std::max(last_step.value_or(points.back().step), points.back().step);
    }
  };
  const auto is_in_files = [&](const std::string& tag) {
    const auto known = of.curves().find(tag);
    return known != of.curves().end() && !known->second.points().empty();
  };
  for (const auto& [tag, curve] : of.curves()) {
    if (!is_in_files(tag)) { continue; }
    add_curve(tag, curve, live != nullptr ? live->later_points(tag, curve.last_step()) : board::curve());
  }
  if (live != nullptr) {
    const curve none;
    live->each_curve([&](const std::string& tag, const curve& curve) {
      if (!is_in_files(tag)) { add_curve(tag, none, curve); }
    });
  }
  const auto add = [&](std::string_view kind, const auto& records) {
    for (const auto& [tag, list] : records) {
      if (list.empty()) { continue; }
      tags.emplace_back(
          tag,
          json{{"tag", tag}, {"kind", kind}, {"points", list.size()}, {"first_step", list.front().step}, {"last_step", list.back().step}});
    }
  };
  add("histogram", of.histograms());
  add("text", of.texts());
  add("image", of.images());
  std::ranges::sort(tags, {}, &std::pair<std::string, json>::first);
  return {{"run", run},
          {"error", of.error().empty() ? json() : json(of.error())},
          {"is_cut", of.is_cut()},
          {"first_time", or_null(first_time)},
          {"last_time", or_null(last_time)},
          {"last_step", or_null(last_step)},
          {"tags", list(tags, [](const auto& one) { return one.second; })}};
}

json step_time_json(const step_time& of) {
  return {{"samples", of.samples},
          {"step_seconds", of.step()},
          {"model_seconds", of.model},
          {"data_seconds", of.data},
          {"io_seconds", of.io},
          {"other_seconds", of.other},
          {"hooks", list(of.hooks, [](const auto& hook) { return json{{"name", hook.first}, {"seconds", hook.second}}; })}};
}

json condition_json(const stop_condition& of) {
  const double distance = std::max(0.0, of.limit - of.reached);
  return {{"name", of.name},
          {"text", of.text},
          {"distance", number(distance)},
          {"unit", of.unit},
          {"fraction", of.limit > 0 ? number(std::clamp(of.reached / of.limit, 0.0, 1.0)) : json()}};
}

/// Returns the seconds until the condition is fulfilled. Infinity if they are not known.
double seconds_until(const stop_condition& of, const session_view& view) {
  const double distance = std::max(0.0, of.limit - of.reached);
  if (of.end) { return distance; }
  const bool has_rate = of.unit == "steps" && view.steps_per_second && *view.steps_per_second > 0;
  return has_rate ? distance / *view.steps_per_second : std::numeric_limits<double>::infinity();
}

/// Returns all conditions that end the loop. The first one is the soonest, as far as that is known.
std::vector<stop_condition> stop_conditions(const session_view& of) {
  auto all = of.stop_conditions;
  if (of.last_step) {
    all.push_back({.name = "last step",
                   .text = "ends at step " + std::to_string(*of.last_step),
                   .unit = "steps",
                   .reached = static_cast<double>(of.step),
                   .limit = static_cast<double>(*of.last_step)});
  }
  if (of.epoch && of.epoch->of > 0) {
    all.push_back({.name = "end of data",
                   .text = "the data ends after epoch " + std::to_string(of.epoch->of),
                   .unit = "epochs",
                   .reached = static_cast<double>(of.epoch->epoch),
                   .limit = static_cast<double>(of.epoch->of)});
  }
  const auto soonest = std::ranges::min_element(all, {}, [&](const stop_condition& one) { return seconds_until(one, of); });
  if (soonest != all.end()) { std::rotate(all.begin(), soonest, soonest + 1); }
  return all;
}

std::optional<double> remaining_seconds(const session_view& of, const std::vector<stop_condition>& all) {
  const double soonest = all.empty() ? std::numeric_limits<double>::infinity() : seconds_until(all.front(), of);
  return std::isfinite(soonest) ? std::optional(soonest) : std::nullopt;
}

answer curve_answer(std::span<const curve_bucket> buckets, const curve_header& header) {
  return {200, encode_buckets(buckets, header), "application/octet-stream"};
}

/// Returns the media type of an image that a browser may show. Empty for other bytes.
std::string_view type_of_image(std::string_view bytes) {
  if (bytes.starts_with("\x89PNG\r\n\x1a\n")) { return "image/png"; }
  if (bytes.starts_with("\xff\xd8\xff")) { return "image/jpeg"; }
  if (bytes.starts_with("GIF87a") || bytes.starts_with("GIF89a")) { return "image/gif"; }
  return {};
}

/// Returns at most `most` elements, evenly chosen, with the last one.
template<class Record>
std::vector<const Record*> chosen(const std::vector<Record>& all, std::size_t most) {
  const auto count = std::min(most, all.size());
  std::vector<const Record*> made;
  for (std::size_t i = 1; i <= count; ++i) { made.push_back(&all[all.size() * i / count - 1]); }
  return made;
}

std::string event_text(std::uint64_t id, std::string_view kind, std::string_view data) {
  return fmt::format("id: {}\nevent: {}\ndata: {}\n\n", id, kind, data);
}

/// The events of one client.
class client_events final : public event_source {
public:
  /// `first` is sent before the events after `last`.
  client_events(std::shared_ptr<board_service> service, std::uint64_t last, std::string first)
      : service_(std::move(service)), last_(last), first_(std::move(first)) {}
  std::optional<std::string> next() override {
    service_->pump();
    return std::exchange(first_, {}) + service_->events_text(last_);
  }

private:
  std::shared_ptr<board_service> service_;
  std::uint64_t last_;
  std::string first_;
};

}  // namespace

struct board_service::state {
  service_options options;
  access_rules rules;
  run_directory runs;
  std::uint64_t version = 0;                           // of the view that was sent last
  std::map<std::string, double> sent_values = {};      // of the last `values` event
  std::optional<std::string> live_run = std::nullopt;  // the name of the session's run
  bool is_live_listed = false;                         // true if `runs` has it
  run_history no_files = {nullptr, {}};                // of a session without event files
  std::uint64_t live_bytes = 0;                        // size of the event files of the live run in the last `changed` event
  double looked_at = 0;
  std::vector<checkpoint_entry> checkpoints = {};
  std::int64_t checkpoint_saves = -1;  // number of saves when `checkpoints` were listed

  [[nodiscard]] double now() const { return detail::wall_seconds(options.time->wall_now()); }
};

/// The functions that answer, and what they share.
class board_service::routes {
public:
  explicit routes(state& of) : of_(of) {}

  [[nodiscard]] answer board() {
    return good({{"api", 1},
                 {"mode", of_.options.live ? "session" : "directory"},
                 {"title", of_.options.title},
                 {"directory", of_.options.directory},
                 {"is_missing", !of_.options.directory.empty() && !of_.runs.files().stat(of_.options.directory)},
                 {"live_run", or_null(live_run())},
                 {"needs_token_to_read", of_.options.needs_token_to_read},
                 {"actions", actions()},
                 {"now", of_.now()}});
  }

  [[nodiscard]] answer health() {
    const bool is_failed = of_.options.live && of_.options.live->view().phase == "failed";
    return {is_failed ? 503 : 200, text_of({{"status", is_failed ? "failed" : "ok"}})};
  }

  [[nodiscard]] answer metrics() {
    std::string text;
    if (of_.options.live) {
      const auto view = of_.options.live->view();
      text = prometheus_text(view.metrics, of_.options.title, view.watched);
    }
    return {200, text, "text/plain; version=0.0.4; charset=utf-8"};
  }

  [[nodiscard]] json session_json() {
    const auto view = live().view();
    const auto& m = view.metrics;
    const auto conditions = stop_conditions(view);
    return {{"time", view.time},
            {"phase", view.phase},
            {"started", view.started},
            {"first_step", view.first_step},
            {"step", view.step},
            {"last_step", or_null(view.last_step)},
            {"steps_per_second", or_null(view.steps_per_second)},
            {"remaining_seconds", or_null(remaining_seconds(view, conditions))},
            {"stopping_because", or_null(view.stopping_because)},
            {"epoch", view.epoch ? json{{"number", view.epoch->epoch + 1}, {"is_last_batch", view.epoch->is_last}} : json()},
            {"restored_from", or_null(view.restored_from)},
            {"watched", list(view.watched,
                             [](const auto& one) { return json{{"name", one.name}, {"value", number(one.value)}, {"step", one.step}}; })},
            {"stop_conditions", list(conditions, condition_json)},
            {"notes", list(view.notes, [](const auto& note) { return json{{"name", note.first}, {"text", note.second}}; })},
            {"step_time", view.step_time ? step_time_json(*view.step_time) : json()},
            {"checkpoints", checkpoints_json(view)},
            {"recoveries", m.recoveries},
            {"creations", m.creations},
            {"rollbacks", m.rollbacks},
            {"group",
             view.group ? json{{"generation", view.group->generation}, {"rank", view.group->rank}, {"size", view.group->size}} : json()},
            {"actions", list(live().actions(), action_json)}};
  }
  [[nodiscard]] answer session() { return good(session_json()); }

  [[nodiscard]] answer runs() {
    const auto live = live_run();
    auto all = list(of_.runs.list(), [&](const run_entry& one) {
      return json{{"run", one.run},     {"is_live", one.run == live}, {"changed", one.changed},
                  {"bytes", one.bytes}, {"files", one.files},         {"ending", ending_json(one.ending)}};
    });
    if (live && !of_.is_live_listed) {
      all.push_back(
          {{"run", *live}, {"is_live", true}, {"changed", of_.options.live->view().time}, {"bytes", 0}, {"files", 0}, {"ending", json()}});
    }
    return good({{"runs", all}, {"is_cut", of_.runs.is_cut()}});
  }

  [[nodiscard]] answer tags(const parameters& given) {
    return good({{"runs", list(given.runs(), [this](const std::string& run) {
                    return tags_json(run, history(run), run == live_run() ? of_.options.live.get() : nullptr);
                  })}});
  }

  [[nodiscard]] answer curve(const parameters& given) {
    const auto axis = given.text_or("axis", "step");
    if (axis != "step" && axis != "time") { throw refused{400, "the parameter axis must be step or time"}; }
    const curve_range range{axis == "time" ? curve_axis::time : curve_axis::step, given.number<double>("from"), given.number<double>("to")};
    const auto run = given.need("run");
    const auto tag = given.need("tag");
    const auto most = given.count("buckets", usual_buckets, most_buckets);
    const auto& all = history(run).curves();
    const auto known = all.find(tag);
    const bool has_files = known != all.end() && !known->second.points().empty();
    const auto later =
        run == live_run() ? of_.options.live->later_points(tag, has_files ? known->second.last_step() : std::nullopt) : board::curve();
    const bool has_later = !later.points().empty();
    // Without points in the event files, the points in memory are all points. They are not sent twice, either.
    const auto& fixed = has_files || !has_later ? found_in(all, tag) : later;
    const bool has_tail = has_files && has_later;
    if (range.from || range.to || most == 1) {
      board::curve both;
      if (has_tail) {
        both = fixed;
        both.add_points_of(later);
      }
      const auto part = (has_tail ? both : fixed).points_in(range);
      return curve_answer(reduce(part, most), {.total = part.points.size(), .revision = fixed.revision()});
    }
    const auto is_known = given.number<std::uint64_t>("revision").value_or(0) == fixed.revision();
    const auto since = is_known ? given.number<std::size_t>("since").value_or(0) : 0;
    const auto part = fixed.part().part(std::min(since, fixed.points().size()));
    const auto tail = has_tail ? later.points().size() : 0;
    const auto tail_buckets = std::clamp(most * tail / std::max<std::size_t>(1, part.points.size() + tail), std::size_t{1}, most - 1);
    auto buckets = reduce(part, tail > 0 ? most - tail_buckets : most);
    const auto fixed_buckets = buckets.size();
    if (tail > 0) { std::ranges::move(reduce(later.part(), tail_buckets), std::back_inserter(buckets)); }
    return curve_answer(buckets, {.total = fixed.points().size() + tail,
                                  .revision = fixed.revision(),
                                  .fixed_points = fixed.points().size(),
                                  .fixed_buckets = fixed_buckets});
  }

  [[nodiscard]] answer marks(const parameters& given) {
    const auto run = given.need("run");
    auto all = history(run).marks();
    if (of_.options.live && run == live_run()) {
      std::ranges::move(of_.options.live->marks(), std::back_inserter(all));
      std::ranges::stable_sort(all, {}, &run_mark::time);
    }
    return good({{"marks", list(all, mark_json)}});
  }

  [[nodiscard]] answer checkpoints(const parameters& given) {
    const auto run = given.need("run");
    if (run == live_run()) { return good({{"checkpoints", list(live_checkpoints(), checkpoint_json)}}); }
    const auto* entry = of_.runs.find(run);
    if (entry == nullptr) { throw refused{404, "there is no such run"}; }
    return good({{"checkpoints", list(checkpoints_in(of_.runs.files(), entry->path), checkpoint_json)}});
  }

  [[nodiscard]] answer histograms(const parameters& given) {
    const auto& of = found_in(history(given.need("run")).histograms(), given.need("tag"));
    return good({{"histograms", list(chosen(of, given.count("count", usual_histograms, most_histograms)), [](const auto* one) {
                    return json{{"step", one->step},
                                {"time", one->time},
                                {"min", number(one->min)},
                                {"max", number(one->max)},
                                {"count", number(one->count)},
                                {"sum", number(one->sum)},
                                {"limits", numbers(one->limits)},
                                {"counts", numbers(one->counts)}};
                  })}});
  }

  [[nodiscard]] answer texts(const parameters& given) {
    auto all = found_in(history(given.need("run")).texts(), given.need("tag"));
    std::ranges::reverse(all);
    return good({{"texts", list(all, [](const auto& one) { return json{{"step", one.step}, {"time", one.time}, {"text", one.text}}; })}});
  }

  [[nodiscard]] answer images(const parameters& given) {
    const auto& of = found_in(history(given.need("run")).images(), given.need("tag"));
    auto all = json::array();
    for (auto one = of.rbegin(); one != of.rend(); ++one) {
      all.push_back({{"step", one->step},
                     {"index", one->index},
                     {"time", one->time},
                     {"width", one->width},
                     {"height", one->height},
                     {"bytes", one->encoded.size()}});
    }
    return good({{"images", all}});
  }

  [[nodiscard]] answer image(const parameters& given) {
    const auto& of = found_in(history(given.need("run")).images(), given.need("tag"));
    const auto step = parse<std::int64_t>("step", given.need("step"));
    const auto index = given.number<std::int64_t>("index").value_or(0);
    const auto found = std::ranges::find_if(of, [&](const image_record& one) { return one.step == step && one.index == index; });
    const auto type = found == of.end() ? std::string_view() : type_of_image(found->encoded);
    if (type.empty()) { throw refused{404, "there is no such PNG, JPEG or GIF image"}; }
    return {200, found->encoded, std::string(type)};
  }

  [[nodiscard]] answer hparams(const parameters& given) {
    return good({{"runs", list(given.runs(), [this](const std::string& run) {
                    auto all = json::object();
                    for (const auto& [name, value] : history(run).hparams()) {
                      all[name] = std::visit(
                          [](const auto& held) {
                            if constexpr (std::is_same_v<std::remove_cvref_t<decltype(held)>, double>) {
                              return number(held);
                            } else {
                              return json(held);
                            }
                          },
                          value.get());
                    }
                    return json{{"run", run}, {"hparams", all}};
                  })}});
  }

  [[nodiscard]] answer log(const parameters& given) {
    const auto after = given.number<std::uint64_t>("after").value_or(0);
    return good({{"lines", of_.options.live ? list(of_.options.live->log_after(after), line_json) : json::array()}});
  }

  [[nodiscard]] answer ranks() {
    auto all = json::array();
    const auto add = [&](const group_place& group) {
      for (int rank = 0; rank < group.launched; ++rank) {
        const auto member = std::ranges::find(group.members, rank);
        all.push_back({{"rank", rank},
                       {"size", group.launched},
                       {"generation", group.generation},
                       {"is_this_process", member - group.members.begin() == group.rank},
                       {"is_lost", member == group.members.end()}});
      }
    };
    if (of_.options.live) {
      if (const auto view = of_.options.live->view(); view.group) { add(*view.group); }
    }
    return good({{"ranks", all}});
  }

  [[nodiscard]] answer trace(std::string_view id) {
    const auto found = live().trace(parse<std::uint64_t>("id", id));
    if (!found) { throw refused{404, "there is no such trace"}; }
    return {200,
            format::encode_chrome_trace(*found),
            "application/json",
            {{"Content-Disposition", "attachment; filename=\"trace-" + std::to_string(parse<std::uint64_t>("id", id)) + ".json\""}}};
  }

  [[nodiscard]] answer action(std::string_view id) {
    const auto found = live().action(parse<std::uint64_t>("id", id));
    if (!found) { throw refused{404, "there is no such action"}; }
    return good(action_json(*found));
  }

  [[nodiscard]] answer act(const std::string& action, const request& asked) {
    if (action != "checkpoint" && action != "stop" && action != "trace") { throw refused{404, "there is no such action"}; }
    if (!is_json(asked.content_type)) { throw refused{415, "send Content-Type: application/json"}; }
    const auto given = json::parse(asked.body, nullptr, false);
    if (!given.is_object()) { throw refused{400, "the body is not a JSON object; send {}"}; }
    if (!of_.options.live) { throw refused{409, "this board shows a directory; there is no session to act on"}; }
    const auto phase = live().view().phase;
    if (phase == "ended" || phase == "failed") { throw refused{409, "the session has ended"}; }
    if (action == "checkpoint" && of_.options.checkpoint_directory.empty()) { throw refused{409, "this session saves no checkpoints"}; }
    const auto steps = action == "trace" ? steps_in(given) : 0;
    const auto made = live().request(action, steps, of_.now(), "waiting for the end of the step");
    if (!made) { throw refused{409, "such an action is pending"}; }
    if (action == "checkpoint") { of_.options.signals->request_checkpoint(); }
    if (action == "stop") { of_.options.signals->request_stop({stop_cause::requested, "requested on the board"}); }
    return {202, text_of(action_json(*made))};
  }

  [[nodiscard]] answer events(const std::shared_ptr<board_service>& service, const request& asked) {
    if (!asked.last_event_id.empty()) {
      const auto last = parse<std::uint64_t>("Last-Event-ID", asked.last_event_id);
      return {.events = std::make_shared<client_events>(service, last, std::string())};
    }
    if (!of_.options.live) { return {.events = std::make_shared<client_events>(service, 0, std::string())}; }
    service->pump();
    const auto last = of_.options.live->newest_event();
    return {.events = std::make_shared<client_events>(service, last, event_text(last, "state", text_of(session_json())))};
  }

  void pump() {
    if (!of_.options.live) { return; }
    auto& live = *of_.options.live;
    const auto changes = live.take_changes();
    for (const auto& line : changes.lines) { live.add_event("log", text_of(line_json(line))); }
    for (const auto& mark : changes.marks) { live.add_event("mark", text_of(mark_json(mark))); }
    for (const auto& action : changes.actions) { live.add_event("action", text_of(action_json(action))); }
    if (std::exchange(of_.version, live.version()) != live.version()) {
      live.add_event("state", text_of(session_json()));
      add_values();
    }
    add_changed();
  }

private:
  /// Returns the actions that this server offers.
  [[nodiscard]] json actions() const {
    if (!of_.options.live) { return json::array(); }
    return of_.options.checkpoint_directory.empty() ? json{"stop", "trace"} : json{"checkpoint", "stop", "trace"};
  }

  [[nodiscard]] live_state& live() const {
    if (!of_.options.live) { throw refused{404, "this board shows a directory; there is no session"}; }
    return *of_.options.live;
  }

  [[nodiscard]] const run_history& history(const std::string& run) {
    if (run == live_run() && !of_.is_live_listed) { return of_.no_files; }
    const auto* found = of_.runs.history(run);
    if (found == nullptr) { throw refused{404, "there is no such run"}; }
    return *found;
  }

  template<class Map>
  [[nodiscard]] static const typename Map::mapped_type& found_in(const Map& all, std::string_view tag) {
    const auto found = all.find(tag);
    if (found == all.end()) { throw refused{404, "the run has no such tag of this kind"}; }
    return found->second;
  }

  /// Returns true for `application/json`, in any case, with or without parameters.
  [[nodiscard]] static bool is_json(std::string_view type) {
    constexpr std::string_view wanted = "application/json";
    auto name = type.substr(0, type.find(';'));
    name = name.substr(0, name.find_last_not_of(" \t") + 1);
    const auto is_same = [](char one, char other) { return std::tolower(static_cast<unsigned char>(one)) == other; };
    return std::ranges::equal(name, wanted, is_same) && type.find(',') == std::string_view::npos;
  }

  [[nodiscard]] static std::int64_t steps_in(const json& given) {
    if (!given.contains("steps")) { return usual_traced_steps; }
    const auto& steps = given["steps"];
    if (!steps.is_number_integer() || steps < 1 || steps > most_traced_steps) { throw refused{400, "steps must be from 1 to 1000"}; }
    return steps.get<std::int64_t>();
  }

  /// Returns the name of the session's run: that of its directory, which may appear after the start, or the title.
  [[nodiscard]] const std::optional<std::string>& live_run() {
    if (!of_.options.live || of_.is_live_listed) { return of_.live_run; }
    const auto& directory = of_.options.live_directory;
    const auto canonical = directory.empty() ? result<std::string>(std::string()) : of_.runs.files().canonical(directory);
    if (!directory.empty() && canonical) {
      for (const auto& entry : of_.runs.list()) {
        const auto other = of_.runs.files().canonical(entry.path);
        if (!other || *other != *canonical) { continue; }
        of_.is_live_listed = true;
        of_.live_run = entry.run;
        return of_.live_run;
      }
    }
    if (!of_.live_run) {
      of_.live_run = format::to_utf8(directory.empty() ? of_.options.title : io::base_name(directory));
      while (of_.runs.find(*of_.live_run) != nullptr) { *of_.live_run += " (this process)"; }
    }
    return of_.live_run;
  }

  /// Returns the checkpoints of the session. They are listed again after each save.
  [[nodiscard]] const std::vector<checkpoint_entry>& live_checkpoints() {
    const auto& directory = of_.options.checkpoint_directory;
    const auto view = live().view();
    if (!directory.empty() && std::exchange(of_.checkpoint_saves, view.metrics.saves) != view.metrics.saves) {
      of_.checkpoints = checkpoints_in(of_.runs.files(), directory);
    }
    for (auto& one : of_.checkpoints) { one.is_verified = view.restored_from == io::join_path(directory, one.name); }
    return of_.checkpoints;
  }

  [[nodiscard]] json checkpoints_json(const session_view& view) {
    const auto& directory = of_.options.checkpoint_directory;
    const auto& m = view.metrics;
    const auto& all = live_checkpoints();
    const auto* newest = all.empty() ? nullptr : &all.front();
    const double age = newest != nullptr ? std::max(0.0, of_.now() - newest->time) : 0;
    const auto saved_step = newest != nullptr ? newest->step : view.first_step;
    return {{"directory", directory.empty() ? json() : json(directory)},
            {"newest", newest != nullptr ? checkpoint_json(*newest) : json()},
            {"age_seconds", newest != nullptr ? json(age) : json()},
            {"saves", m.saves},
            {"saves_failed", m.saves_failed},
            {"saves_skipped", m.saves_skipped},
            {"saves_postponed", m.saves_postponed},
            {"last_save_seconds", m.last_save_time.count()},
            {"backlog",
             {{"writing_bytes", m.under_way.writing_bytes},
              {"writing_seconds", m.under_way.writing_for.count()},
              {"waiting_bytes", m.under_way.waiting_bytes}}},
            {"lost_steps", std::max<std::int64_t>(0, view.step - saved_step)},
            {"lost_seconds", newest != nullptr ? age : std::max(0.0, of_.now() - view.started)}};
  }

  void add_values() {
    const auto view = live().view();
    auto values = json::object();
    for (const auto& [name, value, step] : view.watched) {
      const auto [known, is_new] = of_.sent_values.try_emplace(name, value);
      const bool is_same = !is_new && (known->second == value || (std::isnan(known->second) && std::isnan(value)));
      known->second = value;
      if (!is_same) { values[name] = number(value); }
    }
    if (values.empty()) { return; }
    live().add_event("values", text_of({{"run", or_null(of_.live_run)}, {"step", view.step}, {"time", view.time}, {"values", values}}));
  }

  /// Adds a `changed` event if the event files of the live run have grown. Looks at most once a second.
  void add_changed() {
    if (of_.now() - of_.looked_at < 1) { return; }
    of_.looked_at = of_.now();
    const auto& run = live_run();
    if (!of_.is_live_listed) { return; }
    const auto bytes = of_.runs.bytes_of(*run);
    if (std::exchange(of_.live_bytes, bytes) != bytes) { live().add_event("changed", text_of({{"runs", {*run}}})); }
  }

  state& of_;
};

board_service::board_service(service_options options, access_rules rules, run_directory runs)
    : state_(std::make_unique<state>(state{std::move(options), std::move(rules), std::move(runs)})) {}
board_service::~board_service() = default;

void board_service::pump() { routes(*state_).pump(); }

std::string board_service::events_text(std::uint64_t& last) {
  std::string text;
  if (!state_->options.live) { return text; }
  bool is_skipped = false;
  const auto events = state_->options.live->events_after(last, is_skipped);
  if (is_skipped) { text += "event: skipped\ndata: {}\n\n"; }
  for (const auto& [id, kind, data] : events) {
    text += event_text(id, kind, data);
    last = id;
  }
  return text;
}

answer board_service::answer_to(const request& asked) {
  if (auto refusal = state_->rules.refusal_of(asked)) { return *std::move(refusal); }
  const auto target = parse_target(asked.target);
  if (!target) { return refusal(400, "invalid target"); }
  const auto& path = target->path;
  routes routes(*state_);
  try {
    constexpr std::string_view actions = "/api/actions/";
    if (asked.method == "POST" && path.starts_with(actions)) {
      if (!state_->rules.has_token(asked)) { throw refused{401, "the header Authorization: Bearer TOKEN is required"}; }
      return routes.act(path.substr(actions.size()), asked);
    }
    if (asked.method != "GET") { throw refused{405, "use the method GET"}; }
    if (path == "/") {
      return {200, std::string(page_text), "text/html; charset=utf-8", {{"Content-Security-Policy", std::string(page_policy)}}};
    }
    if (path == "/healthz") { return routes.health(); }
    if (state_->options.needs_token_to_read && !state_->rules.has_token(asked)) {
      throw refused{401, "the header Authorization: Bearer TOKEN is required, also to read"};
    }
    const parameters given(*target);
    if (path == "/metrics") { return routes.metrics(); }
    if (path == "/api/openapi.yaml") { return {200, std::string(interface_text), std::string(text_plain)}; }
    if (path == "/api/board") { return routes.board(); }
    if (path == "/api/session") { return routes.session(); }
    if (path == "/api/runs") { return routes.runs(); }
    if (path == "/api/tags") { return routes.tags(given); }
    if (path == "/api/curve") { return routes.curve(given); }
    if (path == "/api/marks") { return routes.marks(given); }
    if (path == "/api/checkpoints") { return routes.checkpoints(given); }
    if (path == "/api/histograms") { return routes.histograms(given); }
    if (path == "/api/texts") { return routes.texts(given); }
    if (path == "/api/images") { return routes.images(given); }
    if (path == "/api/image") { return routes.image(given); }
    if (path == "/api/hparams") { return routes.hparams(given); }
    if (path == "/api/log") { return routes.log(given); }
    if (path == "/api/ranks") { return routes.ranks(); }
    if (path == "/api/live") { return routes.events(shared_from_this(), asked); }
    constexpr std::string_view trace = "/api/trace/";
    if (path.starts_with(trace)) { return routes.trace(path.substr(trace.size())); }
    if (path.starts_with(actions)) { return routes.action(path.substr(actions.size())); }
    throw refused{404, "not found; /api/openapi.yaml lists all addresses"};
  } catch (const refused& why) { return refusal(why.status, why.why); }
}

}  // namespace stepwell::board
