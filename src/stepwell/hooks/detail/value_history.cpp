// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hooks/detail/value_history.hpp"

#include "stepwell/base/detail/read_double.hpp"
#include "stepwell/base/detail/unset.hpp"
#include "stepwell/format/detail/metric_line.hpp"

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace stepwell::detail {
namespace {

std::optional<std::pair<std::int64_t, double>> read_line(std::string_view line) {
  std::pair<std::int64_t, double> read;
  const char* const end = line.data() + line.size();
  const auto step = std::from_chars(line.data(), end, read.first);
  if (step.ec != std::errc() || step.ptr == end || *step.ptr != ' ') { return std::nullopt; }
  const auto value = read_double(step.ptr + 1, end, read.second);
  if (value.ec != std::errc() || value.ptr != end) { return std::nullopt; }
  return read;
}

}  // namespace

value_history::value_history(std::vector<std::string> names, std::string prefix)
    : names_(std::move(names)), prefix_(std::move(prefix)), lines_(names_.size()) {}

void value_history::start(const session_requests& session, std::span<const double> newest, std::int64_t step) {
  std::vector<std::string> published;
  for (const auto& name : names_) { published.push_back(prefix_ + name); }
  publisher_.start(session.watched(), published);
  publish(newest, step);
}

void value_history::publish(std::span<const double> values, std::int64_t step) {
  std::vector<std::optional<double>> published;
  for (const double value : values) { published.push_back(if_set(value)); }
  publisher_.publish(published, step);
}

void value_history::add(std::span<const double> values, std::int64_t step) {
  publish(values, step);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (is_unset(values[i])) { continue; }
    auto& lines = lines_[i];
    lines += format::number_text(step).view();
    lines += ' ';
    lines += format::number_text(values[i]).view();
    lines += '\n';
    if (lines.size() > max_bytes) { lines.erase(0, lines.find('\n', lines.size() - max_bytes - 1) + 1); }
  }
}

void value_history::add_to(std::vector<history_value>& all) const {
  for (std::size_t i = 0; i < names_.size(); ++i) {
    for (std::string_view rest = lines_[i]; !rest.empty();) {
      const auto size = rest.find('\n');
      if (const auto value = read_line(rest.substr(0, size))) { all.push_back({prefix_ + names_[i], value->second, value->first}); }
      rest.remove_prefix(size == std::string_view::npos ? rest.size() : size + 1);
    }
  }
}

void value_history::add_variables(variable_list& all) {
  for (std::size_t i = 0; i < names_.size(); ++i) { all.emplace_back("history/" + names_[i], lines_[i]); }
}

}  // namespace stepwell::detail
