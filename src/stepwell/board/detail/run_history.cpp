// SPDX-License-Identifier: Apache-2.0
#include "stepwell/board/detail/run_history.hpp"

#include "stepwell/base/clock.hpp"
#include "stepwell/base/detail/visit_dtype.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/board/detail/keep_newest.hpp"
#include "stepwell/format/checkpoint/detail/ending_file.hpp"
#include "stepwell/format/detail/coding.hpp"
#include "stepwell/format/events/detail/summary_values.hpp"
#include "stepwell/kernel/detail/statistics.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <span>
#include <variant>

namespace stepwell::board {
namespace {

constexpr std::size_t most_tags = 2000;
constexpr std::size_t longest_tag = 4096;
constexpr std::size_t most_kept_histograms = 400;  // of one tag
constexpr std::size_t most_histogram_buckets = 4096;
constexpr std::size_t most_texts = 50;
constexpr std::size_t longest_text = std::size_t{64} << 10;
constexpr std::size_t most_images = 50;
constexpr std::size_t largest_image = std::size_t{4} << 20;
constexpr std::size_t most_marks = 1000;
constexpr std::size_t most_runs = 10'000;
constexpr std::size_t most_searched = 100'000;   // directories
constexpr double longest_close = 10;             // seconds from the ending file to the last event of an evaluation below the run
constexpr std::size_t most_points = 16'000'000;  // of all runs in memory, 24 bytes each

/// Returns the number in a tensor with one element. Empty for other tensors.
std::optional<double> number_in(const tensor& held) {
  const bool is_number = held.dtype() != dtype::string && held.dtype() != dtype::complex64 && held.dtype() != dtype::complex128;
  if (!is_number || element_count(held.shape()) != 1 || held.bytes().empty()) { return std::nullopt; }
  return kernel::number_at({held.dtype(), held.bytes()}, 0);
}

/// Removes the element whose neighbours are closest to each other if there are more than `most`, so the others keep about equal distances.
/// The first and the last element stay.
template<class Record>
void thin_out(std::vector<Record>& all, std::size_t most) {
  if (all.size() <= most) { return; }
  const auto gap = [&](std::size_t i) { return static_cast<double>(all[i + 1].step) - static_cast<double>(all[i - 1].step); };
  std::size_t closest = 1;
  for (std::size_t i = 2; i + 1 < all.size(); ++i) {
    if (gap(i) < gap(closest)) { closest = i; }
  }
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(closest));
}

template<class Map>
void cut_records(Map& all, std::int64_t step) {
  for (auto& [tag, records] : all) {
    std::erase_if(records, [&](const auto& record) { return record.step >= step; });
  }
}

/// Returns a histogram of rows (left edge, right edge, count).
histogram_record histogram_of_rows(const tensor& rows, const format::event& of) {
  histogram_record made{.step = of.step, .time = of.wall_time};
  const auto count = std::min(rows.bytes().size() / (3 * sizeof(double)), most_histogram_buckets);
  for (std::size_t i = 0; i < count; ++i) {
    double row[3];
    std::memcpy(row, rows.bytes().data() + i * sizeof row, sizeof row);
    if (i == 0) { made.min = row[0]; }
    made.max = row[1];
    made.count += row[2];
    made.sum += row[2] * (row[0] + row[1]) / 2;
    made.limits.push_back(row[1]);
    made.counts.push_back(row[2]);
  }
  return made;
}

std::string shortened(std::string_view text) {
  auto end = std::min(text.size(), longest_text);
  while (end < text.size() && end > 0 && (text[end] & '\xc0') == '\x80') { --end; }  // not within a UTF-8 sequence
  return format::to_utf8(text.substr(0, end)) + (end < text.size() ? "\u2026" : "");
}

std::int64_t number_of(std::string_view text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

run_history::run_history(std::shared_ptr<io::file_system> files, std::string directory)
    : files_(std::move(files)), directory_(std::move(directory)) {}

void run_history::refresh() {
  try {
    open_new_files();
  } catch (const std::exception& failure) { error_ = failure.what(); }
  for (auto& file : opened_) {
    if (!file.is_lost) { read(file); }
  }
}

void run_history::open_new_files() {
  for (const auto& name : value_or_throw(files_->list(directory_))) {
    const bool is_known = std::ranges::find(opened_, name, &event_file::name) != opened_.end();
    if (is_known || !summary::is_event_file(name)) { continue; }
    opened_.push_back(
        {name, std::make_unique<summary::event_stream>(*files_, io::join_path(directory_, name), summary::large_records::silent)});
  }
}

void run_history::read(event_file& file) {
  while (!file.stream->is_lost()) {
    try {
      const auto happened = file.stream->next(scalars_);
      if (!happened) { return; }
      add(*happened);
      for (const auto& scalar : scalars_) { add(scalar); }
    } catch (const std::exception& damage) {
      error_ = damage.what();
      if (dynamic_cast<const data_loss_error*>(&damage) == nullptr) { break; }  // the file cannot be read at all
    }
  }
  file.is_lost = true;
}

void run_history::add(const format::event& happened) {
  if (happened.wall_time > 0) {
    first_time_ = std::min(first_time_.value_or(happened.wall_time), happened.wall_time);
    last_time_ = std::max(last_time_.value_or(happened.wall_time), happened.wall_time);
  }
  if (const auto* values = std::get_if<format::summary>(&happened.what)) {
    for (const auto& value : values->values) { add(value, happened); }
    return;
  }
  const auto* log = std::get_if<format::session_log>(&happened.what);
  if (log == nullptr) { return; }
  const auto mark = [&](std::string kind, std::string text) {
    marks_.push_back({std::move(kind), happened.step, happened.wall_time, std::move(text)});
    keep_newest(marks_, most_marks);
  };
  switch (log->status) {
    case format::session_status::start: return begin_session(happened);
    case format::session_status::checkpoint: return mark("checkpoint", "saved " + io::base_name(format::to_utf8(log->checkpoint_path)));
    case format::session_status::stop: return mark("stop", "stopped");
    case format::session_status::unspecified: return;
  }
}

/// Drops the values of the steps that the new session makes again.
void run_history::begin_session(const format::event& happened) {
  points_ = 0;
  for (auto& [tag, of] : curves_) {
    of.cut(happened.step);
    points_ += of.points().size();
  }
  cut_records(histograms_, happened.step);
  cut_records(texts_, happened.step);
  cut_records(images_, happened.step);
  const bool is_first = marks_.empty() && happened.step <= 1;
  const auto before = std::to_string(happened.step - 1);
  marks_.push_back({is_first ? "start" : "resume", happened.step, happened.wall_time,
                    is_first ? "the run began" : "the run continued after step " + before});
  keep_newest(marks_, most_marks);
  if (last_step_ && *last_step_ >= happened.step) { last_step_ = happened.step - 1; }
}

bool run_history::accepts(const std::string& tag) {
  if (tag.size() > longest_tag) { return false; }
  if (plugins_.contains(tag)) { return true; }
  if (plugins_.size() < most_tags) { return true; }
  is_cut_ = true;
  return false;
}

void run_history::add(const format::summary_value& value, const format::event& of) {
  const auto tag = format::to_utf8(value.tag);
  if (!accepts(tag)) { return; }
  const auto known = plugins_.try_emplace(tag, value.metadata ? value.metadata->plugin_name : "").first;
  if (known->second.empty() && value.metadata) { known->second = value.metadata->plugin_name; }
  if (known->second == "hparams") {
    const auto decoded = format::decode_hparams(std::as_bytes(std::span(value.metadata ? value.metadata->plugin_content : std::string())));
    const auto* start = decoded ? std::get_if<format::hparams_start>(&decoded.value()) : nullptr;
    if (start != nullptr) { hparams_ = start->hparams; }
    return;
  }
  last_step_ = std::max(last_step_.value_or(of.step), of.step);
  if (const auto* number = std::get_if<float>(&value.value)) { return add_number(tag, of, static_cast<double>(*number)); }
  if (const auto* held = std::get_if<tensor>(&value.value)) { return add_tensor(value, *held, of); }
  if (const auto* image = std::get_if<format::image_value>(&value.value)) {
    return add_image(tag, of, image->width, image->height, image->encoded);
  }
  if (const auto* histogram = std::get_if<format::histogram_value>(&value.value)) {
    const auto& [min, max, num, sum, squares, limits, buckets] = *histogram;
    if (limits.size() > most_histogram_buckets || limits.size() != buckets.size() || limits.empty()) { return; }
    auto& all = histograms_[tag];
    all.push_back({of.step, of.wall_time, min, max, num, sum, limits, buckets});
    all.back().limits.back() = max;  // the last limit of this format is the greatest double
    thin_out(all, most_kept_histograms);
  }
}

void run_history::add(const format::scalar_event& of) {
  auto known = curves_.find(of.tag);
  if (known == curves_.end()) {
    const std::string tag(of.tag);
    if (!accepts(tag) || plugins_.try_emplace(tag).first->second == "hparams") { return; }
    known = curves_.try_emplace(tag).first;
  }
  last_step_ = std::max(last_step_.value_or(of.step), of.step);
  known->second.add({of.step, of.wall_time, static_cast<double>(of.value)});
  ++points_;
}

void run_history::add_number(const std::string& tag, const format::event& of, double value) {
  curves_[tag].add({of.step, of.wall_time, value});
  ++points_;
}

void run_history::add_tensor(const format::summary_value& value, const tensor& held, const format::event& of) {
  const auto tag = format::to_utf8(value.tag);
  const auto& plugin = plugins_.find(tag)->second;
  if (plugin == "histograms" && held.dtype() == dtype::float64 && held.shape().size() == 2 && held.shape()[1] == 3) {
    auto& all = histograms_[tag];
    all.push_back(histogram_of_rows(held, of));
    return thin_out(all, most_kept_histograms);
  }
  if (held.dtype() == dtype::string) {
    const auto& strings = held.strings();
    if (plugin == "text" && !strings.empty()) {
      auto& all = texts_[tag];
      all.push_back({of.step, of.wall_time, shortened(strings.front())});
      keep_newest(all, most_texts);
    }
    if (plugin == "images" && strings.size() >= 3) {  // width, height, then the images
      for (std::size_t i = 2; i < strings.size(); ++i) { add_image(tag, of, number_of(strings[0]), number_of(strings[1]), strings[i]); }
    }
    return;
  }
  if (const auto number = number_in(held)) { add_number(tag, of, *number); }
}

void run_history::add_image(const std::string& tag, const format::event& of, std::int64_t width, std::int64_t height, std::string encoded) {
  if (encoded.size() > largest_image) { return; }
  auto& all = images_[tag];
  const std::int64_t index = !all.empty() && all.back().step == of.step ? all.back().index + 1 : 0;
  all.push_back({of.step, index, of.wall_time, width, height, std::move(encoded)});
  keep_newest(all, most_images);
}

run_directory::run_directory(std::shared_ptr<io::file_system> files, std::string root, int depth)
    : files_(std::move(files)), root_(std::move(root)), depth_(depth) {}

const std::vector<run_entry>& run_directory::list() {
  entries_.clear();
  is_cut_ = false;
  searched_ = 0;
  search(root_, ".", depth_, nullptr);
  std::ranges::sort(entries_, {}, &run_entry::run);
  return entries_;
}

void run_directory::search(const std::string& path, const std::string& run, int depth, const ending_file* above) {
  const auto names = files_->list(path);
  if (!names) { return; }
  run_entry found{.run = format::to_utf8(run), .path = path};
  std::vector<std::string> below;
  const ending_file* own = nullptr;
  for (const auto& name : *names) {
    const bool may_be_run = depth > 0 && !name.starts_with('.');
    const bool is_ending = name == format::ending_file_name;
    if (!summary::is_event_file(name) && !may_be_run && !is_ending) { continue; }
    const auto info = files_->stat(io::join_path(path, name));
    if (!info) { continue; }  // deleted, or a dangling link
    if (info->is_directory) {
      if (may_be_run) { below.push_back(name); }
    } else if (is_ending) {
      own = &ending_in(path, detail::wall_seconds(info->modified));
    } else if (summary::is_event_file(name)) {
      ++found.files;
      found.bytes += info->size;
      found.changed = std::max(found.changed, detail::wall_seconds(info->modified));
    }
  }
  if (own != nullptr) { above = own; }
  if (found.files > 0) {
    // The files of an evaluation below the run end with it, unless they were written later.
    const bool has_ended = above != nullptr && (above == own || found.changed <= above->changed + longest_close);
    if (has_ended) { found.ending = above->ending; }
    if (entries_.size() == most_runs) { is_cut_ = true; }
    if (!is_cut_) { entries_.push_back(std::move(found)); }
  }
  for (const auto& name : below) {
    if (is_cut_ || ++searched_ > most_searched) {
      is_cut_ = true;
      return;
    }
    search(io::join_path(path, name), run == "." ? name : io::join_path(run, name), depth - 1, above);
  }
}

const run_directory::ending_file& run_directory::ending_in(const std::string& path, double changed) {
  auto& known = endings_[path];
  if (known.changed == changed) { return known; }
  known = {.changed = changed, .ending = std::nullopt};
  try {
    known.ending = run_ended(*files_, path);
  } catch (const std::exception&) {  // `stepwell verify` reports a damaged one
  }
  return known;
}

const run_entry* run_directory::find(std::string_view run) {
  const auto look = [&]() -> const run_entry* {
    const auto found = std::ranges::lower_bound(entries_, run, {}, &run_entry::run);
    return found != entries_.end() && found->run == run ? &*found : nullptr;
  };
  if (const auto* known = look()) { return known; }
  static_cast<void>(list());
  return look();
}

std::uint64_t run_directory::bytes_of(std::string_view run) {
  const auto* entry = find(run);
  const auto names = entry != nullptr ? files_->list(entry->path) : std::vector<std::string>();
  std::uint64_t bytes = 0;
  if (!names) { return bytes; }
  for (const auto& name : *names) {
    if (!summary::is_event_file(name)) { continue; }
    if (const auto info = files_->stat(io::join_path(entry->path, name))) { bytes += info->size; }
  }
  return bytes;
}

const run_history* run_directory::history(std::string_view run) {
  const auto* entry = find(run);
  if (entry == nullptr) { return nullptr; }
  auto known = std::ranges::find(known_, entry->path, &std::pair<std::string, run_history>::first);
  if (known == known_.end()) {
    known_.emplace_front(entry->path, run_history(files_, entry->path));
  } else {
    known_.splice(known_.begin(), known_, known);
  }
  known_.front().second.refresh();
  forget_old();
  return &known_.front().second;
}

/// Keeps the first run in any case.
void run_directory::forget_old() {
  std::size_t points = 0;
  for (auto at = known_.begin(); at != known_.end(); ++at) {
    points += at->second.points();
    if (at == known_.begin() || points <= most_points) { continue; }
    known_.erase(at, known_.end());
    return;
  }
}

}  // namespace stepwell::board
