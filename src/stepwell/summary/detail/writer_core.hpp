// SPDX-License-Identifier: Apache-2.0
//
// Private to summary: the implementation of `writer`.
#pragma once

#include "stepwell/format/events/event.hpp"
#include "stepwell/summary/detail/event_file.hpp"
#include "stepwell/summary/detail/output.hpp"
#include "stepwell/summary/writer.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace stepwell::summary {

/// Hash that allows lookup of strings by `string_view`.
struct text_hash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
};
using text_set = std::unordered_set<std::string, text_hash, std::equal_to<>>;

class writer::core {
public:
  core(std::string directory, writer_options options);

  void add_float(std::string_view tag, float value, std::int64_t step);
  void add_event(format::event happened);
  void add_bytes(std::span<const std::byte> event);

  /// Returns the output of the event file.
  [[nodiscard]] output& out() noexcept { return output_; }
  [[nodiscard]] const output& out() const noexcept { return output_; }
  [[nodiscard]] bool accepts() const { return output_.accepts(); }
  /// Returns true at the first call with this kind and name.
  [[nodiscard]] bool is_first(std::string_view kind, std::string_view name);

  [[nodiscard]] double now_seconds() const;
  [[nodiscard]] format::summary_style style() const noexcept { return options_.style; }
  [[nodiscard]] const std::shared_ptr<clock>& time() const noexcept { return options_.time; }
  [[nodiscard]] const std::string& directory() const noexcept { return directory_; }
  [[nodiscard]] const std::string& path() const noexcept { return file_.path; }
  [[nodiscard]] const std::vector<std::shared_ptr<metric_writer>>& metrics() const noexcept { return options_.metrics; }

private:
  void write_first_record();
  void put_scalar(const format::scalar_event& happened, bool with_metadata);
  void drop_repeated_metadata(format::summary& values);

  const writer_options options_;
  const std::string directory_;
  new_event_file file_;
  output output_;

  std::mutex order_;            // held from the lookup of a tag until its value is queued; locked before the queue's mutex
  text_set described_;          // tags whose metadata is in the file
  std::set<std::string> said_;  // kind and name of everything that is written or logged once
};

}  // namespace stepwell::summary
