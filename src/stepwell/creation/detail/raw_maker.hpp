// SPDX-License-Identifier: Apache-2.0
//
// Internal: the two ways in which a session gets its raw session. A given raw session is made ready at each creation. A creator makes a new
// one.
#pragma once

#include "stepwell/creation/session_creation.hpp"
#include "stepwell/creation/session_creator.hpp"
#include "stepwell/creation/session_manager.hpp"
#include "stepwell/hook/raw_session.hpp"

#include <memory>
#include <optional>
#include <utility>

namespace stepwell::detail {

template<class Raw>
class raw_maker {
public:
  raw_maker() = default;
  raw_maker(const raw_maker&) = delete;
  raw_maker& operator=(const raw_maker&) = delete;
  virtual ~raw_maker() = default;
  /// Makes `raw` ready, for the first time or again.
  virtual void make(std::optional<Raw>& raw, session_creation& creation) = 0;
};

template<class Raw>
using raw_maker_ptr = std::unique_ptr<raw_maker<Raw>>;

/// Keeps the given raw session; a recovery restores it.
template<class Raw>
class given_raw final : public raw_maker<Raw> {
public:
  explicit given_raw(bool keep_initial_state) : keep_initial_state_(keep_initial_state) {}
  void make(std::optional<Raw>& raw, session_creation& creation) override {
    session_manager<Raw>().prepare_session(*raw, creation, {}, {.keep_initial_state = keep_initial_state_});
  }

private:
  bool keep_initial_state_;
};

template<class Raw, class Creator>
class created_raw final : public raw_maker<Raw> {
public:
  explicit created_raw(Creator creator) : creator_(std::move(creator)) {}
  void make(std::optional<Raw>& raw, session_creation& creation) override {
    auto made = detail::create_by(creator_, creation);
    raw.emplace(std::move(made));
  }

private:
  Creator creator_;
};

template<raw_session Raw>
raw_maker_ptr<Raw> prepare_given(bool keep_initial_state) {
  return raw_maker_ptr<Raw>(new given_raw<Raw>(keep_initial_state));
}
template<raw_session Raw, class Creator>
raw_maker_ptr<Raw> create_with(Creator creator) {
  return raw_maker_ptr<Raw>(new created_raw<Raw, Creator>(std::move(creator)));
}

}  // namespace stepwell::detail
