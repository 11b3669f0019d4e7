// SPDX-License-Identifier: Apache-2.0
//
// A model with one variable that checkpoints hold and one local variable. Both start uninitialised (NaN).
#pragma once

#include <stepwell/base/variable.hpp>
#include <stepwell/checkpoint/detail/checkpoint_writer.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace stepwell::test {

struct two_part_model {
  static constexpr float uninitialized = std::numeric_limits<float>::quiet_NaN();

  float my_var = uninitialized;
  float my_local_var = uninitialized;
  std::string story = {};

  float step() { return my_var += 1; }

  variable_list variables() { return stepwell::variables({{"my_var", my_var}}); }

  void init_variables() {
    my_var = 10;
    tell("init");
  }
  void init_local_variables() {
    my_local_var = 20;
    tell("local_init");
  }
  std::vector<std::string> uninitialized_variables() const { return named_if_nan(my_var, "my_var"); }
  std::vector<std::string> uninitialized_local_variables() const { return named_if_nan(my_local_var, "my_local_var"); }

  void tell(const std::string& what) { story += (story.empty() ? "" : " ") + what; }

private:
  static std::vector<std::string> named_if_nan(float value, const char* name) {
    return std::isnan(value) ? std::vector<std::string>{name} : std::vector<std::string>{};
  }
};

/// Writes a checkpoint of the model like a session does, and returns its prefix.
inline std::string write_two_part_checkpoint(const std::string& prefix, float my_var, std::int64_t step) {
  detail::checkpoint_writer writer(prefix);
  writer.add("global_step", view_of(step));
  writer.add("my_var", view_of(my_var));
  writer.commit();
  return prefix;
}

}  // namespace stepwell::test
