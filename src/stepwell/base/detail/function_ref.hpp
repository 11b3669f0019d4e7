// SPDX-License-Identifier: Apache-2.0
//
// A non-owning reference to a callable, like std::function_ref of C++26. Functions that take one need not be templates, and passing one
// does not allocate.
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace stepwell {

template<class Signature>
class function_ref;

/// A non-owning reference to a callable. Use it for parameters, never for members.
/// @lifetime The callable must outlive the reference.
template<class Result, class... Args>
class function_ref<Result(Args...)> {
public:
  template<class Function>
    requires(!std::same_as<std::remove_cvref_t<Function>, function_ref>)
  explicit(false) function_ref(Function&& function) noexcept
      : function_(const_cast<void*>(static_cast<const void*>(std::addressof(function)))), call_([](void* of, Args... args) -> Result {
          return (*static_cast<std::remove_reference_t<Function>*>(of))(std::forward<Args>(args)...);
        }) {}

  Result operator()(Args... args) const { return call_(function_, std::forward<Args>(args)...); }

private:
  void* function_;
  Result (*call_)(void*, Args...);
};

}  // namespace stepwell
