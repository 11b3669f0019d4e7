// SPDX-License-Identifier: Apache-2.0
//
// The sources that a caller passes to each call of a session separately, registered with the session.
#pragma once

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
/// (`next(source)`, `async_next(source)`).
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

}  // namespace stepwell::detail
