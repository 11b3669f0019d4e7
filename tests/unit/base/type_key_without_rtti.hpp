// SPDX-License-Identifier: Apache-2.0
//
// Keys made by code without run-time type information.
#pragma once

#include <stepwell/base/detail/type_key.hpp>

namespace sw = stepwell;

struct far_type {};

sw::type_key key_of_int_without_rtti();
sw::type_key key_of_far_without_rtti();
