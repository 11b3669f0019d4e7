// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hooks/step_counter_hook.hpp"

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/hooks/detail/value_text.hpp"
#include "stepwell/hooks/detail/writer_work.hpp"

#include <fmt/format.h>
#include <array>
#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace stepwell {
namespace {

/// Remaining warnings about an unchanged step in this process. The limit is for models that leave the step unchanged on purpose.
std::atomic<int> warnings_left = 5;

constexpr std::string_view rate_tag = "global_step/sec";

}  // namespace

step_counter_hook::step_counter_hook(step_counter_options options, std::optional<cadence> period)
    : period_(period), options_(std::move(options)), log_(options_.log_every_secs) {
  detail::refuse_negative("log_every_secs", options_.log_every_secs);
}

step_counter_hook::step_counter_hook(step_counter_options options)
    : step_counter_hook(options,
                        require_cadence("step_counter_hook", {"every_n_steps", options.every_n_steps, "every_n_secs", options.every_n_secs},
                                        default_period)) {}

void step_counter_hook::begin() {
  if (period_ && !options_.writer && !options_.output_dir.empty()) {
    options_.writer = summary::writer::shared(options_.output_dir, options_.events);
  }
}

void step_counter_hook::start(const session_requests& session, std::int64_t step) {
  clock_ = session.time();
  session_ = session.name();
  if (period_) { timer_ = second_or_step_timer(*period_, session.time()); }
  last_step_ = step;
  publisher_.start(session.watched(), {std::string(rate_tag)});
  if (options_.writer) { watch_writer(session, options_.writer); }
}

void step_counter_hook::note_standstill() const {
  if (!period_ || warnings_left.load(std::memory_order_relaxed) <= 0 || warnings_left.fetch_sub(1) <= 0) { return; }
  const log_scope named(session_);
  log_warning(
      fmt::format("It seems that global step (global_step) has not been increased. Current value (could be stable): {0} vs previous "
                  "value: {0}. No steps per second are reported; a model with its own global_step() must count its steps in step()",
                  last_step_));
}

void step_counter_hook::count(std::int64_t step) {
  const auto elapsed = timer_.update_last_triggered_step(step);
  if (!elapsed) { return; }
  const log_scope named(session_);
  if (elapsed->steps <= 0 || elapsed->seconds.count() <= 0) {
    log_warning(fmt::format("global_step went from {} to {} since the last count; no rate is reported", step - elapsed->steps, step));
    return;
  }
  const double rate = static_cast<double>(elapsed->steps) / elapsed->seconds.count();
  publisher_.publish(std::array{std::optional(rate)}, step);
  const auto now = clock_->now();
  if (log_.is_due(now)) { log_.add(session_, now, "global_step/sec: " + number_text(rate)); }
  if (options_.writer) { options_.writer->add_scalar(rate_tag, rate, step); }
}

}  // namespace stepwell
