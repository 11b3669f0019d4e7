// SPDX-License-Identifier: Apache-2.0
//
// The store through which the processes of a group find each other, and an engine over such a store.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/group/engine.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell {

/// A map of keys to values in the process of rank 0. It is empty when that process starts.
/// @threads One thread at a time.
class group_store {
public:
  group_store() = default;
  group_store(const group_store&) = delete;
  group_store& operator=(const group_store&) = delete;
  virtual ~group_store() = default;

  /// Sets `key` to `value`.
  /// @errors `unavailable_error` if rank 0 cannot be reached. The next call connects again.
  virtual void set(const std::string& key, const std::string& value) = 0;
  /// Returns the value of `key`, or nullopt if the key was not set. Does not wait for the key.
  /// @errors Those of `set`.
  [[nodiscard]] virtual std::optional<std::string> get(const std::string& key) = 0;
  /// Sets `key` to `desired` if its value is `expected`; nullopt stands for a key that was not set. Returns the value afterwards.
  /// @errors Those of `set`.
  virtual std::optional<std::string> compare_set(const std::string& key, const std::optional<std::string>& expected,
                                                 const std::string& desired) = 0;
};

/// The values of one formation. All formations use the same keys, so that the store does not grow. A late value of an earlier formation, for
/// example of a process that was stopped for a while, never replaces a value of a newer one.
/// @see docs/design/group-protocol.md
class formation_values {
public:
  formation_values(group_store& store, std::string name) : store_(store), name_(std::move(name)) {}

  /// Sets `key` to `value`. Returns false, and sets nothing, if a newer formation has begun.
  /// @errors Those of `group_store::set`.
  bool set(const std::string& key, std::string_view value);
  /// Returns the value of `key`, or nullopt if this formation has not set it.
  /// @errors Those of `group_store::set`; `data_loss_error` for a value that no process of a group has written.
  [[nodiscard]] std::optional<std::string> get(const std::string& key) const;
  /// Returns true if no newer formation has begun.
  /// @errors Those of `group_store::set`.
  [[nodiscard]] bool is_newest() const;

private:
  group_store& store_;
  std::string name_;
};

/// One process in a formation. A process that replaces another one of the same rank has another identity.
struct group_member {
  int rank;
  std::string identity;  ///< Host, process id and a random number.
};

/// The processes of a new collective, as all of them agreed.
struct agreed_formation {
  std::int64_t generation;
  std::string name;                         ///< Unique among all formations. Use it for the `formation_values` of the engine.
  std::vector<group_member> members;        ///< In ascending order of rank.
  int place;                                ///< Position of this process in `members`.
  std::optional<ended_process> ended = {};  ///< See `formed_collective::ended`.
};

/// The identity and the size of a group in a store.
struct store_identity {
  int rank;
  int size;
  std::string identity;
};

/// Agrees with the other processes on the members of the next collective. Blocks like `engine::form`. A process whose call fails can call
/// again.
/// @errors Those of `engine::form`.
[[nodiscard]] agreed_formation agree_on_formation(group_store& store, const store_identity& self, const formation& how);

/// Announces in the store that this rank ends the training, until this rank joins another formation.
/// @errors Those of `group_store::set`.
void announce_end(group_store& store, int rank, std::int64_t cause);

/// Returns a text that identifies this process: host, process id and a random number.
[[nodiscard]] std::string make_identity();

}  // namespace stepwell
