// SPDX-License-Identifier: Apache-2.0
//
// Functions that find and load TensorFlow's C library. The library is loaded at run time. A program that is linked with
// `stepwell::tensorflow` therefore starts without TensorFlow, and needs TensorFlow only at the first use.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

namespace stepwell::tensorflow {

namespace detail {
namespace c {
struct api;
}
extern std::atomic<const c::api*> loaded_functions;  // null until the library is loaded
[[nodiscard]] const c::api& load_functions();
/// Returns the functions of TensorFlow's C library. If the library is not loaded yet, loads it like `runtime::open`, with the same errors.
[[nodiscard]] inline const c::api& functions() {
  if (const auto* const found = loaded_functions.load(std::memory_order_acquire)) [[likely]] { return *found; }
  return load_functions();
}
}  // namespace detail

/// Options of `runtime::open`.
struct runtime_options {
  /// The path of the library, such as `VENV/lib/python3.11/site-packages/tensorflow/libtensorflow_cc.so.2`, or the path of a directory that
  /// contains the library. Empty: `runtime::open` searches for the library.
  std::string library = {};
};

/// The loaded C library of TensorFlow. A process loads at most one, which stays loaded until the process ends.
/// @threads All functions may be called from any thread.
class runtime {
public:
  /// Loads the library. If it is loaded already, returns the loaded library. Without a path in `options`, these places are searched, in
  /// this order:
  ///
  /// 1. the file or directory that the environment variable `STEPWELL_TENSORFLOW` names; if the variable is set, no other place is
  ///   searched;
  /// 2. the package `tensorflow` or `tensorflow-cpu` of the active Python environment (`VIRTUAL_ENV`, `CONDA_PREFIX`);
  /// 3. the search path of the system's linker, for `libtensorflow.so.2` and `libtensorflow_cc.so.2`.
  ///
  /// If the environment variable `TF_CPP_MIN_LOG_LEVEL` is not set, sets it to 1 before loading, so that TensorFlow prints only warnings
  /// and errors.
  /// @errors `not_found_error` if no place has a library that can be loaded and that has all necessary functions. The message lists the
  ///   places that were searched, and says how to install the library. `failed_precondition_error` if `options.library` names another
  ///   library than the one that is loaded already.
  /// @cost About half a second and 300 MB of memory, once for each process.
  static runtime open(const runtime_options& options = {});

  /// Returns the version of TensorFlow, such as "2.21.0".
  [[nodiscard]] const std::string& version() const noexcept;
  /// Returns the path with which the library was loaded. It is only a file name if the system's linker found the library.
  [[nodiscard]] const std::string& library() const noexcept;

private:
  struct loaded;
  friend const detail::c::api& detail::load_functions();
  explicit runtime(std::shared_ptr<const loaded> library) noexcept : loaded_(std::move(library)) {}

  std::shared_ptr<const loaded> loaded_;
};

}  // namespace stepwell::tensorflow
