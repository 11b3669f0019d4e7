// expect: this file compiles, which the harness must notice
// SPDX-License-Identifier: Apache-2.0
#include <stepwell/base/error.hpp>

int main() { return static_cast<int>(stepwell::errc::cancelled) - 1; }
