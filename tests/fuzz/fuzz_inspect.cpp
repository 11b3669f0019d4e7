// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes `inspect` and `verify` with random checkpoints. The checksums of a table reject most random bytes. The first
// byte therefore selects if the bytes are the index itself or the keys and values of a valid index.
#include "fuzz/tool_fuzz.hpp"

#include <stepwell/format/checkpoint/detail/bundle.hpp>
#include <stepwell/format/checkpoint/detail/table.hpp>
#include <tool/commands.hpp>

#include <map>
#include <utility>

namespace tool = stepwell::tool;

namespace {

std::string index_of(stepwell::test::fuzz_bytes& bytes, bool is_well_made) {
  if (!is_well_made) { return std::string(bytes.piece()); }
  std::map<std::string, std::string> entries{{"", encode(stepwell::format::bundle_header{})}};
  for (auto left = bytes.byte() % 16; left > 0; --left) {
    const auto key = bytes.piece();
    entries[std::string(key)] = bytes.piece();
  }
  stepwell::format::table_writer table;
  for (const auto& [key, value] : entries) { static_cast<void>(table.add(key, value)); }
  return table.finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stepwell::test::fuzz_bytes bytes(data, size);
  const bool is_well_made = bytes.byte() % 2 == 1;
  const auto files = std::make_shared<stepwell::test::memory_files>();
  files->content["run/m.index"] = index_of(bytes, is_well_made);
  files->content["run/m.data-00000-of-00001"] = bytes.rest();
  const auto inspected = [](tool::inspect_options options) {
    return [options = std::move(options)](tool::console& to) { return tool::inspect(options, to); };
  };
  stepwell::test::run_all(files, {inspected({.target = "run/m", .stats = true}), inspected({.target = "run", .json = true}),
                                  inspected({.target = "run/m", .print = "w"}), inspected({.target = "run/m", .diff = "run/m"}),
                                  [](tool::console& to) { return tool::verify({.target = "run"}, to); }});
  return 0;
}
