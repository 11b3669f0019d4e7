# SPDX-License-Identifier: Apache-2.0
#
# Every header of the library, grouped by folder, lowest layer first. Public headers lie directly in their folder: users
# include them. Headers in detail/ belong to us; those that a public header includes are installed with it. Each installed
# header must compile alone.
set(STEPWELL_PUBLIC_HEADERS
  # layer 0: base
  stepwell/base/cadence.hpp
  stepwell/base/clock.hpp
  stepwell/base/deadline.hpp
  stepwell/base/error.hpp
  stepwell/base/log.hpp
  stepwell/base/random.hpp
  stepwell/base/tensor.hpp
  stepwell/base/trace.hpp
  stepwell/base/variable.hpp
  # layer 1: coro
  stepwell/coro/generator.hpp
  stepwell/coro/range_v3.hpp
  # layer 1: kernel
  stepwell/kernel/statistics.hpp
  # layer 2: format
  stepwell/format/checkpoint/bundle.hpp
  stepwell/format/checkpoint/checkpoint_state.hpp
  stepwell/format/checkpoint/table.hpp
  stepwell/format/events/event.hpp
  stepwell/format/events/record.hpp
  stepwell/format/examples/example.hpp
  # layer 2: io
  stepwell/io/atomic_file.hpp
  stepwell/io/fenced_directory.hpp
  stepwell/io/file_system.hpp
  stepwell/io/pool.hpp
  # layer 2: metrics
  stepwell/metrics/metrics.hpp
  # layer 2: schedules
  stepwell/schedules/schedules.hpp
  # layer 3: checkpoint
  stepwell/checkpoint/best_checkpoint.hpp
  stepwell/checkpoint/checkpoint_reader.hpp
  stepwell/checkpoint/checkpoint_writer.hpp
  stepwell/checkpoint/checksum.hpp
  stepwell/checkpoint/find_checkpoints.hpp
  stepwell/checkpoint/restore.hpp
  stepwell/checkpoint/saver.hpp
  stepwell/checkpoint/snapshot.hpp
  stepwell/checkpoint/update_fence.hpp
  # layer 3: data
  stepwell/data/counter.hpp
  stepwell/data/mapped_records.hpp
  stepwell/data/prefetch.hpp
  stepwell/data/queue.hpp
  stepwell/data/record_files.hpp
  stepwell/data/shuffled_batches.hpp
  stepwell/data/source.hpp
  # layer 3: summary
  stepwell/summary/metric_writer.hpp
  stepwell/summary/writer.hpp
  # layer 4: group
  stepwell/group/engine.hpp
  stepwell/group/group.hpp
  stepwell/group/part_of.hpp
  # layer 4: threads
  stepwell/threads/coordinator.hpp
  stepwell/threads/queue_runner.hpp
  # layer 5: protocol
  stepwell/protocol/any_hook.hpp
  stepwell/protocol/feed.hpp
  stepwell/protocol/fetch.hpp
  stepwell/protocol/hook.hpp
  stepwell/protocol/preemption_plan.hpp
  stepwell/protocol/prometheus.hpp
  stepwell/protocol/raw_session.hpp
  stepwell/protocol/run_args.hpp
  stepwell/protocol/run_context.hpp
  stepwell/protocol/run_ending.hpp
  stepwell/protocol/run_options.hpp
  stepwell/protocol/run_request.hpp
  stepwell/protocol/session_metrics.hpp
  stepwell/protocol/session_signals.hpp
  stepwell/protocol/state_names.hpp
  stepwell/protocol/watched_values.hpp
  # layer 6: creation
  stepwell/creation/init_from_weights.hpp
  stepwell/creation/scaffold.hpp
  stepwell/creation/session_creation.hpp
  stepwell/creation/session_creator.hpp
  stepwell/creation/session_manager.hpp
  # layer 7: session
  stepwell/session/any_async_session.hpp
  stepwell/session/any_session.hpp
  stepwell/session/async_options.hpp
  stepwell/session/async_session.hpp
  stepwell/session/monitored_session.hpp
  stepwell/session/training_options.hpp
  stepwell/session/training_session.hpp
  # layer 8: model
  stepwell/model/model.hpp
  stepwell/model/model_session.hpp
  # layer 8: hooks
  stepwell/hooks/best_checkpoint_hook.hpp
  stepwell/hooks/checkpoint_saver_hook.hpp
  stepwell/hooks/early_stopping_hook.hpp
  stepwell/hooks/ema_hook.hpp
  stepwell/hooks/epoch_mean_hook.hpp
  stepwell/hooks/evaluate_every.hpp
  stepwell/hooks/factories.hpp
  stepwell/hooks/feed_fn_hook.hpp
  stepwell/hooks/final_ops_hook.hpp
  stepwell/hooks/function_hooks.hpp
  stepwell/hooks/global_step_waiter_hook.hpp
  stepwell/hooks/logging_tensor_hook.hpp
  stepwell/hooks/nan_hooks.hpp
  stepwell/hooks/profiler_hook.hpp
  stepwell/hooks/progress_hook.hpp
  stepwell/hooks/scheduled_hook.hpp
  stepwell/hooks/step_counter_hook.hpp
  stepwell/hooks/stop_hooks.hpp
  stepwell/hooks/summary_saver_hook.hpp
  # layer 9: training
  stepwell/training/async_evaluate.hpp
  stepwell/training/async_training_session.hpp
  stepwell/training/evaluation.hpp
  stepwell/training/monitored_training_session.hpp
  # umbrella headers
  stepwell/async.hpp
  stepwell/stepwell.hpp
)

set(STEPWELL_DETAIL_HEADERS
  # layer 0: base
  stepwell/base/detail/error_collector.hpp
  stepwell/base/detail/failure_kind.hpp
  stepwell/base/detail/failure_text.hpp
  stepwell/base/detail/function_ref.hpp
  stepwell/base/detail/host_name.hpp
  stepwell/base/detail/owner_process.hpp
  stepwell/base/detail/thread.hpp
  stepwell/base/detail/type_key.hpp
  stepwell/base/detail/unset.hpp
  # layer 1: coro
  stepwell/coro/detail/aborted.hpp
  stepwell/coro/detail/async_event.hpp
  stepwell/coro/detail/async_sleep.hpp
  stepwell/coro/detail/awaited.hpp
  stepwell/coro/detail/event_state.hpp
  stepwell/coro/detail/helper_threads.hpp
  stepwell/coro/detail/initiate.hpp
  stepwell/coro/detail/offloaded_call.hpp
  # layer 2: format
  stepwell/format/detail/metric_line.hpp
  # layer 2: io
  stepwell/io/detail/byte_queue.hpp
  stepwell/io/detail/signal_watch.hpp
  # layer 3: checkpoint
  stepwell/checkpoint/detail/save_backlog.hpp
  # layer 3: data
  stepwell/data/detail/inflated_file.hpp
  stepwell/data/detail/read_ahead.hpp
  # layer 4: group
  stepwell/group/detail/collective.hpp
  # layer 5: protocol
  stepwell/protocol/detail/boundary_requests.hpp
  stepwell/protocol/detail/boundary_state.hpp
  stepwell/protocol/detail/boundary_work.hpp
  stepwell/protocol/detail/boundary_works.hpp
  stepwell/protocol/detail/declares.hpp
  stepwell/protocol/detail/evaluated_value.hpp
  stepwell/protocol/detail/hook_set.hpp
  stepwell/protocol/detail/recovery_copy.hpp
  stepwell/protocol/detail/rollback_request.hpp
  stepwell/protocol/detail/run_trace.hpp
  stepwell/protocol/detail/session_facts.hpp
  stepwell/protocol/detail/wait_limits.hpp
  # layer 6: creation
  stepwell/creation/detail/local_master.hpp
  stepwell/creation/detail/shared_state.hpp
  # layer 7: session
  stepwell/session/detail/async_driver.hpp
  stepwell/session/detail/async_impl.hpp
  stepwell/session/detail/async_operations.hpp
  stepwell/session/detail/async_state.hpp
  stepwell/session/detail/async_step.hpp
  stepwell/session/detail/blocking_driver.hpp
  stepwell/session/detail/recovery.hpp
  stepwell/session/detail/run_step.hpp
  stepwell/session/detail/script_coroutine.hpp
  stepwell/session/detail/session_engine.hpp
  stepwell/session/detail/session_impl.hpp
  stepwell/session/detail/session_protocol.hpp
  stepwell/session/detail/source_cursor.hpp
  stepwell/session/detail/source_registrations.hpp
  # layer 8: hooks
  stepwell/hooks/detail/evaluation_watch.hpp
  stepwell/hooks/detail/optional_value.hpp
  stepwell/hooks/detail/value_text.hpp
  # layer 9: training
  stepwell/training/detail/evaluation_work.hpp
)

# Adapters: each belongs to a target of its own, and includes the library it is for.
set(STEPWELL_EIGEN_HEADERS
  stepwell/eigen/eigen.hpp
)
set(STEPWELL_XTENSOR_HEADERS
  stepwell/xtensor/xtensor.hpp
  stepwell/xtensor/xtensor_fix.hpp
)
set(STEPWELL_TORCH_HEADERS
  stepwell/torch/bucket.hpp
  stepwell/torch/evaluating.hpp
  stepwell/torch/examples.hpp
  stepwell/torch/group.hpp
  stepwell/torch/replicas.hpp
  stepwell/torch/schedule.hpp
  stepwell/torch/torch.hpp
)
set(STEPWELL_MPI_HEADERS
  stepwell/mpi/mpi.hpp
)
set(STEPWELL_BOARD_HEADERS
  stepwell/board/board_hook.hpp
  stepwell/board/http.hpp
  stepwell/board/http_server.hpp
)
set(STEPWELL_TENSORFLOW_HEADERS
  stepwell/tensorflow/async_training.hpp
  stepwell/tensorflow/evaluation.hpp
  stepwell/tensorflow/feeds.hpp
  stepwell/tensorflow/graph.hpp
  stepwell/tensorflow/graph_builder.hpp
  stepwell/tensorflow/graph_session.hpp
  stepwell/tensorflow/runtime.hpp
  stepwell/tensorflow/server.hpp
  stepwell/tensorflow/tensor.hpp
  stepwell/tensorflow/training.hpp
)

# Included by our own .cpp files only; not installed.
set(STEPWELL_PRIVATE_HEADERS
  # layer 0: base
  stepwell/base/detail/bounded_call.hpp
  stepwell/base/detail/printable.hpp
  stepwell/base/detail/status_region.hpp
  stepwell/base/detail/visit_dtype.hpp
  stepwell/base/detail/wait_or_stop.hpp
  stepwell/base/detail/wall_seconds.hpp
  # layer 1: kernel
  stepwell/kernel/detail/average.hpp
  stepwell/kernel/detail/crc32c.hpp
  stepwell/kernel/detail/simd.hpp
  stepwell/kernel/detail/simd_kernels.hpp
  stepwell/kernel/detail/simd_tables.hpp
  stepwell/kernel/detail/stream_copy.hpp
  stepwell/kernel/detail/to_doubles.hpp
  # layer 2: format
  stepwell/format/checkpoint/detail/ending_file.hpp
  stepwell/format/checkpoint/detail/string_tensor.hpp
  stepwell/format/detail/coding.hpp
  stepwell/format/detail/parse_message.hpp
  stepwell/format/detail/run_metadata.hpp
  stepwell/format/detail/text_message.hpp
  stepwell/format/events/detail/png.hpp
  stepwell/format/events/detail/summary_values.hpp
  stepwell/format/weights/detail/npy.hpp
  stepwell/format/weights/detail/safetensors.hpp
  stepwell/format/weights/detail/state_dict.hpp
  stepwell/format/weights/detail/stored_array.hpp
  stepwell/format/weights/detail/zip_directory.hpp
  # layer 2: io
  stepwell/io/detail/lock_content.hpp
  stepwell/io/detail/mapped_file.hpp
  stepwell/io/detail/posix_file.hpp
  stepwell/io/detail/read_file.hpp
  stepwell/io/detail/signal_receiver.hpp
  # layer 3: checkpoint
  stepwell/checkpoint/detail/array_file.hpp
  stepwell/checkpoint/detail/checkpoint_directory.hpp
  stepwell/checkpoint/detail/index_builder.hpp
  stepwell/checkpoint/detail/name_index.hpp
  stepwell/checkpoint/detail/pending_copy.hpp
  stepwell/checkpoint/detail/saver_state.hpp
  stepwell/checkpoint/detail/stored_checkpoint.hpp
  stepwell/checkpoint/detail/tensor_reads.hpp
  stepwell/checkpoint/detail/unsynced_file_system.hpp
  # layer 3: summary
  stepwell/summary/detail/event_stream.hpp
  stepwell/summary/detail/event_time.hpp
  stepwell/summary/detail/output.hpp
  # layer 4: group
  stepwell/group/detail/formation_wait.hpp
  stepwell/group/detail/group_store.hpp
  stepwell/group/detail/launcher.hpp
  # layer 8: hooks
  stepwell/hooks/detail/drain_saver.hpp
  stepwell/hooks/detail/rare_log.hpp
  stepwell/hooks/detail/save_budget.hpp
  stepwell/hooks/detail/writer_work.hpp
  stepwell/board/detail/board_service.hpp
  stepwell/board/detail/curve.hpp
  stepwell/board/detail/keep_newest.hpp
  stepwell/board/detail/live_state.hpp
  stepwell/board/detail/run_history.hpp
  stepwell/mpi/detail/peers.hpp
  stepwell/mpi/detail/watchdog.hpp
  stepwell/torch/detail/c10d_engine.hpp
  stepwell/torch/detail/copied_tensor.hpp
  stepwell/torch/detail/generators.hpp
  stepwell/torch/detail/gloo.hpp
  stepwell/torch/detail/random_layers.hpp
  stepwell/torch/detail/tcp_store.hpp
  stepwell/tensorflow/detail/c_api.hpp
  stepwell/tensorflow/detail/cluster_tasks.hpp
  stepwell/tensorflow/detail/config.hpp
  stepwell/tensorflow/detail/flush_denormals.hpp
  stepwell/tensorflow/detail/graph_state.hpp
  stepwell/tensorflow/detail/meta_graph.hpp
  stepwell/tensorflow/detail/saved_variables.hpp
  stepwell/tensorflow/detail/session_core.hpp
  stepwell/tensorflow/detail/status.hpp
)
