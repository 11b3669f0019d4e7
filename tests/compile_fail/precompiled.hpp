// SPDX-License-Identifier: Apache-2.0
//
// The headers that most compile-fail tests include. A test of the harness precompiles them.
#pragma once

#include "support/toy_model.hpp"

#include <stepwell/training/monitored_training_session.hpp>
