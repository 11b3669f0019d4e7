// SPDX-License-Identifier: Apache-2.0
//
// Private to torch: a variable that is copied from LibTorch and back.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/base/tensor.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <utility>

namespace stepwell::libtorch::detail {

/// Returns the name of a parameter in the form used for variables: "conv1/weight".
[[nodiscard]] std::string path_of(std::string name);

/// A variable that saves the result of `get`, and passes a restored tensor to `set`. The argument of `set` is valid only during the call.
class copied_tensor : public device_elements {
public:
  using get_function = std::function<at::Tensor()>;
  using set_function = std::function<void(const at::Tensor&)>;

  copied_tensor(tensor_view description, at::ScalarType type, get_function get, set_function set)
      : description_(std::move(description)), type_(type), get_(std::move(get)), set_(std::move(set)) {}

  [[nodiscard]] tensor_view description() const override { return description_; }
  void copy_to(std::span<std::byte> to) const override {
    attempt("copy a LibTorch tensor to the host", [&] { on_host(to.data()).copy_(get_()); });
  }
  void copy_from(std::span<const std::byte> from) override {
    attempt("copy a LibTorch tensor from the host", [&] { set_(on_host(const_cast<std::byte*>(from.data()))); });  // only read from
  }

  /// Calls `action` without recording gradients. A failure of LibTorch becomes an `internal_error` that says that this could not be done.
  template<class Action>
  static void attempt(const char* what, Action action) {
    const at::NoGradGuard without_gradients;
    try {
      action();
    } catch (const c10::Error& failure) {
      throw internal_error(std::string("could not ") + what + ": " + failure.what_without_backtrace());
    }
  }

protected:
  [[nodiscard]] at::Tensor on_host(std::byte* bytes) const {
    return at::from_blob(bytes, description_.shape, at::TensorOptions().dtype(type_));
  }

private:
  tensor_view description_;
  at::ScalarType type_;
  get_function get_;
  set_function set_;
};

}  // namespace stepwell::libtorch::detail
