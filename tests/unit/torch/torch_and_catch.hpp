// SPDX-License-Identifier: Apache-2.0
//
// Includes LibTorch and Catch2. Both define CHECK; LibTorch is included first so that the tests use Catch2's.
#pragma once

#include <torch/torch.h>
#undef CHECK

#include "support/catch.hpp"
