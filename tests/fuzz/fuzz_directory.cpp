// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes a checkpoint directory with a random state file and random metrics: the search for the newest checkpoint,
// `prune` and `verify`.
#include "fuzz/tool_fuzz.hpp"

#include <stepwell/checkpoint/find_checkpoints.hpp>
#include <stepwell/format/checkpoint/detail/bundle.hpp>
#include <stepwell/format/checkpoint/detail/table.hpp>
#include <tool/commands.hpp>

namespace tool = stepwell::tool;

namespace {

/// Returns the index of a checkpoint without tensors.
std::string empty_index() {
  stepwell::format::table_writer table;
  static_cast<void>(table.add("", encode(stepwell::format::bundle_header{.bad_consumers = {}})));
  return table.finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stepwell::test::fuzz_bytes bytes(data, size);
  const auto files = std::make_shared<stepwell::test::memory_files>();
  for (const auto* prefix : {"run/model.ckpt-1", "run/model.ckpt-2"}) {
    files->content[std::string(prefix) + ".index"] = empty_index();
    files->content[std::string(prefix) + ".data-00000-of-00001"] = "";
  }
  files->content["run/checkpoint"] = bytes.rest();
  const auto look = [&](tool::console&) {
    if (!stepwell::latest_whole_checkpoint("run", "model.ckpt", files)) { std::abort(); }  // both are good
    static_cast<void>(stepwell::latest_checkpoint("run", files));
    return tool::exit_code::good;
  };
  stepwell::test::run_all(files, {look, [](tool::console& to) { return tool::prune({.directory = "run"}, to); },
                                  [](tool::console& to) { return tool::verify({.target = "run"}, to); }});
  return 0;
}
