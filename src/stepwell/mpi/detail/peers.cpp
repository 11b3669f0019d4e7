// SPDX-License-Identifier: Apache-2.0
#include "stepwell/mpi/detail/peers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <thread>

// Failures of MPI are ignored here: an answer that does not arrive is missing in a message.

namespace stepwell::mpi::detail {

namespace {

constexpr int question_tag = 1;
constexpr int answer_tag = 2;

/// Returns "rank 1" or "ranks 1, 2".
std::string ranks(const std::vector<int>& which) { return fmt::format("rank{} {}", which.size() == 1 ? "" : "s", fmt::join(which, ", ")); }

/// Receives a message of `tag` if one has arrived. Returns the rank of its sender.
std::optional<int> receive(MPI_Comm from, int tag, std::uint64_t* progress) {
  int has_arrived = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  if (MPI_Improbe(MPI_ANY_SOURCE, tag, from, &has_arrived, &message, &status) != MPI_SUCCESS || has_arrived == 0) { return std::nullopt; }
  MPI_Mrecv(progress, progress == nullptr ? 0 : 1, MPI_UINT64_T, &message, &status);
  return status.MPI_SOURCE;
}

}  // namespace

peers::peers(const progress_mark& mine) : mine_(mine) {
  MPI_Comm_dup(MPI_COMM_WORLD, &processes_);
  MPI_Comm_set_errhandler(processes_, MPI_ERRORS_RETURN);
  MPI_Comm_rank(processes_, &rank_);
  int size = 1;
  MPI_Comm_size(processes_, &size);
  answers_.resize(static_cast<std::size_t>(size));
}

peers::~peers() { MPI_Comm_free(&processes_); }

void peers::answer() {
  while (const auto from = receive(processes_, question_tag, nullptr)) {
    auto& sent = answers_[static_cast<std::size_t>(*from)];
    int is_sent = 0;
    MPI_Test(&sent.request, &is_sent, MPI_STATUS_IGNORE);
    if (is_sent == 0) { continue; }  // the previous answer is still under way
    sent.progress = mine_.now().packed();
    MPI_Isend(&sent.progress, 1, MPI_UINT64_T, *from, answer_tag, processes_, &sent.request);
  }
}

std::string peers::missing(const progress& late, clock::duration limit, bool is_answering) {
  std::vector<std::optional<progress>> known(answers_.size());
  known[static_cast<std::size_t>(rank_)] = late;
  for (int rank = 0; rank < static_cast<int>(known.size()); ++rank) {
    if (rank == rank_) { continue; }
    MPI_Request question = MPI_REQUEST_NULL;
    if (MPI_Isend(nullptr, 0, MPI_UINT64_T, rank, question_tag, processes_, &question) == MPI_SUCCESS) { MPI_Request_free(&question); }
  }
  // The real clock: this process ends soon.
  const auto until = std::chrono::steady_clock::now() + limit;
  const auto all_are_known = [&] { return std::ranges::all_of(known, [](const auto& one) { return one.has_value(); }); };
  while (!all_are_known() && std::chrono::steady_clock::now() < until) {
    std::uint64_t word = 0;
    while (const auto from = receive(processes_, answer_tag, &word)) { known[static_cast<std::size_t>(*from)] = progress::unpacked(word); }
    if (is_answering) { answer(); }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  std::vector<int> silent;
  std::vector<int> behind;
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (!known[i]) { silent.push_back(static_cast<int>(i)); }
    if (known[i] && known[i]->begun < late.begun) { behind.push_back(static_cast<int>(i)); }
  }
  std::vector<std::string> found;
  if (!silent.empty()) { found.push_back(fmt::format("no answer from {} (stopped, ended, or cut off)", ranks(silent))); }
  if (!behind.empty()) { found.push_back(fmt::format("not begun by {}", ranks(behind))); }
  return found.empty() ? "all processes execute it; the network is slow or interrupted" : fmt::format("{}", fmt::join(found, "; "));
}

}  // namespace stepwell::mpi::detail
