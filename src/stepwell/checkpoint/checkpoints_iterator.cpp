// SPDX-License-Identifier: Apache-2.0
#include "stepwell/checkpoint/checkpoints_iterator.hpp"

#include "stepwell/base/detail/time_after.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/checkpoint/detail/checkpoint_follower.hpp"

#include <memory>
#include <utility>

namespace stepwell {
namespace {

/// State of an iteration over the checkpoints of a directory.
class iteration {
public:
  iteration(std::string directory, checkpoints_iterator_options options)
      : follower_(std::move(directory), std::move(options.wait), options.all_listed, std::move(options.cancel_token)),
        min_interval_(options.min_interval_secs), timeout_fn_(std::move(options.timeout_fn)) {}

  [[nodiscard]] std::optional<std::string> next() {
    if (given_at_) { follower_.sleep_until(detail::time_after(*given_at_, min_interval_)); }
    auto found = follower_.wait_for_next();
    while (!found && !follower_.is_at_end() && timeout_fn_ && !timeout_fn_()) { found = follower_.wait_for_next(); }
    if (!found && !follower_.is_at_end() && !timeout_fn_) { log_info("Timed-out waiting for a checkpoint."); }
    given_at_ = follower_.time().now();
    return found;
  }

private:
  detail::checkpoint_follower follower_;
  seconds_value min_interval_;
  std::function<bool()> timeout_fn_;
  std::optional<clock::time_point> given_at_;
};

generator<const std::string&> all_of(std::unique_ptr<iteration> directory) {
  std::optional<std::string> prefix = directory->next();
  while (prefix) {
    co_yield *prefix;
    prefix = directory->next();
  }
}

}  // namespace

std::optional<std::string> wait_for_new_checkpoint(const std::string& checkpoint_dir, std::optional<std::string> last_checkpoint,
                                                   new_checkpoint_options options) {
  detail::checkpoint_follower follower(checkpoint_dir, std::move(options));
  if (last_checkpoint) { follower.skip(*last_checkpoint); }
  return follower.wait_for_next();
}

generator<const std::string&> checkpoints_iterator(std::string checkpoint_dir, checkpoints_iterator_options options) {
  return all_of(std::make_unique<iteration>(std::move(checkpoint_dir), std::move(options)));
}

}  // namespace stepwell
