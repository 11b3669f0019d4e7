// SPDX-License-Identifier: Apache-2.0
//
// The sources from which an asynchronous session takes batches, and their registrations.
#pragma once

#include "stepwell/session/detail/run_step.hpp"
#include "stepwell/session/detail/source_cursor.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell::detail {

/// The registration of a source with a session. It begins with the first step over the source.
class source_registration_base {
public:
  virtual ~source_registration_base() = default;
  virtual void release() noexcept = 0;
};
template<class Async, class Source>
class source_registration;

/// A variable whose address identifies the type `Source`.
template<class Source>
inline constexpr char kind_of_source{};

/// All source registrations of one session. Owns the registrations of sources that are passed to each call separately
/// (`async_next(source)`).
template<class Async>
class source_registrations {
public:
  /// Returns the registration for `source`, which is identified by its address and type. Creates it if there is none.
  template<class Source>
  source_registration<Async, Source>& holder_of(Async& self, Source& source) {
    for (const auto& given : given_) {
      if (given.address == &source && given.kind == &kind_of_source<Source>) [[likely]] {
        return static_cast<source_registration<Async, Source>&>(*given.holder);
      }
    }
    auto made = std::make_unique<source_registration<Async, Source>>(self, source);
    auto& holder = *made;
    given_.push_back({&source, &kind_of_source<Source>, std::move(made)});
    return holder;
  }
  template<class Source>
  void release(const Source& source) noexcept {
    std::erase_if(given_, [&](const given_source& given) {
      return given.address == &source && given.kind == &kind_of_source<std::remove_const_t<Source>>;
    });
  }
  void add(source_registration_base* holder) { all_.push_back(holder); }
  void remove(source_registration_base* holder) noexcept { std::erase(all_, holder); }
  void release_all() noexcept {
    for (auto* holder : all_) { holder->release(); }
  }

private:
  struct given_source {
    const void* address;
    const char* kind;
    std::unique_ptr<source_registration_base> holder;
  };

  std::vector<source_registration_base*> all_;
  std::vector<given_source> given_;  // destroyed first: they are in `all_`
};

/// The registration of a source of type `Source`.
/// @lifetime `self` and `source` must outlive it.
template<class Async, class Source>
class source_registration final : public source_registration_base {
public:
  source_registration(Async& self, Source& source) : self_(self), source_(source) { self_.sources().add(this); }
  source_registration(const source_registration&) = delete;
  source_registration& operator=(const source_registration&) = delete;
  ~source_registration() override { self_.sources().remove(this); }

  [[nodiscard]] Source* source() const noexcept { return &source_; }
  [[nodiscard]] bool is_held() const noexcept { return cursor_.has_value(); }
  [[nodiscard]] auto& cursor() noexcept { return *cursor_; }

  /// Registers the source, before the first step or again after its end. Does nothing if it is registered. @errors Those of
  /// `source_cursor`.
  void take() {
    auto& core = self_.core();
    if (cursor_) { return; }
    detail::guarded(core, step_stage::source, [&] { cursor_.emplace(core.positions(), source_, core.raw().global_step()); });
    core.note_end_of_source(false);
  }
  void release() noexcept override { cursor_.reset(); }

private:
  Async& self_;
  Source& source_;
  std::optional<source_cursor<Source>> cursor_;
};

}  // namespace stepwell::detail
