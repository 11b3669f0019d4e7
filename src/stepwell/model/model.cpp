// SPDX-License-Identifier: Apache-2.0
#include "stepwell/model/model.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/protocol/hook.hpp"
#include "stepwell/protocol/state_names.hpp"

#include <fmt/format.h>
#include <set>
#include <string_view>

namespace stepwell {

void check_variable_names(const variable_list& variables) {
  std::set<std::string_view> seen;
  for (const auto& variable : variables) {
    const std::string_view name = variable.name();
    if (name.empty()) { throw invalid_argument_error("a variable of the model has no name; give each one a name"); }
    if (name == global_step_name || name.starts_with(reserved_prefix)) {
      throw invalid_argument_error(fmt::format("the variable name \"{}\" is reserved for the session; choose another", name));
    }
    if (!seen.insert(name).second) {
      throw invalid_argument_error(fmt::format("two variables of the model are named \"{}\"; give them different names", name));
    }
  }
}

}  // namespace stepwell
