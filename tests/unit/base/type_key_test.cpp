// SPDX-License-Identifier: Apache-2.0
#include <stepwell/base/detail/type_key.hpp>

#include "support/catch.hpp"
#include "unit/base/type_key_without_rtti.hpp"

namespace {
struct near_type {};
template<class T>
struct held_array {};
}  // namespace

TEST_CASE("keys of one type are equal, keys of two are not, and no type has the key of none", "[base][type_key]") {
  CHECK(sw::type_key::of<int>() == sw::type_key::of<int>());
  CHECK(sw::type_key::of<int>() == sw::type_key::of<const int&>());
  CHECK(sw::type_key::of<int>() != sw::type_key::of<long>());
  CHECK(sw::type_key::of<near_type>() == sw::type_key::of<near_type>());
  CHECK(sw::type_key::of<near_type>() != sw::type_key::of<far_type>());
  CHECK(sw::type_key() == sw::type_key());
  CHECK(sw::type_key::of<void>() != sw::type_key());
}

TEST_CASE("two types of one name, local to two functions, have different keys", "[base][type_key]") {
  const auto one = [] {
    struct same {};
    return sw::type_key::of<same>();
  }();
  const auto other = [] {
    struct same {};
    return sw::type_key::of<same>();
  }();
  CHECK(one != other);
}

TEST_CASE("keys made with and without run-time type information agree", "[base][type_key]") {
  CHECK(key_of_int_without_rtti() == sw::type_key::of<int>());
  CHECK(key_of_far_without_rtti() == sw::type_key::of<far_type>());
  CHECK(key_of_far_without_rtti() != sw::type_key::of<near_type>());
}

TEST_CASE("the name of a type is whole, with brackets in it", "[base][type_key]") {
  CHECK(sw::type_name<int>() == "int");
  CHECK(sw::type_name<void>() == "void");
  CHECK(sw::type_name<held_array<int[3]>>().ends_with("[3]>"));
}
