// SPDX-License-Identifier: Apache-2.0
//
// The sources that are registered with an asynchronous session.
#pragma once

#include "stepwell/session/detail/run_step.hpp"

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell::detail {

/// The registration of a source with a session: the base class for sources of all types.
class source_registration_base {
public:
  virtual ~source_registration_base() = default;
  virtual void release() noexcept = 0;
};

/// A variable whose address identifies the type `Source`.
template<class Source>
inline constexpr char kind_of_source{};

/// All source registrations of one session. Owns the registrations of sources that are passed to each call separately
/// (`async_next(source)`).
class source_registrations {
public:
  /// Returns the registration for `source`, which is identified by its address and type. Creates it with `make()` if there is none.
  template<class Registration, class Source, class Make>
  [[gnu::always_inline]] Registration& holder_of(Source& source, Make&& make) {
    for (const auto& entry : given_) {
      if (entry.address == &source && entry.kind == &kind_of_source<Source>) [[likely]] {
        return static_cast<Registration&>(*entry.holder);
      }
    }
    return add_holder<Registration>(source, make);
  }
  template<class Source>
  void release(const Source& source) noexcept {
    std::erase_if(given_, [&](const given_source& entry) {
      return entry.address == &source && entry.kind == &kind_of_source<std::remove_const_t<Source>>;
    });
  }
  void add(source_registration_base* holder) { all_.push_back(holder); }
  void remove(source_registration_base* holder) noexcept { std::erase(all_, holder); }
  void release_all() noexcept {
    for (auto* holder : all_) { holder->release(); }
  }

private:
  template<class Registration, class Source, class Make>
  [[gnu::noinline, gnu::cold]] Registration& add_holder(Source& source, Make& make) {
    auto registration = make();
    auto& holder = *registration;
    given_.push_back({&source, &kind_of_source<Source>, std::move(registration)});
    return holder;
  }
  struct given_source {
    const void* address;
    const char* kind;
    std::unique_ptr<source_registration_base> holder;
  };

  std::vector<source_registration_base*> all_;
  std::vector<given_source> given_;  // destroyed first: they are in `all_`
};

/// The registration of a source of type `Source`. It takes effect with the first step over the source.
/// @lifetime `core`, `all` and `source` must outlive it.
template<class Core, class Source>
class source_registration final : public source_registration_base, public loop_source<Core, Source> {
public:
  source_registration(Core& core, source_registrations& all, Source& source) : loop_source<Core, Source>(core, source), all_(all) {
    all_.add(this);
  }
  source_registration(const source_registration&) = delete;
  source_registration& operator=(const source_registration&) = delete;
  ~source_registration() override { all_.remove(this); }

  void release() noexcept override { this->detach(); }

private:
  source_registrations& all_;
};

}  // namespace stepwell::detail
