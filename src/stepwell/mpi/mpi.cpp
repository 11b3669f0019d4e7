// SPDX-License-Identifier: Apache-2.0
#include "stepwell/mpi/mpi.hpp"

#include "stepwell/base/detail/failure_text.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/group/detail/formation_wait.hpp"
#include "stepwell/group/detail/launcher.hpp"
#include "stepwell/group/engine.hpp"
#include "stepwell/mpi/detail/peers.hpp"
#include "stepwell/mpi/detail/watchdog.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell::mpi {

namespace {

using detail::operation;

[[noreturn, gnu::cold]] void throw_failure(int code, std::string_view function) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw unavailable_error(fmt::format("{} failed: {}", function, std::string_view(text.data(), static_cast<std::size_t>(length))));
}

/// Throws `unavailable_error` if `code` is a failure of the MPI function `function`.
void check(int code, std::string_view function) {
  if (code != MPI_SUCCESS) [[unlikely]] { throw_failure(code, function); }
}

/// Returns the type of MPI for the elements of `type`.
MPI_Datatype type_of(dtype type) {
  switch (type) {
    case dtype::float32: return MPI_FLOAT;
    case dtype::float64: return MPI_DOUBLE;
    case dtype::int8: return MPI_INT8_T;
    case dtype::int16: return MPI_INT16_T;
    case dtype::int32: return MPI_INT32_T;
    case dtype::int64: return MPI_INT64_T;
    case dtype::uint8: return MPI_UINT8_T;
    case dtype::uint16: return MPI_UINT16_T;
    case dtype::uint32: return MPI_UINT32_T;
    case dtype::uint64: return MPI_UINT64_T;
    case dtype::complex64: return MPI_C_FLOAT_COMPLEX;
    case dtype::complex128: return MPI_C_DOUBLE_COMPLEX;
    default: throw unimplemented_error(fmt::format("MPI cannot add elements of type {}; convert them to float32", to_string(type)));
  }
}

/// Calls `call(first, count)` for pieces of `elements`: MPI counts with an int, and some versions multiply this int by the size of an element.
/// `size`: the size of an element, a power of two. A shift divides by it, because a division costs as much as all other code of a sum here.
template<class Call>
void in_pieces(std::span<std::byte> elements, std::size_t size, Call call) {
  const auto shift = std::countr_zero(size);
  constexpr std::size_t largest = std::size_t{1} << 30U;  // bytes
  while (!elements.empty()) {
    const auto piece = elements.first(std::min(elements.size(), largest));
    call(piece.data(), static_cast<int>(piece.size() >> shift));
    elements = elements.subspan(piece.size());
  }
}

/// Ends this process by a signal if it has not ended by itself after `limit`, for example because MPI holds a lock.
void end_at_latest_after(std::chrono::seconds limit) {
  std::signal(SIGALRM, SIG_DFL);
  ::alarm(static_cast<unsigned>(limit.count()));
}

/// Ends all processes of the job.
[[noreturn]] void end_job() {
  std::fflush(stdout);
  end_at_latest_after(std::chrono::seconds(2));
  MPI_Abort(MPI_COMM_WORLD, lost_exit_code);
  std::_Exit(lost_exit_code);
}

constexpr std::string_view advice = "the job ends so that its launcher can start it again";

// ---- MPI itself

/// MPI, from MPI_Init_thread to MPI_Finalize, or for as long as the program keeps it initialised.
class runtime {
public:
  runtime(int* argc, char*** argv, int threads) {
    int is_initialized = 0;
    MPI_Initialized(&is_initialized);
    if (is_initialized != 0) { return; }
    int provided = 0;
    check(MPI_Init_thread(argc, argv, threads, &provided), "MPI_Init_thread");
    must_finalize_ = true;
  }
  runtime(const runtime&) = delete;
  runtime& operator=(const runtime&) = delete;
  ~runtime() {
    if (must_finalize_) { MPI_Finalize(); }
  }

  /// Returns the object that all groups share.
  static std::shared_ptr<runtime> shared(int* argc, char*** argv, int threads) {
    static std::mutex mutex;
    static std::weak_ptr<runtime> current;
    const std::lock_guard lock(mutex);
    auto found = current.lock();
    if (!found) {
      int is_finalized = 0;
      MPI_Finalized(&is_finalized);
      if (is_finalized != 0) {
        throw failed_precondition_error(
            "MPI was finalised and cannot be initialised again in this process; keep the group until the program ends");
      }
      found = std::make_shared<runtime>(argc, argv, threads);
      current = found;
    }
    int provided = 0;
    MPI_Query_thread(&provided);
    if (provided < threads) {
      throw failed_precondition_error(fmt::format(
          "MPI supports calls of several threads only at level {}, but the group needs level {} ({}); if the program calls MPI_Init_thread "
          "itself, it must ask for that level; with timeout_secs = 0, MPI_THREAD_SERIALIZED is enough",
          provided, threads, threads == MPI_THREAD_MULTIPLE ? "MPI_THREAD_MULTIPLE" : "MPI_THREAD_SERIALIZED"));
    }
    return found;
  }

private:
  bool must_finalize_ = false;
};

/// Returns the first line of the name of the MPI library.
std::string library_name() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  const std::string_view all(text.data(), static_cast<std::size_t>(length));
  std::string name(all.substr(0, all.find_first_of(",\n")));
  std::ranges::replace(name, '\t', ' ');
  return name;
}

/// @errors `failed_precondition_error` if another launcher has started several processes, and each is alone for MPI.
void check_launcher() {
  const auto launched = find_launcher();
  if (!launched || launched->size == 1) { return; }
  throw failed_precondition_error(fmt::format(
      "{} has started {} processes (this is rank {}), but for MPI this process is alone. This program uses {}: start it with the mpirun of "
      "this library, or, under Slurm, with srun --mpi=pmix or --mpi=pmi2. torchrun starts programs whose group comes from stepwell::torch. "
      "To train with one process, unset the variables of the launcher",
      launched->launcher, launched->size, launched->rank, library_name()));
}

// ---- the engine

/// The communicator of a group, and the watch over its operations.
class connection {
public:
  explicit connection(const options& how) : time_(how.clock), limit_(stepwell::detail::as_duration(how.timeout_secs)) {
    check(MPI_Comm_dup(MPI_COMM_WORLD, &processes_), "MPI_Comm_dup");
    MPI_Comm_set_errhandler(processes_, MPI_ERRORS_RETURN);
    if (how.timeout_secs.count() == 0) { return; }
    peers_.emplace(mark_);
    watchdog_.emplace(
        time_, limit_, mark_,
        detail::watchdog::actions{.poll = [this] { peers_->answer(); }, .expired = [this](const auto& late) { end_late(late); }});
  }
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;
  ~connection() {
    watchdog_.reset();
    peers_.reset();
    MPI_Comm_free(&processes_);
  }

  /// Calls `call` with the communicator, under the time limit.
  template<class Call>
  void run(operation what, Call call) {
    const detail::progress_mark::scope running(mark_, what);
    call(processes_);
  }

  /// Waits until all processes have called this function.
  /// @errors Those of `engine::form`. The connection cannot be used, or closed, afterwards.
  void wait_for_all(const formation& how) {
    run(operation::form, [&](MPI_Comm processes) {
      MPI_Request all = MPI_REQUEST_NULL;
      check(MPI_Ibarrier(processes, &all), "MPI_Ibarrier");
      for (stepwell::detail::formation_wait wait(how);; wait.pause([&] { return awaited(how); })) {
        int is_done = 0;
        check(MPI_Test(&all, &is_done, MPI_STATUS_IGNORE), "MPI_Test");
        if (is_done != 0) { return; }
      }
    });
  }

private:
  /// Returns the awaited processes. Finds their ranks at the end of the formation only, because their watchdogs need some time to answer.
  [[nodiscard]] std::string awaited(const formation& how) {
    if (how.stop.stop_requested() || how.time.now() < how.until) { return "other processes"; }
    return fmt::format("other processes ({})", watchdog_ ? peers_->missing(mark_.now(), time_for_answers(), false)
                                                         : "their ranks are known only with timeout_secs");
  }

  /// The watchdogs of the other processes answer once in each of their periods.
  [[nodiscard]] clock::duration time_for_answers() const { return watchdog_->period() + std::chrono::milliseconds(500); }

  void end_late(const detail::progress& late) {
    end_at_latest_after(std::chrono::seconds(2));
    log_error(fmt::format("MPI: {} number {} of the group lasts longer than {} s (timeout_secs): {}; {}",
                          late.running == operation::sum ? "sum" : "broadcast", late.begun, std::chrono::duration<double>(limit_).count(),
                          peers_->missing(late, time_for_answers(), true), advice));
    end_job();
  }

  std::shared_ptr<clock> time_;
  clock::duration limit_;
  MPI_Comm processes_ = MPI_COMM_NULL;
  detail::progress_mark mark_;
  std::optional<detail::peers> peers_;
  std::optional<detail::watchdog> watchdog_;
};

class mpi_collective final : public collective {
public:
  mpi_collective(connection& with, int size) : connection_(with), members_(static_cast<std::size_t>(size)) {
    std::iota(members_.begin(), members_.end(), 0);
  }

  [[nodiscard]] const std::vector<int>& members() const noexcept override { return members_; }

  void sum(dtype type, std::span<std::byte> elements) override {
    const auto added = type_of(type);
    connection_.run(operation::sum, [&](MPI_Comm processes) {
      in_pieces(elements, size_of(type), [&](std::byte* first, int count) {
        check(MPI_Allreduce(MPI_IN_PLACE, first, count, added, MPI_SUM, processes), "MPI_Allreduce");
      });
    });
  }

  void broadcast(std::span<std::byte> bytes) override {
    connection_.run(operation::broadcast, [&](MPI_Comm processes) {
      in_pieces(bytes, 1, [&](std::byte* first, int count) { check(MPI_Bcast(first, count, MPI_BYTE, 0, processes), "MPI_Bcast"); });
    });
  }

  void abandon(std::string_view why) noexcept override {
    log_error(fmt::format("MPI: a process of the group has failed: {}; {}", why, advice));
    end_job();
  }

private:
  connection& connection_;
  std::vector<int> members_;
};

class mpi_engine final : public engine {
public:
  mpi_engine(std::shared_ptr<runtime> with, const options& how) : options_(how), runtime_(std::move(with)) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    if (size_ > 1) {
      connection_.emplace(how);
    } else {
      check_launcher();
      alone_ = make_single_process_engine();
    }
  }
  ~mpi_engine() override {
    if (!failure_.empty()) {  // MPI cannot be finalised, because its barrier is not complete
      log_error(fmt::format("MPI: the group was not formed: {}; {}", failure_, advice));
      end_job();
    }
    const auto limit = size_ > 1 ? limit_of_end() : alarm();
    connection_.reset();
    runtime_.reset();
  }
  mpi_engine(const mpi_engine&) = delete;
  mpi_engine& operator=(const mpi_engine&) = delete;

  [[nodiscard]] std::string_view name() const noexcept override { return "MPI"; }
  [[nodiscard]] int rank() const noexcept override { return rank_; }
  [[nodiscard]] int size() const noexcept override { return size_; }
  [[nodiscard]] bool can_form_again() const noexcept override { return size_ == 1; }

  [[nodiscard]] formed_collective form(const formation& how) override {
    if (alone_) { return alone_->form(how); }
    try {
      connection_->wait_for_all(how);
    } catch (...) {
      failure_ = stepwell::detail::text_of(std::current_exception());
      throw;
    }
    was_formed_ = true;
    return {std::make_unique<mpi_collective>(*connection_, size_), how.last_generation + 1};
  }

private:
  /// Returns an alarm that ends this process if the end of MPI takes too long. No other function of MPI may be called then.
  [[nodiscard]] alarm limit_of_end() const {
    if (options_.timeout_secs.count() == 0) { return {}; }
    return {options_.clock, stepwell::detail::time_after(options_.clock->now(), options_.timeout_secs),
            [seconds = options_.timeout_secs.count(), was_formed = was_formed_] {
              log_error(fmt::format("MPI: MPI_Finalize lasts longer than {} s (timeout_secs): {}; {}", seconds,
                                    was_formed ? "another process was stopped, has ended, is cut off, or still uses the group"
                                               : "this process has left before the group was formed, and the others wait for it",
                                    advice));
              std::_Exit(lost_exit_code);
            }};
  }

  options options_;
  std::shared_ptr<runtime> runtime_;
  int rank_ = 0;
  int size_ = 1;
  std::string failure_;  // of the formation; empty if there was none
  bool was_formed_ = false;
  std::optional<connection> connection_;
  std::unique_ptr<engine> alone_;
};

}  // namespace

std::shared_ptr<group> make_group(int* argc, char*** argv, const options& options) {
  stepwell::detail::refuse_negative("mpi: timeout_secs", options.timeout_secs);
  stepwell::detail::refuse_negative("mpi: parts", options.parts);
  if (!options.clock) { throw invalid_argument_error("mpi: clock is null; leave it out for the clock of the machine"); }
  const auto threads = options.timeout_secs.count() == 0 ? MPI_THREAD_SERIALIZED : MPI_THREAD_MULTIPLE;
  auto with = runtime::shared(argc, argv, threads);
  return std::make_shared<group>(std::make_unique<mpi_engine>(std::move(with), options), group_options{.parts = options.parts});
}

}  // namespace stepwell::mpi
