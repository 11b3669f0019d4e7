// SPDX-License-Identifier: Apache-2.0
//
// A mark for hooks that take their options before their values. Deduction guides choose it if the options come last, so that the error of
// the compiler names the right order.
#pragma once

namespace stepwell::detail {

/// The first template argument of a hook whose options were given after its values. Such a hook does not compile.
struct options_given_last {
  int projection = 0;  // makes the type a `summary_op`
};

}  // namespace stepwell::detail
