// SPDX-License-Identifier: Apache-2.0
#include "stepwell/creation/save_safetensors.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/checkpoint/snapshot.hpp"
#include "stepwell/format/weights/detail/safetensors.hpp"
#include "stepwell/io/atomic_file.hpp"
#include "stepwell/io/file_system.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell {
namespace {

/// Returns the selected variables, under their names in the file.
variable_list renamed(const variable_list& variables, const weight_names& names) {
  variable_list chosen;
  for (const auto& variable : variables) {
    std::string_view name = variable.name();
    const auto pair = std::ranges::find(names.pairs, name, &checkpoint_name_map::value_type::second);
    if (pair != names.pairs.end()) {
      chosen.push_back(variable.renamed(pair->first));
    } else if (name.starts_with(names.prefix)) {
      std::string made(name.substr(names.prefix.size()));
      if (names.dots_to_slashes) { std::ranges::replace(made, '/', '.'); }
      chosen.push_back(variable.renamed(names.prefix_in_file + made));
    }
  }
  for (const auto& [theirs, ours] : names.pairs) {
    if (std::ranges::any_of(variables, [&](const variable_ref& variable) { return variable.name() == ours; })) { continue; }
    throw invalid_argument_error(fmt::format("there is no variable named \"{}\", for the array \"{}\"", ours, theirs));
  }
  return chosen;
}

}  // namespace

void save_safetensors(const variable_list& variables, const std::string& file, const weight_names& names,
                      std::shared_ptr<io::file_system> file_system) {
  const auto chosen = renamed(variables, names);
  const auto taken = snapshot::capture(snapshot_pool(0, 1).acquire(), chosen, 0);
  std::vector<snapshot_entry> entries(taken.entries().begin(), taken.entries().end());
  std::ranges::stable_sort(entries, std::greater(), [](const auto& entry) { return size_of(entry.dtype); });  // so all elements are aligned
  std::vector<format::safetensors_array> arrays;
  for (const auto& entry : entries) { arrays.push_back({entry.name, entry.dtype, entry.shape}); }
  const std::pair<std::string, std::string> metadata[] = {{"format", "pt"}};  // required by some programs; it does not change the arrays
  const auto header = value_or_throw(format::encode_safetensors_header(arrays, metadata));
  const auto files = file_system ? std::move(file_system) : io::posix_file_system();
  auto made = value_or_throw(io::atomic_file::create(*files, value_or_throw(io::absolute_path(file))));
  value_or_throw(made.append(std::as_bytes(std::span(header))));
  for (const auto& entry : entries) { value_or_throw(made.append(entry.bytes)); }
  value_or_throw(made.publish());
}

}  // namespace stepwell
