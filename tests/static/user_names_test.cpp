// SPDX-License-Identifier: Apache-2.0
//
// Tests that a model, hook, fetch, source or raw session may be in any namespace: a function there with the same name
// as one of the library is never called instead. Compiling is passing. All these functions accept any arguments and are
// deleted.
#include <stepwell/async.hpp>
#include <stepwell/stepwell.hpp>

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sw = stepwell;
namespace asio = boost::asio;

namespace user {

// clang-format off: several on one line
#define GREEDY(name) \
  template<class... T> void name(T&&...) = delete; \
  template<class Said, class... T> void name(T&&...) = delete; \
  template<auto Said, class... T> void name(T&&...) = delete
GREEDY(abandon_awaited); GREEDY(add_metrics); GREEDY(all_finite); GREEDY(alone_with); GREEDY(any_nan); GREEDY(append_fixed);
GREEDY(append_record); GREEDY(append_varint); GREEDY(as_duration); GREEDY(as_reference); GREEDY(as_request);
GREEDY(as_shape); GREEDY(async_drive); GREEDY(async_evaluate); GREEDY(async_sleep_until); GREEDY(async_with);
GREEDY(backoff_of); GREEDY(base_name); GREEDY(batch_of_step);
GREEDY(batch_passed_by); GREEDY(bfloat16_number); GREEDY(buffer_awaited); GREEDY(bytes_at); GREEDY(call_evaluation);
GREEDY(can_be_trained); GREEDY(complete); GREEDY(default_summary_hook); GREEDY(keeps_initial_state); GREEDY(make_origin); GREEDY(check_apart); GREEDY(check_apart_among); GREEDY(check_apart_from);
GREEDY(check_key); GREEDY(check_ready); GREEDY(check_retry_policy); GREEDY(check_roles); GREEDY(check_saver_options);
GREEDY(check_uninitialized); GREEDY(check_variable_names); GREEDY(checkpoint_exists); GREEDY(checkpoints_iterator);
GREEDY(chief_only); GREEDY(choose_cadence); GREEDY(classify); GREEDY(classify_failed_run);
GREEDY(close_awaited); GREEDY(close_or_log); GREEDY(column_major_as_transposed); GREEDY(crc32c); GREEDY(crc32c_combine);
GREEDY(crc32c_mask); GREEDY(crc32c_zeros); GREEDY(create_by);
GREEDY(csv_metric_bound); GREEDY(current_thread_id); GREEDY(current_thread_name); GREEDY(current_trace);
GREEDY(data_name); GREEDY(decode_bundle_entry); GREEDY(decode_bundle_header); GREEDY(decode_checkpoint_state);
GREEDY(decode_event); GREEDY(decode_hparams); GREEDY(decode_strings);
GREEDY(defer_cancellation); GREEDY(drive); GREEDY(dtype_of_element);
GREEDY(element_count); GREEDY(elements_on_device); GREEDY(ema_names); GREEDY(encode); GREEDY(encode_chrome_trace);
GREEDY(encode_event); GREEDY(encode_png); GREEDY(encode_run_metadata); GREEDY(encode_strings);
GREEDY(enqueue_from); GREEDY(enter); GREEDY(entry_of); GREEDY(evaluate); GREEDY(evaluate_beside); GREEDY(evaluate_each);
GREEDY(evaluate_once); GREEDY(evaluate_repeatedly); GREEDY(evaluation_awaited); GREEDY(event_directory);
GREEDY(example_count); GREEDY(execute); GREEDY(execute_at_once); GREEDY(executor_for); GREEDY(extract_result);
GREEDY(fed_member); GREEDY(feed); GREEDY(feed_into); GREEDY(feed_one); GREEDY(feeds); GREEDY(feeds_in); GREEDY(fetch);
GREEDY(file_of_descriptor); GREEDY(final_name_of_temporary); GREEDY(latest_whole_checkpoint); GREEDY(find_unlisted);
GREEDY(finish_run); GREEDY(first_element); GREEDY(flattened); GREEDY(flattened_hooks); GREEDY(following_of);
GREEDY(get_checkpoint_mtimes); GREEDY(guarded); GREEDY(half_number); GREEDY(has_writable_elements); GREEDY(hooks_of);
GREEDY(histogram); GREEDY(histogram_limits); GREEDY(image); GREEDY(index_name); GREEDY(initiate); GREEDY(is_aborted);
GREEDY(is_allowed); GREEDY(is_bad); GREEDY(is_cancelled_by); GREEDY(is_control_character); GREEDY(is_damage); GREEDY(is_end_of_loop);
GREEDY(is_memory_shortage); GREEDY(is_narrow_number); GREEDY(is_recoverable); GREEDY(is_repeatable); GREEDY(is_row_major);
GREEDY(is_saver_note); GREEDY(is_shared); GREEDY(is_slice_key); GREEDY(is_temporary_name); GREEDY(is_tracing);
GREEDY(is_utf8); GREEDY(join_path); GREEDY(json_metric_bound); GREEDY(keep_step); GREEDY(keys_in); GREEDY(keys_of);
GREEDY(latest_checkpoint); GREEDY(leave_awaited); GREEDY(list_checkpoints); GREEDY(load_little); GREEDY(log);
GREEDY(log_debug); GREEDY(log_error); GREEDY(log_evaluation); GREEDY(log_exception); GREEDY(log_failure); GREEDY(log_info);
GREEDY(log_warning); GREEDY(logging_cadence); GREEDY(make_batch); GREEDY(make_equal_histogram); GREEDY(make_error_code);
GREEDY(make_growing_histogram); GREEDY(make_histogram_value); GREEDY(make_hparams_value); GREEDY(make_image_value);
GREEDY(make_offloaded_call); GREEDY(make_scalar_value); GREEDY(make_text_value); GREEDY(make_training_session);
GREEDY(manager_for); GREEDY(memory_shortage); GREEDY(merge); GREEDY(modified_time); GREEDY(moments);
GREEDY(monitored_training_session); GREEDY(move_towards); GREEDY(name_of); GREEDY(name_of_call); GREEDY(names_in);
GREEDY(narrow_number); GREEDY(next_awaited); GREEDY(next_of); GREEDY(not_ready); GREEDY(number_text); GREEDY(on_its_own);
GREEDY(open_checkpoint); GREEDY(open_checkpoints); GREEDY(order_by_phase); GREEDY(parent_directory); GREEDY(parse_data_name);
GREEDY(parse_message); GREEDY(path_of); GREEDY(phase_of); GREEDY(philox4x32); GREEDY(place_of);
GREEDY(places_of); GREEDY(plan_preemption); GREEDY(plan_retention); GREEDY(posix_file_system); GREEDY(prepare_as_chief);
GREEDY(printable); GREEDY(printable_lines); GREEDY(progress_line); GREEDY(pull_variables);
GREEDY(push_variables); GREEDY(random_bits); GREEDY(random_block); GREEDY(read_file); GREEDY(read_fixed); GREEDY(read_record);
GREEDY(read_state_file); GREEDY(read_text_file); GREEDY(record_data);
GREEDY(refuse_negative); GREEDY(refuse_rewind); GREEDY(release_at_end); GREEDY(remove_checkpoint); GREEDY(remove_data_files);
GREEDY(remove_or_log); GREEDY(request_type_of); GREEDY(restore); GREEDY(restored); GREEDY(result_for_caller);
GREEDY(result_into); GREEDY(retry_on_signal); GREEDY(returned_by); GREEDY(run_awaited); GREEDY(run_call); GREEDY(run_of);
GREEDY(run_raw_awaited); GREEDY(run_step); GREEDY(run_step_awaited); GREEDY(run_within_step); GREEDY(run_within_step_awaited);
GREEDY(same_key); GREEDY(save_awaited); GREEDY(scalar); GREEDY(scan_file); GREEDY(seal_record); GREEDY(see_floats);
GREEDY(sessions_at); GREEDY(set_log_level); GREEDY(set_log_sink); GREEDY(set_thread_name);
GREEDY(setup_of); GREEDY(setup_with); GREEDY(shards_in_index); GREEDY(share); GREEDY(shuffled_batches); GREEDY(signal_name); GREEDY(sink_into);
GREEDY(size_of); GREEDY(slice_key); GREEDY(snapshot_awaited); GREEDY(snapshot_size); GREEDY(source); GREEDY(spawned);
GREEDY(start_awaited); GREEDY(start_queue_runners); GREEDY(start_thread); GREEDY(state_name_of); GREEDY(status_from_errno);
GREEDY(scaffold_in); GREEDY(step_fn_awaited); GREEDY(summaries); GREEDY(summary_ops_in); GREEDY(target_of); GREEDY(step_fn_result); GREEDY(step_in_name); GREEDY(step_of_checkpoint); GREEDY(steps_over);
GREEDY(stepwell_category); GREEDY(store_little); GREEDY(subject_in_raw); GREEDY(system_clock); GREEDY(tag); GREEDY(take);
GREEDY(take_awaited); GREEDY(take_next); GREEDY(take_run_awaited);
GREEDY(take_run_within_step);
GREEDY(take_once); GREEDY(take_step); GREEDY(take_varint); GREEDY(tensor_start); GREEDY(tensor_text); GREEDY(text);
GREEDY(text_of); GREEDY(text_of_key); GREEDY(throw_aborted); GREEDY(throw_both_given);
GREEDY(throw_fed_twice); GREEDY(throw_if_cancelled); GREEDY(throw_named); GREEDY(throw_not_row_major);
GREEDY(throw_nothing_to_begin_with); GREEDY(throw_status); GREEDY(time_after); GREEDY(to_string);
GREEDY(to_utf8); GREEDY(trace_of_this_thread); GREEDY(transform); GREEDY(try_next); GREEDY(try_run); GREEDY(type_name);
GREEDY(type_of_call); GREEDY(type_of_op); GREEDY(untagged); GREEDY(utf8_sequence_size); GREEDY(value_or_throw);
GREEDY(value_text); GREEDY(variables); GREEDY(view_of); GREEDY(visit_table);
GREEDY(wait_for_new_checkpoint); GREEDY(wait_for_release); GREEDY(wait_until_ready); GREEDY(warn_final_ops_read_input);
GREEDY(warn_of_unseekable); GREEDY(watch_writer); GREEDY(with); GREEDY(with_batch); GREEDY(with_feeds); GREEDY(with_memory);
GREEDY(write_csv_metric); GREEDY(write_file_atomically); GREEDY(write_histogram); GREEDY(write_images);
GREEDY(write_json_metric);
#undef GREEDY
// clang-format on

struct point {
  float x = 0;
};
struct result {
  float loss = 0;
  std::vector<float> all = {};
};

struct model {
  float weight = 0;
  result step(const point& at) { return {weight -= at.x}; }
  auto variables() { return sw::variables({{"weight", weight}}); }
};

struct loss_of {
  float operator()(const result& done) const { return done.loss; }
};

struct all_of {
  const std::vector<float>& operator()(const result& done) const { return done.all; }
};
struct weight_of {
  float operator()(model& of) const { return of.weight; }
};
struct doubled {
  point operator()(const point& one) const { return {2 * one.x}; }
};
struct examples {
  [[nodiscard]] std::uint64_t size() const { return 8; }
  [[nodiscard]] point batch(sw::data::example_indices /*which*/) const { return {}; }
};

struct hook {
  static constexpr auto state_name = "user_hook";
  std::int64_t seen = 0;
  void begin() {}
  void after_create_session(auto& /*session*/, auto& /*threads*/) {}
  auto before_run(auto& /*context*/) { return sw::fetch(loss_of{}); }
  void after_run(auto& /*context*/, const auto& /*values*/) { ++seen; }
  void on_error(auto& /*context*/, const auto& /*failure*/) {}
  void end(auto& /*session*/) {}
  auto variables() { return sw::variables({{"seen", seen}}); }
};

struct other_hook {
  void before_run(auto& /*context*/) {}
};

struct awaited_model {
  float weight = 0;
  asio::awaitable<result> step(point at) { co_return result{weight -= at.x}; }
  auto variables() { return sw::variables({{"weight", weight}}); }
};

class tape {
public:
  const point* peek() { return place_ < 3 ? &only_ : nullptr; }
  void advance() { ++place_; }
  [[nodiscard]] std::uint64_t position() const { return place_; }
  void seek(std::uint64_t position) { place_ = position; }

private:
  point only_;
  std::uint64_t place_ = 0;
};

struct machine {
  std::int64_t steps = 0;
};
struct dial {
  friend bool operator==(dial, dial) = default;
};

class raw_session {
public:
  using result_type = result;
  using outcome_type = sw::run_outcome<result>;

  explicit raw_session(machine& on) : machine_(&on) {}
  outcome_type run(const auto& /*order*/, const point& /*at*/) {
    ++machine_->steps;
    return {{}, machine_->steps - 1, machine_->steps};
  }
  bool feed(const auto& /*order*/) const { return true; }
  float read(const outcome_type& /*done*/, dial /*wanted*/) const { return 1; }
  float read(const outcome_type& done, loss_of wanted) const { return wanted(done.result); }
  std::int64_t global_step() const { return machine_->steps; }
  sw::variable_list variables() { return sw::variables({{std::string(sw::global_step_name), machine_->steps}}); }

private:
  machine* machine_;
};

struct turned {
  auto operator()() const { return sw::feed(dial{}, 1.0F); }
};
struct creator {
  machine* of;
  raw_session create_session() { return raw_session(*of); }
};

}  // namespace user

namespace {

void take_hooks(user::model& model, std::vector<user::point>& batches, user::tape& tape) {
  const sw::training_options options{.checkpoint_dir = "run"};
  sw::ema_hook average(model);
  auto session = sw::monitored_training_session(
      model, options, sw::summaries(sw::summary::scalar("loss", user::loss_of{})), sw::scaffold<user::model>(), user::hook{},
      std::ref(average), sw::chief_only(user::other_hook{}), sw::nan_tensor_hook{user::loss_of{}},
      sw::rollback_on_nan_hook{user::loss_of{}, sw::skip_batch{}}, sw::early_stopping_hook{{}, user::loss_of{}},
      sw::progress_hook{{}, user::loss_of{}}, sw::profiler_hook{{.save_steps = 1, .output_dir = "run"}},
      sw::logging_tensor_hook{{.every_n_iter = 1}, sw::tag("loss", user::loss_of{}), sw::tag("all", user::all_of{})},
      sw::summary_saver_hook{{.output_dir = "run", .save_steps = 1},
                             sw::summary::scalar("loss", user::loss_of{}),
                             sw::summary::histogram("all", user::all_of{})},
      sw::final_ops_hook{user::weight_of{}});
  for (const auto& step : session.steps(batches)) { static_cast<void>(step.value.loss); }
  for (const auto& step : session.steps(tape)) { static_cast<void>(step.value.loss); }
  for (const auto& step : session.steps(sw::data::transform(tape, user::doubled{}))) { static_cast<void>(step.value.loss); }
  for (const auto& step : session.steps(sw::data::take(tape, 2))) { static_cast<void>(step.value.loss); }
  static_cast<void>(session.run(user::point{}));
  static_cast<void>(session.run(sw::fetch(user::loss_of{}), user::point{}));
  static_cast<void>(session.run_step_fn([](auto& context) { return context.session().run(user::point{}); }));
  static_cast<void>(session.snapshot());
  session.close();
}

void take_a_raw_session(user::machine& machine, std::vector<user::point>& batches) {
  sw::monitored_session session(sw::training_options{}, user::raw_session(machine), user::hook{}, sw::nan_tensor_hook{user::dial{}},
                                sw::feed_fn_hook{user::turned{}});
  for (const auto& step : session.steps(batches)) { static_cast<void>(step.value.loss); }
  static_cast<void>(session.run(sw::fetch(user::dial{}), sw::feed(user::dial{}, 1.0F), user::point{}));
  sw::monitored_session made(sw::training_options{}, user::creator{&machine}, user::hook{});
  sw::singular_monitored_session alone(user::creator{&machine}, user::hook{});
}

void evaluate(user::model& model, std::vector<user::point>& batches) {
  static_cast<void>(sw::evaluate_once(model, "run/model.ckpt-1", batches, {}, sw::final_ops_hook{user::weight_of{}}, user::other_hook{}));
  const auto again = [&batches]() -> auto& { return batches; };
  for (const auto& one : sw::evaluate_repeatedly(model, "run", again, {}, user::other_hook{})) { static_cast<void>(one); }
}

void feed_a_queue() {
  sw::data::fifo_queue<user::point> queue({.capacity = 10});
  static_cast<void>(sw::enqueue_from(queue, std::vector<user::point>(3)));
  user::tape tape;
  static_cast<void>(sw::enqueue_from(queue, tape));
  auto shuffled = sw::data::shuffled_batches(std::vector<user::point>(8), {.batch_size = 2, .seed = 1});
  static_cast<void>(shuffled.peek());
  auto own = sw::data::shuffled_batches(user::examples{}, {.batch_size = 2, .seed = 1});
  static_cast<void>(own.peek());
}

template<class Model>
asio::awaitable<void> await_all_of(Model& model, user::tape& tape) {
  auto session = sw::monitored_training_session(sw::defer_start, model, sw::training_options{.checkpoint_dir = "run"}, user::other_hook{});
  co_await session.async_start();
  for (;;) {
    const auto step = co_await session.async_next(tape);
    if (!step) { break; }
  }
  static_cast<void>(co_await session.async_run(user::point{}));
  static_cast<void>(co_await session.async_run(sw::fetch(user::loss_of{}), user::point{}));
  static_cast<void>(co_await session.async_snapshot());
  static_cast<void>(co_await session.async_checkpoint_now());
  co_await session.async_close();
}

[[maybe_unused]] asio::awaitable<void> take_users(user::model& model, user::awaited_model& awaited, user::machine& machine) {
  std::vector<user::point> batches(3);
  user::tape tape;
  take_hooks(model, batches, tape);
  take_a_raw_session(machine, batches);
  evaluate(model, batches);
  feed_a_queue();
  co_await await_all_of(model, tape);
  co_await await_all_of(awaited, tape);
}

}  // namespace
