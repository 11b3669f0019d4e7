// SPDX-License-Identifier: Apache-2.0
#include "stepwell/protocol/hook.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/protocol/state_names.hpp"

namespace stepwell {

hook_states::hook_states() = default;
hook_states::~hook_states() = default;

void hook_states::add(const std::string& name, const variable_list& own) {
  if (!names_.insert(name).second) {
    throw invalid_argument_error("two hooks save state under the name \"" + name + "\"; give them different names");
  }
  for (const auto& variable : own) { all_.push_back(variable.renamed(std::string(hook_state_prefix) + name + "/" + variable.name())); }
}

}  // namespace stepwell
