// SPDX-License-Identifier: Apache-2.0
//
// `import stepwell;`: the names for users, by folder. The headers document the names; tests/hygiene/module.sh writes the lists, and says
// which names are for users.
//
// Include headers first and import last, because declarations in a header included after the import may conflict with the imported ones.
module;

#include "stepwell/async.hpp"
#include "stepwell/base/cadence.hpp"
#include "stepwell/base/clock.hpp"
#include "stepwell/base/deadline.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/base/random.hpp"
#include "stepwell/base/tensor.hpp"
#include "stepwell/base/trace.hpp"
#include "stepwell/base/variable.hpp"
#include "stepwell/checkpoint/best_checkpoint.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/checkpoint/checkpoint_writer.hpp"
#include "stepwell/checkpoint/checksum.hpp"
#include "stepwell/checkpoint/find_checkpoints.hpp"
#include "stepwell/checkpoint/restore.hpp"
#include "stepwell/checkpoint/saver.hpp"
#include "stepwell/checkpoint/snapshot.hpp"
#include "stepwell/checkpoint/update_fence.hpp"
#include "stepwell/coro/generator.hpp"
#if __has_include(<range/v3/range/concepts.hpp>)
#include "stepwell/coro/range_v3.hpp"
#endif
#include "stepwell/creation/init_from_weights.hpp"
#include "stepwell/creation/scaffold.hpp"
#include "stepwell/creation/session_creation.hpp"
#include "stepwell/creation/session_creator.hpp"
#include "stepwell/creation/session_manager.hpp"
#include "stepwell/data/counter.hpp"
#include "stepwell/data/mapped_records.hpp"
#include "stepwell/data/prefetch.hpp"
#include "stepwell/data/queue.hpp"
#include "stepwell/data/record_files.hpp"
#include "stepwell/data/shuffled_batches.hpp"
#include "stepwell/data/source.hpp"
#include "stepwell/format/checkpoint/bundle.hpp"
#include "stepwell/format/checkpoint/checkpoint_state.hpp"
#include "stepwell/format/checkpoint/table.hpp"
#include "stepwell/format/events/event.hpp"
#include "stepwell/format/events/record.hpp"
#include "stepwell/format/examples/example.hpp"
#include "stepwell/group/engine.hpp"
#include "stepwell/group/group.hpp"
#include "stepwell/group/part_of.hpp"
#include "stepwell/hooks/best_checkpoint_hook.hpp"
#include "stepwell/hooks/checkpoint_saver_hook.hpp"
#include "stepwell/hooks/early_stopping_hook.hpp"
#include "stepwell/hooks/ema_hook.hpp"
#include "stepwell/hooks/epoch_mean_hook.hpp"
#include "stepwell/hooks/evaluate_every.hpp"
#include "stepwell/hooks/factories.hpp"
#include "stepwell/hooks/feed_fn_hook.hpp"
#include "stepwell/hooks/final_ops_hook.hpp"
#include "stepwell/hooks/function_hooks.hpp"
#include "stepwell/hooks/global_step_waiter_hook.hpp"
#include "stepwell/hooks/logging_tensor_hook.hpp"
#include "stepwell/hooks/nan_hooks.hpp"
#include "stepwell/hooks/profiler_hook.hpp"
#include "stepwell/hooks/progress_hook.hpp"
#include "stepwell/hooks/scheduled_hook.hpp"
#include "stepwell/hooks/step_counter_hook.hpp"
#include "stepwell/hooks/stop_hooks.hpp"
#include "stepwell/hooks/summary_saver_hook.hpp"
#include "stepwell/io/atomic_file.hpp"
#include "stepwell/io/fenced_directory.hpp"
#include "stepwell/io/file_system.hpp"
#include "stepwell/io/pool.hpp"
#include "stepwell/kernel/statistics.hpp"
#include "stepwell/metrics/metrics.hpp"
#include "stepwell/model/model.hpp"
#include "stepwell/model/model_session.hpp"
#include "stepwell/protocol/any_hook.hpp"
#include "stepwell/protocol/feed.hpp"
#include "stepwell/protocol/fetch.hpp"
#include "stepwell/protocol/hook.hpp"
#include "stepwell/protocol/preemption_plan.hpp"
#include "stepwell/protocol/prometheus.hpp"
#include "stepwell/protocol/raw_session.hpp"
#include "stepwell/protocol/run_args.hpp"
#include "stepwell/protocol/run_context.hpp"
#include "stepwell/protocol/run_ending.hpp"
#include "stepwell/protocol/run_options.hpp"
#include "stepwell/protocol/run_request.hpp"
#include "stepwell/protocol/session_metrics.hpp"
#include "stepwell/protocol/session_signals.hpp"
#include "stepwell/protocol/state_names.hpp"
#include "stepwell/protocol/watched_values.hpp"
#include "stepwell/schedules/schedules.hpp"
#include "stepwell/session/any_async_session.hpp"
#include "stepwell/session/any_session.hpp"
#include "stepwell/session/async_options.hpp"
#include "stepwell/session/async_session.hpp"
#include "stepwell/session/monitored_session.hpp"
#include "stepwell/session/training_options.hpp"
#include "stepwell/session/training_session.hpp"
#include "stepwell/summary/metric_writer.hpp"
#include "stepwell/summary/writer.hpp"
#include "stepwell/threads/coordinator.hpp"
#include "stepwell/threads/queue_runner.hpp"
#include "stepwell/training/async_evaluate.hpp"
#include "stepwell/training/async_training_session.hpp"
#include "stepwell/training/evaluation.hpp"
#include "stepwell/training/monitored_training_session.hpp"

export module stepwell;

// Names that a coroutine of an importer needs without including <coroutine>.
export namespace std {
using std::coroutine_handle;
using std::coroutine_traits;
using std::suspend_always;
using std::suspend_never;
}  // namespace std

// base
export namespace stepwell {
using stepwell::aborted_error;
using stepwell::already_exists_error;
using stepwell::cadence;
using stepwell::cancelled_error;
using stepwell::clock;
using stepwell::data_loss_error;
using stepwell::deadline;
using stepwell::deadline_exceeded_error;
using stepwell::dtype;
using stepwell::errc;
using stepwell::error;
using stepwell::failed_precondition_error;
using stepwell::internal_error;
using stepwell::interval_bounds;
using stepwell::invalid_argument_error;
using stepwell::log;
using stepwell::log_info;
using stepwell::log_level;
using stepwell::log_scope;
using stepwell::log_sink;
using stepwell::manual_clock;
using stepwell::nan_loss_error;
using stepwell::none;
using stepwell::not_found_error;
using stepwell::out_of_range_error;
using stepwell::permission_denied_error;
using stepwell::print_line;
using stepwell::random_bits;
using stepwell::random_stream;
using stepwell::resource_exhausted_error;
using stepwell::result;
using stepwell::run_metadata;
using stepwell::second_or_step_timer;
using stepwell::seconds_value;
using stepwell::set_log_level;
using stepwell::set_log_sink;
using stepwell::setting;
using stepwell::status;
using stepwell::stop_iteration;
using stepwell::system_clock;
using stepwell::tensor;
using stepwell::tensor_adapter;
using stepwell::tensor_shape;
using stepwell::to_string;
using stepwell::trace_span;
using stepwell::unavailable_error;
using stepwell::unimplemented_error;
using stepwell::unknown_error;
using stepwell::value_or_throw;
using stepwell::variable_list;
using stepwell::variable_ref;
using stepwell::variables;
}  // namespace stepwell

// checkpoint
export namespace stepwell {
using stepwell::best_checkpoint;
using stepwell::checkpoint_exists;
using stepwell::checkpoint_reader;
using stepwell::checkpoint_writer;
using stepwell::checkpoints_iterator;
using stepwell::checkpoints_iterator_options;
using stepwell::checksum;
using stepwell::get_checkpoint_mtimes;
using stepwell::latest_checkpoint;
using stepwell::latest_whole_checkpoint;
using stepwell::list_checkpoints;
using stepwell::metric_mode;
using stepwell::new_checkpoint_options;
using stepwell::on_save_error;
using stepwell::remove_checkpoint;
using stepwell::restore;
using stepwell::restore_options;
using stepwell::saver;
using stepwell::saver_options;
using stepwell::snapshot;
using stepwell::snapshot_pool;
using stepwell::snapshot_size;
using stepwell::update_fence;
using stepwell::wait_for_new_checkpoint;
using stepwell::when_busy;
}  // namespace stepwell

// checkpoint
export namespace stepwell::io {
using stepwell::io::file_system;
using stepwell::io::pool;
}  // namespace stepwell::io

// coro
export namespace stepwell::coro {
using stepwell::coro::share;
}  // namespace stepwell::coro

// creation
export namespace stepwell {
using stepwell::any_session_creator;
using stepwell::chief_session_creator;
using stepwell::chief_session_options;
using stepwell::init_from_checkpoint;
using stepwell::init_from_checkpoint_options;
using stepwell::init_from_npz;
using stepwell::init_from_safetensors;
using stepwell::init_from_state_dict;
using stepwell::init_from_weights;
using stepwell::init_with;
using stepwell::restore_from;
using stepwell::scaffold;
using stepwell::scaffold_options;
using stepwell::session_config;
using stepwell::session_creation;
using stepwell::session_creator;
using stepwell::session_manager;
using stepwell::session_manager_options;
using stepwell::session_target;
using stepwell::weight_names;
using stepwell::worker_session_creator;
using stepwell::worker_session_options;
}  // namespace stepwell

// data
export namespace stepwell::data {
using stepwell::data::batch_source;
using stepwell::data::batches_in_order;
using stepwell::data::bounded_queue;
using stepwell::data::counter;
using stepwell::data::counter_options;
using stepwell::data::dataset;
using stepwell::data::epoch_source;
using stepwell::data::example_indices;
using stepwell::data::fifo_queue;
using stepwell::data::fifo_queue_options;
using stepwell::data::mapped_records;
using stepwell::data::mapped_records_options;
using stepwell::data::name_of;
using stepwell::data::parallel_map;
using stepwell::data::parse_example;
using stepwell::data::prefetch;
using stepwell::data::range_source;
using stepwell::data::record_files;
using stepwell::data::record_files_options;
using stepwell::data::seekable_source;
using stepwell::data::shuffle_options;
using stepwell::data::shuffle_queue;
using stepwell::data::shuffle_queue_options;
using stepwell::data::shuffled_batches;
using stepwell::data::source;
using stepwell::data::take;
using stepwell::data::transform;
}  // namespace stepwell::data

// format
export namespace stepwell::format {
using stepwell::format::append_record;
using stepwell::format::checkpoint_state;
using stepwell::format::decode_checkpoint_state;
using stepwell::format::decode_event;
using stepwell::format::default_record_limit;
using stepwell::format::encode;
using stepwell::format::event;
using stepwell::format::example;
using stepwell::format::file_version;
using stepwell::format::floats;
using stepwell::format::graph_def;
using stepwell::format::hparam_map;
using stepwell::format::log_message;
using stepwell::format::meta_graph_def;
using stepwell::format::record_decoder;
using stepwell::format::session_log;
using stepwell::format::session_status;
using stepwell::format::summary;
using stepwell::format::summary_style;
using stepwell::format::summary_value;
using stepwell::format::tagged_run_metadata;
}  // namespace stepwell::format

// group
export namespace stepwell {
using stepwell::batch_part;
using stepwell::engine;
using stepwell::group;
using stepwell::group_options;
using stepwell::make_single_process_engine;
using stepwell::part_of;
using stepwell::part_sums;
using stepwell::parts_of;
}  // namespace stepwell

// hooks
export namespace stepwell {
using stepwell::at_end;
using stepwell::beside;
using stepwell::best_checkpoint_hook;
using stepwell::best_checkpoint_options;
using stepwell::checkpoint_saver_hook;
using stepwell::checkpoint_saver_listener;
using stepwell::checkpoint_saver_options;
using stepwell::coordinator;
using stepwell::early_stopping_hook;
using stepwell::early_stopping_mode;
using stepwell::early_stopping_options;
using stepwell::ema_hook;
using stepwell::ema_names;
using stepwell::ema_options;
using stepwell::epoch_mean_hook;
using stepwell::epochs;
using stepwell::evaluate_every;
using stepwell::evaluate_every_options;
using stepwell::evaluation_period;
using stepwell::every;
using stepwell::every_epoch;
using stepwell::every_n_steps;
using stepwell::feed_fn_hook;
using stepwell::final_ops_hook;
using stepwell::global_step_waiter_hook;
using stepwell::global_step_waiter_options;
using stepwell::log_every;
using stepwell::logging_tensor_hook;
using stepwell::logging_tensor_options;
using stepwell::measure;
using stepwell::multi_step_stop_at_step_hook;
using stepwell::multi_step_stop_at_step_options;
using stepwell::nan_tensor_hook;
using stepwell::nan_tensor_options;
using stepwell::profiler_hook;
using stepwell::profiler_options;
using stepwell::progress_hook;
using stepwell::progress_options;
using stepwell::reduce_on_plateau_hook;
using stepwell::reduce_on_plateau_hook_options;
using stepwell::rollback_on_nan_hook;
using stepwell::rollback_on_nan_options;
using stepwell::save_every;
using stepwell::saved_state;
using stepwell::scheduled;
using stepwell::skip_batch;
using stepwell::step_counter_hook;
using stepwell::step_counter_options;
using stepwell::stop_after_n_evals_hook;
using stepwell::stop_after_n_evals_options;
using stepwell::stop_at_epoch;
using stepwell::stop_at_epoch_hook;
using stepwell::stop_at_epoch_options;
using stepwell::stop_at_step;
using stepwell::stop_at_step_hook;
using stepwell::stop_at_step_options;
using stepwell::summarize_every;
using stepwell::summary_saver_hook;
using stepwell::summary_saver_options;
using stepwell::tag_map;
using stepwell::time_limit_hook;
}  // namespace stepwell

// hooks
export namespace stepwell::summary {
using stepwell::summary::histogram;
using stepwell::summary::image;
using stepwell::summary::image_layout;
using stepwell::summary::image_options;
using stepwell::summary::scalar;
using stepwell::summary::summary_op;
using stepwell::summary::text;
}  // namespace stepwell::summary

// io
export namespace stepwell::io {
using stepwell::io::atomic_file;
using stepwell::io::fenced_directory;
using stepwell::io::file;
using stepwell::io::is_temporary_name;
using stepwell::io::join_path;
using stepwell::io::open_mode;
using stepwell::io::posix_file_system;
}  // namespace stepwell::io

// metrics
export namespace stepwell::metrics {
using stepwell::metrics::accuracy;
using stepwell::metrics::auc;
using stepwell::metrics::confusion_matrix;
using stepwell::metrics::exponential_mean;
using stepwell::metrics::mean;
using stepwell::metrics::mean_absolute_error;
using stepwell::metrics::mean_squared_error;
using stepwell::metrics::min_max;
using stepwell::metrics::perplexity;
using stepwell::metrics::precision_recall;
using stepwell::metrics::r_squared;
using stepwell::metrics::streaming_metric;
using stepwell::metrics::sum;
using stepwell::metrics::top_k_accuracy;
using stepwell::metrics::variance;
using stepwell::metrics::windowed_mean;
}  // namespace stepwell::metrics

// model
export namespace stepwell {
using stepwell::model_session;
using stepwell::monitored_session;
using stepwell::owns_global_step;
using stepwell::trainable_model;
}  // namespace stepwell

// protocol
export namespace stepwell {
using stepwell::after_create_session_hook;
using stepwell::after_run_hook;
using stepwell::any_hook;
using stepwell::any_hooks;
using stepwell::before_run_hook;
using stepwell::begin_hook;
using stepwell::chief_only;
using stepwell::chief_only_hooks;
using stepwell::end_hook;
using stepwell::fed;
using stepwell::feed;
using stepwell::feeds;
using stepwell::fetch;
using stepwell::fetch_list;
using stepwell::global_step_name;
using stepwell::hook;
using stepwell::merge;
using stepwell::named_metrics;
using stepwell::on_error_hook;
using stepwell::only;
using stepwell::plan_preemption;
using stepwell::prometheus_text;
using stepwell::raw_session;
using stepwell::run_args;
using stepwell::run_context;
using stepwell::run_ended;
using stepwell::run_ending;
using stepwell::run_options;
using stepwell::run_outcome;
using stepwell::run_values;
using stepwell::session_ending;
using stepwell::session_metrics;
using stepwell::stop_cause;
using stepwell::stop_reason;
using stepwell::tag;
using stepwell::trace_level;
}  // namespace stepwell

// schedules
export namespace stepwell::schedules {
using stepwell::schedules::constant;
using stepwell::schedules::cosine_decay;
using stepwell::schedules::cosine_decay_options;
using stepwell::schedules::cosine_restarts;
using stepwell::schedules::cosine_restarts_options;
using stepwell::schedules::exponential_decay;
using stepwell::schedules::exponential_decay_options;
using stepwell::schedules::one_cycle;
using stepwell::schedules::one_cycle_options;
using stepwell::schedules::piecewise_constant;
using stepwell::schedules::polynomial_decay;
using stepwell::schedules::polynomial_decay_options;
using stepwell::schedules::reduce_on_plateau;
using stepwell::schedules::reduce_on_plateau_options;
using stepwell::schedules::schedule;
using stepwell::schedules::warm_up;
}  // namespace stepwell::schedules

// session
export namespace stepwell {
using stepwell::any_async_session;
using stepwell::any_session;
using stepwell::async_monitored_session;
using stepwell::async_options;
using stepwell::async_with;
using stepwell::other_data_policy;
using stepwell::queue_runner;
using stepwell::retry_policy;
using stepwell::session_setup;
using stepwell::singular_monitored_session;
using stepwell::step_context;
using stepwell::steps_from;
using stepwell::training_options;
using stepwell::training_session;
using stepwell::unseekable_policy;
using stepwell::with;
}  // namespace stepwell

// summary
export namespace stepwell::summary {
using stepwell::summary::csv_writer;
using stepwell::summary::jsonl_writer;
using stepwell::summary::metric;
using stepwell::summary::metric_list;
using stepwell::summary::metric_sink;
using stepwell::summary::metric_writer_options;
using stepwell::summary::sink_writer;
using stepwell::summary::writer;
using stepwell::summary::writer_options;
}  // namespace stepwell::summary

// threads
export namespace stepwell {
using stepwell::coordinated_thread;
using stepwell::enqueue_from;
using stepwell::enqueue_op;
using stepwell::exception_set;
using stepwell::join_options;
using stepwell::queue_runner_options;
using stepwell::start_queue_runners;
using stepwell::thread_mark;
}  // namespace stepwell

// training
export namespace stepwell {
using stepwell::async_evaluate;
using stepwell::async_evaluate_options;
using stepwell::defer_start;
using stepwell::evaluate_once;
using stepwell::evaluate_repeatedly;
using stepwell::evaluation;
using stepwell::evaluation_options;
using stepwell::monitored_training_session;
using stepwell::no_source;
using stepwell::repeated_evaluation_options;
using stepwell::summaries;
}  // namespace stepwell
