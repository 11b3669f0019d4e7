// SPDX-License-Identifier: Apache-2.0
//
// Functions that read the spans a recorder has collected.
#pragma once

#include <stepwell/base/trace.hpp>

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::test {

/// A recorder on a clock that only the test moves.
struct traced {
  std::shared_ptr<manual_clock> time = std::make_shared<manual_clock>();
  std::shared_ptr<trace_recorder> recorder = std::make_shared<trace_recorder>(time);
};

/// Returns the names of the spans in the order in which the spans ended.
inline std::vector<std::string> names_of(const run_metadata& observed) {
  std::vector<std::string> names;
  for (const auto& span : observed.spans) { names.push_back(span.name); }
  return names;
}

/// Returns each name once.
inline std::set<std::string> kinds_of(const run_metadata& observed) {
  const auto names = names_of(observed);
  return {names.begin(), names.end()};
}

inline std::vector<trace_event> spans_named(const run_metadata& observed, std::string_view name) {
  std::vector<trace_event> found;
  std::ranges::copy_if(observed.spans, std::back_inserter(found), [&](const auto& span) { return span.name == name; });
  return found;
}

/// Returns the text of an argument, or an empty string.
inline std::string argument_of(const trace_event& span, std::string_view key) {
  const auto found = std::ranges::find(span.arguments, key, &trace_argument::key);
  return found == span.arguments.end() ? "" : found->text;
}

}  // namespace stepwell::test
