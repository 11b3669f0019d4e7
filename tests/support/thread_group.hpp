// SPDX-License-Identifier: Apache-2.0
//
// Groups whose processes are threads of this process, on the clock of the machine.
#pragma once

#include <stepwell/base/error.hpp>
#include <stepwell/group/detail/group_store.hpp>
#include <stepwell/group/group.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace stepwell::test {

/// The memory that the threads of a group share.
class thread_job {
public:
  explicit thread_job(int size) : size_(size) {}

  /// Returns the group of one rank, for one thread. Each call makes a new process of that rank.
  [[nodiscard]] std::shared_ptr<group> join(int rank, group_options options = {}) {
    return std::make_shared<group>(std::make_unique<thread_engine>(*this, rank), options);
  }
  /// Calls `program` with the group of each rank, on a thread each. Returns the first failure of each rank.
  std::vector<std::exception_ptr> run(const std::function<void(std::shared_ptr<group>)>& program, group_options options = {}) {
    std::vector<std::exception_ptr> failures(static_cast<std::size_t>(size_));
    std::vector<std::thread> threads;
    running_ = size_;
    for (int rank = 0; rank < size_; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          program(join(rank, options));
        } catch (...) { failures[static_cast<std::size_t>(rank)] = std::current_exception(); }
        --running_;
      });
    }
    for (auto& thread : threads) { thread.join(); }
    return failures;
  }
  /// Like `run`. Throws the first failure of the lowest rank that has one.
  void run_well(const std::function<void(std::shared_ptr<group>)>& program, group_options options = {}) {
    for (const auto& failure : run(program, options)) {
      if (failure) { std::rethrow_exception(failure); }
    }
  }
  /// The number of sums and broadcasts of all ranks.
  std::atomic<int> operations = 0;
  /// Called in each rank after a sum. An exception stands for a loss that this rank sees, and perhaps no other one.
  std::function<void(int rank, dtype type)> after_sum = nullptr;
  /// Returns true if each rank that runs waits for other ranks.
  [[nodiscard]] bool all_are_waiting() const { return waiting_ > 0 && waiting_ == running_; }

private:
  struct counted {
    explicit counted(std::atomic<int>& in) : count(in) { ++count; }
    ~counted() { --count; }
    counted(const counted&) = delete;
    counted& operator=(const counted&) = delete;
    std::atomic<int>& count;
  };

  /// One collective of all its members. Each operation is a meeting of all of them.
  struct meeting {
    explicit meeting(std::size_t size) : members(size) {}

    std::mutex mutex;
    std::condition_variable changed;
    const std::size_t members;
    std::vector<std::span<std::byte>> arrived;
    std::size_t count = 0;    // of `arrived`
    std::size_t leaving = 0;  // members that have not left the last meeting
    std::uint64_t round = 0;
    bool is_broken = false;

    void meet(std::size_t place, std::span<std::byte> elements, const std::function<void(std::span<std::span<std::byte>>)>& act) {
      std::unique_lock lock(mutex);
      const auto wait = [&](auto done) {
        changed.wait_for(lock, std::chrono::seconds(20), [&] { return is_broken || done(); });
        if (done()) { return; }  // also if a member has left after the operation
        is_broken = true;
        changed.notify_all();
        throw unavailable_error("a thread of the group is lost");
      };
      wait([&] { return leaving == 0 || is_broken; });
      if (is_broken) { throw unavailable_error("a thread of the group is lost"); }
      if (arrived.empty()) { arrived.resize(members); }
      arrived[place] = elements;
      const auto mine = round;
      if (++count == members) {
        act(arrived);
        ++round, count = 0, leaving = members;
        changed.notify_all();
      } else {
        wait([&] { return round != mine; });
      }
      if (--leaving == 0) { arrived.clear(), changed.notify_all(); }
    }
    void leave() {
      const std::lock_guard lock(mutex);
      is_broken = true;
      changed.notify_all();
    }
  };

  class thread_collective final : public collective {
  public:
    thread_collective(thread_job& job, std::shared_ptr<meeting> with, std::vector<int> members, std::size_t place)
        : job_(job), with_(std::move(with)), members_(std::move(members)), place_(place) {}
    ~thread_collective() override { with_->leave(); }

    [[nodiscard]] const std::vector<int>& members() const noexcept override { return members_; }
    void sum(dtype type, std::span<std::byte> elements) override {
      ++job_.operations;
      const counted one(job_.waiting_);
      with_->meet(place_, elements, [type](std::span<std::span<std::byte>> all) {
        if (type == dtype::float32) { return add<float>(all); }
        if (type == dtype::float64) { return add<double>(all); }
        if (type == dtype::int64) { return add<std::int64_t>(all); }
        throw unimplemented_error("threads add float, double and int64 only");
      });
      if (job_.after_sum) { job_.after_sum(members_[place_], type); }
    }
    void broadcast(std::span<std::byte> bytes) override {
      ++job_.operations;
      const counted one(job_.waiting_);
      with_->meet(place_, bytes, [](std::span<std::span<std::byte>> all) {
        for (const auto& to : all.subspan(1)) { std::ranges::copy(all[0], to.begin()); }
      });
    }
    void abandon(std::string_view /*why*/) noexcept override { with_->leave(); }

  private:
    template<class T>
    static void add(std::span<std::span<std::byte>> all) {
      for (std::size_t i = 0; i < all[0].size() / sizeof(T); ++i) {
        T total{};
        for (const auto& one : all) {
          T value;
          std::memcpy(&value, one.data() + i * sizeof(T), sizeof(T));
          total += value;
        }
        for (const auto& one : all) { std::memcpy(one.data() + i * sizeof(T), &total, sizeof(T)); }
      }
    }

    thread_job& job_;
    std::shared_ptr<meeting> with_;
    std::vector<int> members_;
    std::size_t place_;
  };

  class thread_store final : public group_store {
  public:
    explicit thread_store(thread_job& job) : job_(job) {}
    void set(const std::string& key, const std::string& value) override {
      const std::lock_guard lock(job_.mutex_);
      job_.values_[key] = value;
    }
    [[nodiscard]] std::optional<std::string> get(const std::string& key) override {
      const std::lock_guard lock(job_.mutex_);
      const auto found = job_.values_.find(key);
      return found == job_.values_.end() ? std::nullopt : std::optional(found->second);
    }
    std::optional<std::string> compare_set(const std::string& key, const std::optional<std::string>& expected,
                                           const std::string& desired) override {
      const std::lock_guard lock(job_.mutex_);
      const auto found = job_.values_.find(key);
      const auto current = found == job_.values_.end() ? std::nullopt : std::optional(found->second);
      if (current != expected) { return current; }
      job_.values_[key] = desired;
      return desired;
    }

  private:
    thread_job& job_;
  };

  class thread_engine final : public engine {
  public:
    thread_engine(thread_job& job, int rank) : job_(job), rank_(rank) {}
    [[nodiscard]] std::string_view name() const noexcept override { return "threads"; }
    [[nodiscard]] int rank() const noexcept override { return rank_; }
    [[nodiscard]] int size() const noexcept override { return job_.size_; }
    [[nodiscard]] bool can_form_again() const noexcept override { return true; }
    [[nodiscard]] formed_collective form(const formation& how) override {
      const counted one(job_.waiting_);
      thread_store store(job_);
      const auto agreed = agree_on_formation(store, {rank_, job_.size_, identity_}, how);
      std::vector<int> members;
      for (const auto& member : agreed.members) { members.push_back(member.rank); }
      const std::lock_guard lock(job_.mutex_);
      auto& meeting_of_all = job_.meetings_[agreed.name];
      if (!meeting_of_all) { meeting_of_all = std::make_shared<meeting>(members.size()); }
      return {std::make_unique<thread_collective>(job_, meeting_of_all, std::move(members), static_cast<std::size_t>(agreed.place)),
              agreed.generation, agreed.ended};
    }
    void announce_end(std::int64_t cause) override {
      thread_store store(job_);
      stepwell::announce_end(store, rank_, cause);
    }

  private:
    thread_job& job_;
    int rank_;
    std::string identity_ = make_identity();
  };

  int size_;
  std::atomic<int> running_ = 0;
  std::atomic<int> waiting_ = 0;
  std::mutex mutex_;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::shared_ptr<meeting>> meetings_;
};

}  // namespace stepwell::test
