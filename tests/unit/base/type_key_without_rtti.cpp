// SPDX-License-Identifier: Apache-2.0
//
// The part of type_key_test.cpp that is compiled with -fno-rtti.
#include "unit/base/type_key_without_rtti.hpp"

sw::type_key key_of_int_without_rtti() { return sw::type_key::of<int>(); }
sw::type_key key_of_far_without_rtti() { return sw::type_key::of<far_type>(); }
