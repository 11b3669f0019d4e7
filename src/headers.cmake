# SPDX-License-Identifier: Apache-2.0
#
# Every header of the library, grouped by folder, lowest layer first. Public headers lie directly in their folder: users
# include them. Headers in detail/ belong to us; those that a public header includes are installed with it. Each installed
# header must compile alone.
set(STEPWELL_PUBLIC_HEADERS
  # layer 0: base
  stepwell/base/cadence.hpp
  stepwell/base/cadence_setting.hpp
  stepwell/base/clock.hpp
  stepwell/base/dtype.hpp
  stepwell/base/error.hpp
  stepwell/base/function_ref.hpp
  stepwell/base/log.hpp
  stepwell/base/random.hpp
  stepwell/base/result.hpp
  stepwell/base/run_metadata.hpp
  stepwell/base/setting.hpp
  stepwell/base/status.hpp
  stepwell/base/tensor.hpp
  stepwell/base/tensor_adapter.hpp
  stepwell/base/trace.hpp
  stepwell/base/variable.hpp
  # layer 1: coro
  stepwell/coro/async_sleep.hpp
  stepwell/coro/generator.hpp
  stepwell/coro/range_v3.hpp
  # layer 1: kernel
  stepwell/kernel/finite.hpp
  stepwell/kernel/histogram.hpp
  stepwell/kernel/moments.hpp
  stepwell/kernel/xtensor_fix.hpp
  # layer 2: format
  stepwell/format/checkpoint/bundle.hpp
  stepwell/format/checkpoint/checkpoint_state.hpp
  stepwell/format/checkpoint/table.hpp
  stepwell/format/events/event.hpp
  stepwell/format/events/hparam_value.hpp
  stepwell/format/events/record.hpp
  stepwell/format/events/session_status.hpp
  stepwell/format/events/summary.hpp
  # layer 2: io
  stepwell/io/atomic_file.hpp
  stepwell/io/file.hpp
  stepwell/io/file_system.hpp
  stepwell/io/path.hpp
  stepwell/io/pool.hpp
  # layer 3: checkpoint
  stepwell/checkpoint/checkpoint_reader.hpp
  stepwell/checkpoint/checkpoint_writer.hpp
  stepwell/checkpoint/checkpoints_iterator.hpp
  stepwell/checkpoint/latest_checkpoint.hpp
  stepwell/checkpoint/named_checkpoint.hpp
  stepwell/checkpoint/restore.hpp
  stepwell/checkpoint/save_backlog.hpp
  stepwell/checkpoint/saver.hpp
  stepwell/checkpoint/saver_options.hpp
  stepwell/checkpoint/snapshot.hpp
  # layer 3: data
  stepwell/data/dataset.hpp
  stepwell/data/fifo_queue.hpp
  stepwell/data/range_source.hpp
  stepwell/data/shuffle_queue.hpp
  stepwell/data/shuffled_batches.hpp
  stepwell/data/source.hpp
  stepwell/data/take.hpp
  stepwell/data/transform.hpp
  # layer 3: summary
  stepwell/summary/metric_list.hpp
  stepwell/summary/metric_writer.hpp
  stepwell/summary/writer.hpp
  # layer 4: threads
  stepwell/threads/coordinated_thread.hpp
  stepwell/threads/coordinator.hpp
  stepwell/threads/enqueue_op.hpp
  stepwell/threads/exception_set.hpp
  stepwell/threads/looper_thread.hpp
  stepwell/threads/queue_runner.hpp
  # layer 5: hook
  stepwell/hook/any_hook.hpp
  stepwell/hook/boundary.hpp
  stepwell/hook/chief_only.hpp
  stepwell/hook/feed.hpp
  stepwell/hook/fetch.hpp
  stepwell/hook/hook.hpp
  stepwell/hook/preemption.hpp
  stepwell/hook/raw_session.hpp
  stepwell/hook/rollback_request.hpp
  stepwell/hook/run_args.hpp
  stepwell/hook/run_context.hpp
  stepwell/hook/run_options.hpp
  stepwell/hook/run_request.hpp
  stepwell/hook/session_metrics.hpp
  stepwell/hook/session_signals.hpp
  stepwell/hook/stateful_hook.hpp
  stepwell/hook/stop.hpp
  # layer 6: creation
  stepwell/creation/init_from_checkpoint.hpp
  stepwell/creation/local_master.hpp
  stepwell/creation/scaffold.hpp
  stepwell/creation/session_config.hpp
  stepwell/creation/session_creation.hpp
  stepwell/creation/session_creator.hpp
  stepwell/creation/session_manager.hpp
  # layer 7: session
  stepwell/session/any_async_session.hpp
  stepwell/session/any_session.hpp
  stepwell/session/async_options.hpp
  stepwell/session/async_session.hpp
  stepwell/session/monitored_session.hpp
  stepwell/session/session_settings.hpp
  stepwell/session/training_session.hpp
  # layer 8: model
  stepwell/model/evaluation_session.hpp
  stepwell/model/model_session.hpp
  stepwell/model/model_traits.hpp
  stepwell/model/restore_model.hpp
  # layer 8: hooks
  stepwell/hooks/checkpoint_saver_hook.hpp
  stepwell/hooks/checkpoint_saver_listener.hpp
  stepwell/hooks/early_stopping.hpp
  stepwell/hooks/early_stopping_hook.hpp
  stepwell/hooks/ema_hook.hpp
  stepwell/hooks/feed_fn_hook.hpp
  stepwell/hooks/final_ops_hook.hpp
  stepwell/hooks/global_step_waiter_hook.hpp
  stepwell/hooks/logging_tensor_hook.hpp
  stepwell/hooks/multi_step_stop_at_step_hook.hpp
  stepwell/hooks/nan_tensor_hook.hpp
  stepwell/hooks/profiler_hook.hpp
  stepwell/hooks/progress_hook.hpp
  stepwell/hooks/rollback_on_nan_hook.hpp
  stepwell/hooks/step_counter_hook.hpp
  stepwell/hooks/stop_after_n_evals_hook.hpp
  stepwell/hooks/stop_at_step_hook.hpp
  stepwell/hooks/summary_ops.hpp
  stepwell/hooks/summary_saver_hook.hpp
  stepwell/hooks/time_limit_hook.hpp
  # layer 9: training
  stepwell/training/async_evaluate.hpp
  stepwell/training/async_evaluate_options.hpp
  stepwell/training/async_training_session.hpp
  stepwell/training/default_hooks.hpp
  stepwell/training/evaluation.hpp
  stepwell/training/evaluation_options.hpp
  stepwell/training/monitored_training_session.hpp
  stepwell/training/training_options.hpp
  # umbrella headers
  stepwell/async.hpp
  stepwell/stepwell.hpp
)

set(STEPWELL_DETAIL_HEADERS
  # layer 0: base
  stepwell/base/detail/refuse_negative.hpp
  stepwell/base/detail/time_after.hpp
  stepwell/base/detail/type_key.hpp
  stepwell/base/detail/type_name.hpp
  # layer 1: coro
  stepwell/coro/detail/async_event.hpp
  stepwell/coro/detail/awaited.hpp
  stepwell/coro/detail/helper_threads.hpp
  stepwell/coro/detail/initiate.hpp
  stepwell/coro/detail/offloaded_call.hpp
  # layer 2: format
  stepwell/format/events/detail/scalar_event.hpp
  stepwell/format/text/detail/metric_line.hpp
  # layer 2: io
  stepwell/io/detail/byte_queue.hpp
  stepwell/io/detail/byte_sink.hpp
  stepwell/io/detail/file_lock.hpp
  stepwell/io/detail/signal_watch.hpp
  # layer 3: data
  stepwell/data/detail/bounded_queue.hpp
  # layer 5: hook
  stepwell/hook/detail/deferred_requests.hpp
  stepwell/hook/detail/error_collector.hpp
  stepwell/hook/detail/hook_set.hpp
  stepwell/hook/detail/run_trace.hpp
  # layer 6: creation
  stepwell/creation/detail/fair_shared_mutex.hpp
  stepwell/creation/detail/raw_maker.hpp
  stepwell/creation/detail/readiness.hpp
  stepwell/creation/detail/source_positions.hpp
  # layer 7: session
  stepwell/session/detail/async_driver.hpp
  stepwell/session/detail/async_hooks.hpp
  stepwell/session/detail/async_impl.hpp
  stepwell/session/detail/async_operations.hpp
  stepwell/session/detail/async_step.hpp
  stepwell/session/detail/blocking_driver.hpp
  stepwell/session/detail/protocol.hpp
  stepwell/session/detail/recovery.hpp
  stepwell/session/detail/run_step.hpp
  stepwell/session/detail/script.hpp
  stepwell/session/detail/session_engine.hpp
  stepwell/session/detail/session_impl.hpp
  stepwell/session/detail/source_cursor.hpp
  # layer 8: model
  stepwell/model/detail/model_feeds.hpp
  # layer 8: hooks
  stepwell/hooks/detail/checkpoint_work.hpp
  stepwell/hooks/detail/kept_value.hpp
  stepwell/hooks/detail/logging_lines.hpp
  stepwell/hooks/detail/profiler_work.hpp
  stepwell/hooks/detail/summary_work.hpp
  stepwell/hooks/detail/value_text.hpp
  stepwell/hooks/detail/writer_work.hpp
  # layer 9: training
  stepwell/training/detail/evaluation_work.hpp
)

# Adapters: each belongs to a target of its own, and includes the library it is for.
set(STEPWELL_EIGEN_HEADERS
  stepwell/eigen/eigen.hpp
)
set(STEPWELL_TORCH_HEADERS
  stepwell/torch/torch.hpp
)

# Included by our own .cpp files only; not installed.
set(STEPWELL_PRIVATE_HEADERS
  # layer 0: base
  stepwell/base/detail/failure_text.hpp
  stepwell/base/detail/memory_shortage.hpp
  stepwell/base/detail/narrow_number.hpp
  stepwell/base/detail/printable.hpp
  stepwell/base/detail/start_thread.hpp
  stepwell/base/detail/thread_name.hpp
  # layer 1: kernel
  stepwell/kernel/detail/average.hpp
  stepwell/kernel/detail/crc32c.hpp
  stepwell/kernel/detail/crc32c_detail.hpp
  # layer 2: format
  stepwell/format/checkpoint/detail/string_tensor.hpp
  stepwell/format/checkpoint/detail/varint.hpp
  stepwell/format/detail/little_endian.hpp
  stepwell/format/detail/parse_message.hpp
  stepwell/format/events/detail/hparams.hpp
  stepwell/format/events/detail/message_cost.hpp
  stepwell/format/events/detail/png.hpp
  stepwell/format/events/detail/run_metadata.hpp
  stepwell/format/events/detail/summary_message.hpp
  stepwell/format/events/detail/summary_values.hpp
  stepwell/format/events/detail/tensor_message.hpp
  stepwell/format/text/detail/chrome_trace.hpp
  stepwell/format/text/detail/utf8.hpp
  # layer 2: io
  stepwell/io/detail/failure.hpp
  stepwell/io/detail/pool_implementation.hpp
  stepwell/io/detail/posix_file.hpp
  stepwell/io/detail/read_file.hpp
  stepwell/io/detail/scan_file.hpp
  stepwell/io/detail/uncached_writer.hpp
  # layer 3: checkpoint
  stepwell/checkpoint/detail/checkpoint_directory.hpp
  stepwell/checkpoint/detail/checkpoint_follower.hpp
  stepwell/checkpoint/detail/leftovers.hpp
  stepwell/checkpoint/detail/retention.hpp
  stepwell/checkpoint/detail/saver_core.hpp
  stepwell/checkpoint/detail/saver_notes.hpp
  stepwell/checkpoint/detail/snapshot_memory.hpp
  stepwell/checkpoint/detail/state_file.hpp
  stepwell/checkpoint/detail/stored_checkpoint.hpp
  stepwell/checkpoint/detail/tensor_start.hpp
  stepwell/checkpoint/detail/unlisted_checkpoints.hpp
  stepwell/checkpoint/detail/unsynced_file_system.hpp
  # layer 3: summary
  stepwell/summary/detail/event_file.hpp
  stepwell/summary/detail/output.hpp
  stepwell/summary/detail/text_log.hpp
  stepwell/summary/detail/writer_core.hpp
  # layer 6: creation
  stepwell/creation/detail/restore_state.hpp
  stepwell/torch/detail/copied_tensor.hpp
)
