// SPDX-License-Identifier: Apache-2.0
//
// Reads event files, for the tests of their writers.
#pragma once

#include "support/catch.hpp"
#include "support/file_text.hpp"

#include <stepwell/format/events/event.hpp>
#include <stepwell/format/events/record.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace stepwell::test {

/// Returns the events of a whole file. Fails the test if the file is damaged or truncated.
inline std::vector<format::event> events_of(const std::string& path) {
  const auto text = file_text(path);
  format::record_decoder decoder;
  decoder.feed(std::as_bytes(std::span(text)));
  std::vector<format::event> all;
  for (;;) {
    const auto data = decoder.next();
    if (!data) {
      CHECK(data.error().code == errc::truncated);
      CHECK(decoder.pending() == 0);
      return all;
    }
    auto event = format::decode_event(*data);
    REQUIRE(event.ok());
    all.push_back(std::move(event).value());
  }
}

/// Returns the sorted names of the files in a directory.
inline std::vector<std::string> file_names_in(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) { names.push_back(entry.path().filename()); }
  std::ranges::sort(names);
  return names;
}

/// Returns true as soon as `done()` is true, or false after ten seconds. Only a failing test waits that long.
template<class Predicate>
bool eventually(Predicate done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) { return false; }
    std::this_thread::yield();
  }
  return true;
}

/// Returns the values of an event that is a summary.
inline const std::vector<format::summary_value>& values_of(const format::event& happened) {
  REQUIRE(std::holds_alternative<format::summary>(happened.what));
  return std::get<format::summary>(happened.what).values;
}

}  // namespace stepwell::test
