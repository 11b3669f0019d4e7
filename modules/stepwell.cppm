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
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/base/random.hpp"
#include "stepwell/base/tensor.hpp"
#include "stepwell/base/trace.hpp"
#include "stepwell/base/variable.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
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
#include "stepwell/creation/save_safetensors.hpp"
#include "stepwell/creation/scaffold.hpp"
#include "stepwell/creation/session_creation.hpp"
#include "stepwell/creation/session_creator.hpp"
#include "stepwell/creation/session_manager.hpp"
#include "stepwell/data/prefetch.hpp"
#include "stepwell/data/queue.hpp"
#include "stepwell/data/record_files.hpp"
#include "stepwell/data/shuffled_batches.hpp"
#include "stepwell/data/source.hpp"
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
#include "stepwell/metrics/metrics.hpp"
#include "stepwell/model/model.hpp"
#include "stepwell/model/model_session.hpp"
#include "stepwell/protocol/any_hook.hpp"
#include "stepwell/protocol/feed.hpp"
#include "stepwell/protocol/fetch.hpp"
#include "stepwell/protocol/hook.hpp"
#include "stepwell/protocol/hook_options.hpp"
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
#include "stepwell/session/common_session.hpp"
#include "stepwell/session/monitored_session.hpp"
#include "stepwell/session/training_options.hpp"
#include "stepwell/session/training_session.hpp"
#include "stepwell/summary/metric_writer.hpp"
#include "stepwell/summary/writer.hpp"
#include "stepwell/testing/fault_file_system.hpp"
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
using stepwell::adapted_tensor;
using stepwell::alarm;
using stepwell::already_exists_error;
using stepwell::cadence;
using stepwell::cadence_setting;
using stepwell::cancelled_error;
using stepwell::choose_cadence;
using stepwell::clock;
using stepwell::current_trace;
using stepwell::data_loss_error;
using stepwell::deadline;
using stepwell::deadline_exceeded_error;
using stepwell::device_copy;
using stepwell::device_elements;
using stepwell::dtype;
using stepwell::dtype_of;
using stepwell::elapsed_since_trigger;
using stepwell::element_count;
using stepwell::element_range;
using stepwell::elements_view;
using stepwell::errc;
using stepwell::error;
using stepwell::error_of;
using stepwell::failed_precondition_error;
using stepwell::function_ref;
using stepwell::internal_error;
using stepwell::interval_bounds;
using stepwell::invalid_argument_error;
using stepwell::is_tracing;
using stepwell::lazy_tensor;
using stepwell::lazy_view;
using stepwell::log;
using stepwell::log_debug;
using stepwell::log_error;
using stepwell::log_info;
using stepwell::log_level;
using stepwell::log_listener;
using stepwell::log_name;
using stepwell::log_scope;
using stepwell::log_sink;
using stepwell::log_warning;
using stepwell::make_error_code;
using stepwell::manual_clock;
using stepwell::nan_loss_error;
using stepwell::none;
using stepwell::none_t;
using stepwell::not_found_error;
using stepwell::out_of_range_error;
using stepwell::permission_denied_error;
using stepwell::philox4x32;
using stepwell::print_line;
using stepwell::random_bits;
using stepwell::random_permutation;
using stepwell::random_state;
using stepwell::random_stream;
using stepwell::require_cadence;
using stepwell::resource_exhausted_error;
using stepwell::result;
using stepwell::run_metadata;
using stepwell::second_or_step_timer;
using stepwell::seconds_value;
using stepwell::set_log_level;
using stepwell::set_log_sink;
using stepwell::setting;
using stepwell::shape_view;
using stepwell::size_of;
using stepwell::status;
using stepwell::status_from_errno;
using stepwell::stepwell_category;
using stepwell::stop_iteration;
using stepwell::system_clock;
using stepwell::tensor;
using stepwell::tensor_adapter;
using stepwell::tensor_element;
using stepwell::tensor_like;
using stepwell::tensor_shape;
using stepwell::tensor_view;
using stepwell::throw_status;
using stepwell::to_string;
using stepwell::trace_argument;
using stepwell::trace_event;
using stepwell::trace_recorder;
using stepwell::trace_scope;
using stepwell::trace_span;
using stepwell::type_key;
using stepwell::type_name;
using stepwell::unavailable_error;
using stepwell::unimplemented_error;
using stepwell::unknown_error;
using stepwell::value_or_throw;
using stepwell::variable_like;
using stepwell::variable_list;
using stepwell::variable_ref;
using stepwell::variables;
using stepwell::view_of;
}  // namespace stepwell

// checkpoint
export namespace stepwell::io {
using stepwell::io::file_system;
using stepwell::io::pool;
}  // namespace stepwell::io

// checkpoint
export namespace stepwell {
using stepwell::best_checkpoint;
using stepwell::best_value_name;
using stepwell::check_saver_options;
using stepwell::checkpoint_entry;
using stepwell::checkpoint_exists;
using stepwell::checkpoint_format;
using stepwell::checkpoint_reader;
using stepwell::checkpoint_search_result;
using stepwell::checkpoints_iterator;
using stepwell::checkpoints_iterator_options;
using stepwell::checksum;
using stepwell::default_best_name;
using stepwell::default_checkpoint_basename;
using stepwell::get_checkpoint_mtimes;
using stepwell::latest_checkpoint;
using stepwell::latest_whole_checkpoint;
using stepwell::list_checkpoints;
using stepwell::metric_mode;
using stepwell::new_checkpoint_options;
using stepwell::on_save_error;
using stepwell::open_newest;
using stepwell::read_target;
using stepwell::remove_checkpoint;
using stepwell::restore;
using stepwell::restore_options;
using stepwell::restore_report;
using stepwell::save_backlog;
using stepwell::save_outcome;
using stepwell::saved_checkpoint;
using stepwell::saver;
using stepwell::saver_options;
using stepwell::scored_checkpoint;
using stepwell::snapshot;
using stepwell::snapshot_entry;
using stepwell::snapshot_pool;
using stepwell::snapshot_size;
using stepwell::state_file_name;
using stepwell::step_of_checkpoint;
using stepwell::tensor_piece;
using stepwell::update_fence;
using stepwell::wait_for_new_checkpoint;
using stepwell::when_busy;
}  // namespace stepwell

// coro
export namespace stepwell::coro {
using stepwell::coro::async_event;
using stepwell::coro::awaited;
using stepwell::coro::generator;
using stepwell::coro::helper_threads;
using stepwell::coro::initiate;
using stepwell::coro::make_offloaded_call;
using stepwell::coro::offloaded_call;
using stepwell::coro::offloaded_call_ticket;
using stepwell::coro::once_awaited_t;
#if __has_include(<range/v3/range/concepts.hpp>)
using stepwell::coro::share;
#endif
#if __has_include(<range/v3/range/concepts.hpp>)
using stepwell::coro::shared_generator;
#endif
}  // namespace stepwell::coro

// coro
export namespace stepwell {
using stepwell::generator;
}  // namespace stepwell

// creation
export namespace stepwell {
using stepwell::any_session_creator;
using stepwell::checkpoint_name_map;
using stepwell::chief_session_creator;
using stepwell::chief_session_options;
using stepwell::created_by;
using stepwell::fair_shared_mutex;
using stepwell::init_from_checkpoint;
using stepwell::init_from_checkpoint_options;
using stepwell::init_from_npz;
using stepwell::init_from_safetensors;
using stepwell::init_from_state_dict;
using stepwell::init_from_weights;
using stepwell::init_with;
using stepwell::local_master;
using stepwell::master_connection;
using stepwell::master_scope;
using stepwell::master_subject;
using stepwell::raw_session_over;
using stepwell::raw_session_over_t;
using stepwell::restore_from;
using stepwell::save_safetensors;
using stepwell::scaffold;
using stepwell::scaffold_options;
using stepwell::scaffold_traits;
using stepwell::session_config;
using stepwell::session_creation;
using stepwell::session_creator;
using stepwell::session_manager;
using stepwell::session_manager_options;
using stepwell::session_target;
using stepwell::sessions_at;
using stepwell::weight_names;
using stepwell::worker_session_creator;
using stepwell::worker_session_options;
}  // namespace stepwell

// data
export namespace stepwell::data {
using stepwell::data::ahead_source;
using stepwell::data::batch_of;
using stepwell::data::batch_source;
using stepwell::data::batches_in_order;
using stepwell::data::bounded_queue;
using stepwell::data::counter;
using stepwell::data::counter_options;
using stepwell::data::counter_source;
using stepwell::data::dataset;
using stepwell::data::dataset_batch;
using stepwell::data::epoch_position;
using stepwell::data::epoch_source;
using stepwell::data::epochs_of;
using stepwell::data::example_count;
using stepwell::data::example_indices;
using stepwell::data::fifo_queue;
using stepwell::data::fifo_queue_options;
using stepwell::data::fingerprint_of;
using stepwell::data::make_batch;
using stepwell::data::mapped_records;
using stepwell::data::mapped_records_options;
using stepwell::data::name_of;
using stepwell::data::parallel_map;
using stepwell::data::parse_example;
using stepwell::data::prefetch;
using stepwell::data::prefetch_options;
using stepwell::data::range_source;
using stepwell::data::record_files;
using stepwell::data::record_files_options;
using stepwell::data::seekable_source;
using stepwell::data::shuffle_options;
using stepwell::data::shuffle_queue;
using stepwell::data::shuffle_queue_options;
using stepwell::data::shuffled_batches;
using stepwell::data::shuffled_source;
using stepwell::data::source;
using stepwell::data::take;
using stepwell::data::taken_source;
using stepwell::data::transform;
using stepwell::data::transformed_source;
}  // namespace stepwell::data

// format
export namespace stepwell::format {
using stepwell::format::append_record;
using stepwell::format::audio_value;
using stepwell::format::byte_strings;
using stepwell::format::csv_metric_bound;
using stepwell::format::csv_metric_header;
using stepwell::format::csv_row_bound;
using stepwell::format::csv_row_header;
using stepwell::format::data_class;
using stepwell::format::decode_event;
using stepwell::format::decode_example;
using stepwell::format::default_record_limit;
using stepwell::format::encode;
using stepwell::format::encode_event;
using stepwell::format::event;
using stepwell::format::event_file_version;
using stepwell::format::example;
using stepwell::format::feature;
using stepwell::format::file_version;
using stepwell::format::floats;
using stepwell::format::graph_def;
using stepwell::format::histogram_value;
using stepwell::format::hparam_map;
using stepwell::format::hparam_value;
using stepwell::format::hparams_status;
using stepwell::format::image_value;
using stepwell::format::integers;
using stepwell::format::is_formula;
using stepwell::format::json_metric_beginning;
using stepwell::format::json_metric_bound;
using stepwell::format::log_message;
using stepwell::format::meta_graph_def;
using stepwell::format::metric_line;
using stepwell::format::number_text;
using stepwell::format::obsolete_histogram;
using stepwell::format::opaque_tensor;
using stepwell::format::read_record;
using stepwell::format::record_data;
using stepwell::format::record_decoder;
using stepwell::format::record_footer_size;
using stepwell::format::record_header_size;
using stepwell::format::record_overhead;
using stepwell::format::seal_record;
using stepwell::format::session_log;
using stepwell::format::session_status;
using stepwell::format::summary;
using stepwell::format::summary_metadata;
using stepwell::format::summary_style;
using stepwell::format::summary_value;
using stepwell::format::tagged_run_metadata;
using stepwell::format::write_csv_metric;
using stepwell::format::write_csv_row;
using stepwell::format::write_json_metric;
}  // namespace stepwell::format

// group
export namespace stepwell {
using stepwell::batch_part;
using stepwell::collective;
using stepwell::ended_process;
using stepwell::engine;
using stepwell::formation;
using stepwell::formed_collective;
using stepwell::group;
using stepwell::group_options;
using stepwell::group_part;
using stepwell::group_parts;
using stepwell::make_single_process_engine;
using stepwell::part_of;
using stepwell::part_sums;
using stepwell::parts_of;
}  // namespace stepwell

// hooks
export namespace stepwell {
using stepwell::at_end;
using stepwell::at_end_hook;
using stepwell::beside;
using stepwell::beside_model;
using stepwell::best_checkpoint_hook;
using stepwell::best_checkpoint_options;
using stepwell::can_keep_result;
using stepwell::checkpoint_saver_hook;
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
using stepwell::evaluation_hook;
using stepwell::evaluation_period;
using stepwell::every;
using stepwell::every_epoch;
using stepwell::every_epoch_hook;
using stepwell::every_n_steps;
using stepwell::feed_fn_hook;
using stepwell::final_ops_hook;
using stepwell::global_step_waiter_hook;
using stepwell::global_step_waiter_options;
using stepwell::log_every;
using stepwell::logged_value;
using stepwell::logging_tensor_hook;
using stepwell::logging_tensor_options;
using stepwell::measure;
using stepwell::measured;
using stepwell::multi_step_stop_at_step_hook;
using stepwell::multi_step_stop_at_step_options;
using stepwell::nan_tensor_hook;
using stepwell::nan_tensor_options;
using stepwell::number_text;
using stepwell::periodic_hook;
using stepwell::profiler_hook;
using stepwell::profiler_options;
using stepwell::progress_hook;
using stepwell::progress_line;
using stepwell::progress_options;
using stepwell::progress_printer;
using stepwell::progress_state;
using stepwell::progress_style;
using stepwell::progress_summary;
using stepwell::progress_value;
using stepwell::reduce_on_plateau_hook;
using stepwell::reduce_on_plateau_hook_options;
using stepwell::rollback_on_nan_hook;
using stepwell::rollback_on_nan_options;
using stepwell::save_every;
using stepwell::saved_state;
using stepwell::scheduled;
using stepwell::scheduled_hook;
using stepwell::session_requests;
using stepwell::shown_elements;
using stepwell::skip_batch;
using stepwell::step_counter_hook;
using stepwell::stop_after_n_evals_hook;
using stepwell::stop_after_n_evals_options;
using stepwell::stop_at_epoch;
using stepwell::stop_at_epoch_hook;
using stepwell::stop_at_epoch_options;
using stepwell::stop_at_step;
using stepwell::stop_at_step_hook;
using stepwell::stop_at_step_options;
using stepwell::stop_when;
using stepwell::stop_when_hook;
using stepwell::summarize_every;
using stepwell::summary_saver_hook;
using stepwell::tag_map;
using stepwell::tensor_text;
using stepwell::time_limit_hook;
using stepwell::value_text;
}  // namespace stepwell

// hooks
export namespace stepwell::summary {
using stepwell::summary::histogram;
using stepwell::summary::histogram_op;
using stepwell::summary::image;
using stepwell::summary::image_layout;
using stepwell::summary::image_op;
using stepwell::summary::image_options;
using stepwell::summary::is_scalar_op;
using stepwell::summary::scalar;
using stepwell::summary::scalar_op;
using stepwell::summary::summary_op;
using stepwell::summary::text;
using stepwell::summary::text_op;
using stepwell::summary::write_histogram;
using stepwell::summary::write_images;
}  // namespace stepwell::summary

// io
export namespace stepwell::io {
using stepwell::io::absolute_path;
using stepwell::io::atomic_file;
using stepwell::io::base_name;
using stepwell::io::byte_queue;
using stepwell::io::byte_queue_options;
using stepwell::io::byte_sink;
using stepwell::io::fence_use;
using stepwell::io::fenced_directory;
using stepwell::io::file;
using stepwell::io::file_info;
using stepwell::io::file_lock;
using stepwell::io::final_name_of_temporary;
using stepwell::io::is_fence_name;
using stepwell::io::is_temporary_name;
using stepwell::io::join_path;
using stepwell::io::open_mode;
using stepwell::io::page_size;
using stepwell::io::parent_directory;
using stepwell::io::posix_file_system;
using stepwell::io::signal_name;
using stepwell::io::signal_watch;
using stepwell::io::sink_into;
using stepwell::io::write_file_atomically;
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
using stepwell::check_variable_names;
using stepwell::evaluation_session;
using stepwell::has_concurrent_steps;
using stepwell::model_result;
using stepwell::model_session;
using stepwell::monitored_session;
using stepwell::owns_global_step;
using stepwell::restorable_model;
using stepwell::trainable_model;
using stepwell::uses_update_fence;
}  // namespace stepwell

// protocol
export namespace stepwell {
using stepwell::after_create_session_hook;
using stepwell::after_run_hook;
using stepwell::all_hooks;
using stepwell::any_hook;
using stepwell::any_hooks;
using stepwell::before_run_hook;
using stepwell::begin_hook;
using stepwell::boundary_requests;
using stepwell::boundary_state;
using stepwell::boundary_work;
using stepwell::boundary_works;
using stepwell::checkpoint_saver_listener;
using stepwell::checkpoint_saver_options;
using stepwell::chief_only;
using stepwell::chief_only_hook;
using stepwell::chief_only_hooks;
using stepwell::end_hook;
using stepwell::evaluated_value;
using stepwell::fed;
using stepwell::feed;
using stepwell::feed_pack;
using stepwell::feeds;
using stepwell::fetch;
using stepwell::fetch_list;
using stepwell::fetch_pack;
using stepwell::global_step_name;
using stepwell::history_value;
using stepwell::hook;
using stepwell::hook_phase;
using stepwell::hook_set;
using stepwell::hook_state_prefix;
using stepwell::hook_states;
using stepwell::merge;
using stepwell::named_metrics;
using stepwell::on_error_hook;
using stepwell::only;
using stepwell::phase_of;
using stepwell::plan_preemption;
using stepwell::preemption_choice;
using stepwell::preemption_facts;
using stepwell::preemption_plan;
using stepwell::prometheus_text;
using stepwell::raw_session;
using stepwell::recovery_copy;
using stepwell::reserved_prefix;
using stepwell::rollback_request;
using stepwell::run_args;
using stepwell::run_context;
using stepwell::run_ended;
using stepwell::run_ending;
using stepwell::run_info;
using stepwell::run_options;
using stepwell::run_outcome;
using stepwell::run_request;
using stepwell::run_values;
using stepwell::session_ending;
using stepwell::session_facts;
using stepwell::session_handle;
using stepwell::session_metrics;
using stepwell::session_signals;
using stepwell::source_state_prefix;
using stepwell::state_name_of;
using stepwell::state_version;
using stepwell::stateful_hook;
using stepwell::step_counter_options;
using stepwell::stop_cause;
using stepwell::stop_cause_name;
using stepwell::stop_condition;
using stepwell::stop_reason;
using stepwell::stop_text_name;
using stepwell::summary_saver_options;
using stepwell::tag;
using stepwell::tagged;
using stepwell::trace_level;
using stepwell::value_publisher;
using stepwell::values_of;
using stepwell::version_name;
using stepwell::wait_limits;
using stepwell::watched_values;
}  // namespace stepwell

// protocol
export namespace stepwell::summary {
using stepwell::summary::metric_writer;
}  // namespace stepwell::summary

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
using stepwell::async_step_context;
using stepwell::async_with;
using stepwell::backoff_of;
using stepwell::blocking_session;
using stepwell::check_retry_policy;
using stepwell::common_session;
using stepwell::epoch_scope;
using stepwell::erasable_session;
using stepwell::is_recoverable;
using stepwell::loop_result;
using stepwell::no_data;
using stepwell::other_data_policy;
using stepwell::queue_runner;
using stepwell::recovery;
using stepwell::retry_policy;
using stepwell::session_engine;
using stepwell::session_impl;
using stepwell::session_release;
using stepwell::session_setup;
using stepwell::singular_monitored_session;
using stepwell::source_cursor;
using stepwell::step_context;
using stepwell::step_result;
using stepwell::step_stage;
using stepwell::steps_from;
using stepwell::training_options;
using stepwell::training_session;
using stepwell::unseekable_policy;
using stepwell::with;
}  // namespace stepwell

// summary
export namespace stepwell::summary {
using stepwell::summary::add_metrics;
using stepwell::summary::csv_writer;
using stepwell::summary::image_view;
using stepwell::summary::jsonl_writer;
using stepwell::summary::metric;
using stepwell::summary::metric_list;
using stepwell::summary::metric_range;
using stepwell::summary::metric_sink;
using stepwell::summary::metric_writer_options;
using stepwell::summary::names_metrics;
using stepwell::summary::sink_writer;
using stepwell::summary::writer;
using stepwell::summary::writer_options;
}  // namespace stepwell::summary

// testing
export namespace stepwell::testing {
using stepwell::testing::fault_file_system;
using stepwell::testing::file_event;
using stepwell::testing::file_fault;
using stepwell::testing::file_operation;
}  // namespace stepwell::testing

// threads
export namespace stepwell {
using stepwell::closable_queue;
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
using stepwell::defer_start_t;
using stepwell::deferred_start;
using stepwell::evaluable;
using stepwell::evaluate_once;
using stepwell::evaluate_repeatedly;
using stepwell::evaluation;
using stepwell::evaluation_options;
using stepwell::monitored_training_session;
using stepwell::no_source;
using stepwell::opens_evaluations;
using stepwell::repeated_evaluation_options;
using stepwell::summaries;
using stepwell::summary_list;
}  // namespace stepwell
