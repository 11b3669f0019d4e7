// SPDX-License-Identifier: Apache-2.0
//
// Everything an asynchronous training program uses: `stepwell.hpp`, and sessions that are awaited. A separate header, because it includes
// Asio.
#pragma once

#include "stepwell/coro/async_sleep.hpp"
#include "stepwell/session/any_async_session.hpp"
#include "stepwell/session/async_session.hpp"
#include "stepwell/stepwell.hpp"
#include "stepwell/training/async_evaluate.hpp"
#include "stepwell/training/async_training_session.hpp"
