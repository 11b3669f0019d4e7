// SPDX-License-Identifier: Apache-2.0
//
// LibTorch and Catch2. Both define CHECK; the tests use Catch2's, so LibTorch is included first.
#pragma once

#include <torch/torch.h>
#undef CHECK

#include "support/catch.hpp"
