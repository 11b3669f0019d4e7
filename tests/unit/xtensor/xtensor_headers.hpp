// SPDX-License-Identifier: Apache-2.0
//
// The adapter for xtensor, and the headers of xtensor that the tests use. They moved in xtensor 0.26.
#pragma once

#include <stepwell/xtensor/xtensor.hpp>

#if __has_include(<xtensor/containers/xtensor.hpp>)
#include <xtensor/containers/xarray.hpp>
#include <xtensor/containers/xfixed.hpp>
#include <xtensor/containers/xtensor.hpp>
#include <xtensor/core/xmath.hpp>
#include <xtensor/core/xnoalias.hpp>
#include <xtensor/generators/xrandom.hpp>
#include <xtensor/misc/xcomplex.hpp>
#include <xtensor/misc/xmanipulation.hpp>
#include <xtensor/views/xindex_view.hpp>
#else
#include <xtensor/xarray.hpp>
#include <xtensor/xcomplex.hpp>
#include <xtensor/xfixed.hpp>
#include <xtensor/xindex_view.hpp>
#include <xtensor/xmanipulation.hpp>
#include <xtensor/xmath.hpp>
#include <xtensor/xnoalias.hpp>
#include <xtensor/xrandom.hpp>
#include <xtensor/xtensor.hpp>
#endif
#include <xtl/xhalf_float.hpp>
