// SPDX-License-Identifier: Apache-2.0
//
// A session creator makes a raw session (the object that executes the steps, without hooks) at the start of a monitored
// session and at each recovery. This header has a creator for chiefs and a creator for workers. Your own types can be creators, too.
// @see contract CREATOR
#pragma once

#include "stepwell/creation/scaffold.hpp"
#include "stepwell/creation/session_creation.hpp"
#include "stepwell/creation/session_manager.hpp"
#include "stepwell/protocol/raw_session.hpp"

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace stepwell {

/// A type with a function `create_session()` that returns a raw session that is ready to run. If the creator also restores the state of
/// hooks and the positions of sources, it has a function `create_session(session_creation&)` instead.
/// @see contract CREATOR-1
template<class Creator>
concept session_creator = requires(Creator& creator) {
  { creator.create_session() } -> raw_session;
} || requires(Creator& creator, session_creation& creation) {
  { creator.create_session(creation) } -> raw_session;
};

namespace detail {
template<class Creator>
auto create_by(Creator& creator, session_creation& creation) {
  if constexpr (requires { creator.create_session(creation); }) {
    return creator.create_session(creation);
  } else {
    return creator.create_session();
  }
}

/// Sets the defaults of the scaffold `with`, and returns a session manager that uses the functions of `with`.
template<class Raw, class Subject>
session_manager<Raw> manager_for(scaffold<Subject>& with, seconds_value recovery_wait) {
  with.finalize();
  return session_manager<Raw>({with.local_init_op(), with.ready_op(), with.ready_for_local_init_op(), recovery_wait});
}
}  // namespace detail

/// The raw session type that `Creator` makes.
template<session_creator Creator>
using created_by = decltype(detail::create_by(std::declval<Creator&>(), std::declval<session_creation&>()));

/// The type of the raw session for a subject, such as a model. There is a specialisation for each kind of subject.
template<class Subject>
struct raw_session_over;
template<class Subject>
using raw_session_over_t = typename raw_session_over<Subject>::type;

namespace detail {

/// A function that makes the raw session of a monitored session ready, at the start and at each recovery.
template<class Raw>
using raw_maker = std::function<void(std::optional<Raw>& raw, session_creation& creation)>;

/// The raw session that the caller gave, or none, and the function that makes a raw session ready.
template<class Raw>
struct raw_origin {
  std::optional<Raw> given;
  raw_maker<Raw> make;
};

/// The type of the raw session of a monitored session, from the type of the argument that stands for it: a raw session, a creator of raw
/// sessions, or an lvalue of a subject.
template<class Given>
struct raw_of;
template<class Given>
  requires raw_session<std::remove_cvref_t<Given>>
struct raw_of<Given> {
  using type = std::remove_cvref_t<Given>;
};
template<class Given>
  requires(session_creator<std::remove_cvref_t<Given>> && !raw_session<std::remove_cvref_t<Given>>)
struct raw_of<Given> {
  using type = created_by<std::remove_cvref_t<Given>>;
};
template<class Subject>
  requires requires { typename raw_session_over<Subject>::type; } && (!raw_session<Subject> && !session_creator<Subject>)
struct raw_of<Subject&> {
  using type = raw_session_over_t<Subject>;
};

/// True if `Given` is a creator of `Raw`, and not an argument of the constructor of `Raw`.
template<class Given, class Raw>
concept creator_of =
    !std::is_constructible_v<Raw, Given> && session_creator<std::remove_cvref_t<Given>> && std::same_as<typename raw_of<Given>::type, Raw>;
/// An argument from which a session over `Raw` can be made.
template<class Given, class Raw>
concept origin_of = std::is_constructible_v<Raw, Given> || creator_of<Given, Raw>;

/// Returns the origin that consists of `given`. A given raw session is never replaced; only its state is restored. A creator makes a new raw
/// session each time.
template<raw_session Raw, origin_of<Raw> Given>
raw_origin<Raw> make_origin(Given&& given, initial_state initial) {
  if constexpr (creator_of<Given, Raw>) {
    auto held = std::make_shared<std::remove_cvref_t<Given>>(std::forward<Given>(given));
    return {std::nullopt, [held](std::optional<Raw>& raw, session_creation& creation) {
              auto made = detail::create_by(*held, creation);
              raw.emplace(std::move(made));
            }};
  } else {
    return {Raw(std::forward<Given>(given)), [initial](std::optional<Raw>& raw, session_creation& creation) {
              if (initial == initial_state::unchanged && !creation.is_first()) { return creation.leave_state(); }
              session_manager<Raw>().prepare_session(*raw, creation, {}, {.keep_initial_state = initial == initial_state::copied});
            }};
  }
}

}  // namespace detail

/// Options of `chief_session_creator`.
struct chief_session_options {
  session_target target = {};
  restore_from restore = {};
  /// Whether to keep a copy of the variables for a recovery before the first checkpoint. See `training_options::keep_initial_state`.
  bool keep_initial_state = true;
  /// See `session_manager_options::recovery_wait`.
  seconds_value recovery_wait = 1;
};

/// Creates the raw session of a chief, and restores or initialises the subject.
/// @lifetime The subject must outlive the creator and the raw sessions that it makes.
/// @see contract CREATOR-2
template<class Subject>
class chief_session_creator {
public:
  using raw_type = raw_session_over_t<Subject>;

  explicit chief_session_creator(Subject& subject, std::type_identity_t<std::shared_ptr<scaffold<Subject>>> with = nullptr,
                                 chief_session_options options = {})
      : subject_(&subject), scaffold_(std::move(with)), options_(std::move(options)) {
    options_.target.is_chief = true;
  }

  [[nodiscard]] raw_type create_session(session_creation& creation) {
    scaffold<Subject> own;
    auto& with = scaffold_ ? *scaffold_ : own;
    const auto manager = detail::manager_for<raw_type>(with, options_.recovery_wait);
    raw_type raw(*subject_, options_.target);
    manager.prepare_session(raw, creation, options_.restore, {with.init_op(), with.init_fn(), options_.keep_initial_state});
    return raw;
  }

private:
  Subject* subject_;
  std::shared_ptr<scaffold<Subject>> scaffold_;
  chief_session_options options_;
};

/// Options of `worker_session_creator`.
struct worker_session_options {
  session_target target = {};
  /// The maximum time to wait for the chief. The default, 1800 s, is that of TensorFlow's WorkerSessionCreator. It differs from the default
  /// of `training_options::max_wait_secs`, 7200 s, which is that of TensorFlow's MonitoredTrainingSession.
  /// @see contract CREATOR-3
  seconds_value max_wait_secs = 1800;
  seconds_value recovery_wait = 1;
};

/// Creates the raw session of a worker, and waits until the chief has restored or initialised the subject.
/// @lifetime The subject must outlive the creator and the raw sessions that it makes.
/// @see contract CREATOR-3
template<class Subject>
class worker_session_creator {
public:
  using raw_type = raw_session_over_t<Subject>;

  explicit worker_session_creator(Subject& subject, std::type_identity_t<std::shared_ptr<scaffold<Subject>>> with = nullptr,
                                  worker_session_options options = {})
      : subject_(&subject), scaffold_(std::move(with)), options_(std::move(options)) {
    options_.target.is_chief = false;
  }

  [[nodiscard]] raw_type create_session(session_creation& creation) {
    scaffold<Subject> own;
    const auto manager = detail::manager_for<raw_type>(scaffold_ ? *scaffold_ : own, options_.recovery_wait);
    raw_type raw(*subject_, options_.target);
    manager.wait_for_session(raw, creation, options_.max_wait_secs);
    return raw;
  }

private:
  Subject* subject_;
  std::shared_ptr<scaffold<Subject>> scaffold_;
  worker_session_options options_;
};

/// A type-erased creator of raw sessions of the type `Raw`. Use it to choose the type of the creator at run time.
template<raw_session Raw>
class any_session_creator {
public:
  template<session_creator Creator>
    requires std::same_as<created_by<Creator>, Raw>
  explicit(false) any_session_creator(Creator creator)
      : create_([held = std::make_shared<Creator>(std::move(creator))](session_creation& creation) {
          return detail::create_by(*held, creation);
        }) {}

  [[nodiscard]] Raw create_session(session_creation& creation) { return create_(creation); }

private:
  std::function<Raw(session_creation&)> create_;
};

}  // namespace stepwell
