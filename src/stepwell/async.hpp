// SPDX-License-Identifier: Apache-2.0
//
// Includes all headers for an asynchronous training program: `stepwell.hpp`, and the headers of sessions and evaluations that are awaited
// with `co_await`. This is a separate header, because it includes Asio.
#pragma once

#include "stepwell/coro/detail/async_sleep.hpp"
#include "stepwell/session/any_async_session.hpp"
#include "stepwell/session/async_session.hpp"
#include "stepwell/stepwell.hpp"
#include "stepwell/training/async_evaluate.hpp"
#include "stepwell/training/async_training_session.hpp"
