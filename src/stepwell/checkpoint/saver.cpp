// SPDX-License-Identifier: Apache-2.0
#include "stepwell/checkpoint/saver.hpp"

#include "stepwell/checkpoint/detail/saver_core.hpp"

#include <utility>

namespace stepwell {

saver::saver(std::string directory, saver_options options) : core_(std::make_shared<core>(std::move(directory), std::move(options))) {}

saver::saver(saver&&) noexcept = default;

saver::~saver() {
  if (core_) { core_->close(); }
}
void saver::close() noexcept { core_->close(); }
void saver::detach() noexcept { core_->detach(); }
void saver::hold_until_released(std::shared_ptr<void> hold) { core_->hold_until_released(std::move(hold)); }

std::optional<snapshot_pool::buffer> saver::acquire(snapshot_pool& pool) { return core_->acquire(pool, true); }
std::optional<snapshot_pool::buffer> saver::try_acquire(snapshot_pool& pool) { return core_->acquire(pool, false); }
save_outcome saver::save(snapshot taken, std::function<void()> before_commit) {
  return core_->save(std::move(taken), std::move(before_commit));
}
saved_checkpoint saver::save_and_wait(snapshot taken) { return core_->save_and_wait(std::move(taken)); }

void saver::on_saved(std::function<void(const saved_checkpoint&)> callback) { core_->on_saved(std::move(callback)); }
void saver::on_failure(std::function<void(std::exception_ptr)> callback) { core_->on_failure(std::move(callback)); }

bool saver::has_failure() const noexcept { return core_->has_failure(); }
void saver::throw_if_failed() { core_->throw_if_failed(); }
bool saver::busy() const { return core_->busy(); }
save_backlog saver::backlog() const { return core_->backlog(); }
void saver::drain() { core_->drain(std::nullopt); }
void saver::drain(clock_type::time_point deadline) { core_->drain(deadline); }
void saver::when_idle(std::function<void()> wake) { core_->when_idle(std::move(wake)); }

std::optional<checkpoint_reader> saver::restore_newest() { return core_->directory().restore_newest(); }
std::optional<saved_checkpoint> saver::latest() const { return core_->latest(); }
std::vector<std::string> saver::checkpoints() const { return core_->directory().checkpoints(); }
void saver::pin(const std::string& prefix) { core_->directory().pin(prefix); }
void saver::report_metric(std::int64_t step, double value) { core_->report_metric(step, value); }

const std::string& saver::directory() const noexcept { return core_->path(); }
const saver_options& saver::options() const noexcept { return core_->options(); }

}  // namespace stepwell
