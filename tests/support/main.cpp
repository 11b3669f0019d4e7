// SPDX-License-Identifier: Apache-2.0
//
// The main function of Catch2, compiled once for all test programs.
#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>

int main(int count, char* arguments[]) { return Catch::Session().run(count, arguments); }
#else
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif
