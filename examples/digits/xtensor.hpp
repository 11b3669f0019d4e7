// SPDX-License-Identifier: Apache-2.0
//
// xtensor's container of fixed rank, whose header moved in xtensor 0.26.
#pragma once

#if __has_include(<xtensor/containers/xtensor.hpp>)
#include <xtensor/containers/xtensor.hpp>
#else
#include <xtensor/xtensor.hpp>
#endif
