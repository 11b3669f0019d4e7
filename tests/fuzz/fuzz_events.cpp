// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes `events`, `plot` and `stats` with random event files. The first byte selects if the bytes are the file itself
// or the contents of records with correct checksums.
#include "fuzz/tool_fuzz.hpp"

#include <stepwell/format/events/record.hpp>
#include <tool/commands.hpp>

#include <span>

namespace tool = stepwell::tool;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stepwell::test::fuzz_bytes bytes(data, size);
  const auto files = std::make_shared<stepwell::test::memory_files>();
  auto& file = files->content["run/events.out.tfevents.1"];
  if (bytes.byte() % 2 == 0) {
    file = bytes.rest();
  } else {
    std::vector<std::byte> records;
    while (!bytes.empty()) { stepwell::format::append_record(records, std::as_bytes(std::span(bytes.piece()))); }
    file.assign(reinterpret_cast<const char*>(records.data()), records.size());
  }
  const auto shown = [](tool::events_form form) {
    return [form](tool::console& to) { return tool::events({.target = "run", .form = form}, to); };
  };
  stepwell::test::run_all(files, {shown(tool::events_form::summary), shown(tool::events_form::json), shown(tool::events_form::csv),
                                  [](tool::console& to) { return tool::plot({.targets = {"run"}, .tags = {"loss"}}, to); },
                                  [](tool::console& to) { return tool::run_stats({.directory = "run"}, to); }});
  return 0;
}
