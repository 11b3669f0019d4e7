// SPDX-License-Identifier: Apache-2.0
//
// TensorFlow's C library: finding and loading it. It is loaded at run time, so a program that is linked with `stepwell::tensorflow` starts
// without TensorFlow, and needs it at the first use.
#pragma once

#include <memory>
#include <string>
#include <utility>

namespace stepwell::tensorflow {

namespace detail {
namespace c {
struct api;
}
/// Returns the functions of the library. Loads the library like `runtime::open` if it is not loaded yet.
[[nodiscard]] const c::api& functions();
}  // namespace detail

/// Options of `runtime::open`.
struct runtime_options {
  /// The path of the library, such as `VENV/lib/python3.11/site-packages/tensorflow/libtensorflow_cc.so.2`, or of a directory with it.
  /// Empty: the library is searched.
  std::string library = {};
};

/// The loaded library. There is one for the process; it stays loaded until the process ends.
/// @threads All functions may be called from any thread.
class runtime {
public:
  /// Loads the library, or returns the one that is loaded. Without a path, these places are searched, in this order:
  ///
  /// 1. the environment variable `STEPWELL_TENSORFLOW`, a file or a directory;
  /// 2. the package `tensorflow` or `tensorflow-cpu` of the active Python environment (`VIRTUAL_ENV`, `CONDA_PREFIX`);
  /// 3. the search path of the system's linker, for `libtensorflow.so.2` and `libtensorflow_cc.so.2`.
  ///
  /// Sets `TF_CPP_MIN_LOG_LEVEL` to 1 before loading, if it is not set, so that TensorFlow prints warnings and errors only.
  /// @errors `not_found_error` that lists all places and says how to install the library, also if a library was found that cannot be
  ///   loaded, or lacks a function. `failed_precondition_error` if another library is loaded already.
  /// @cost About half a second and 300 MB of memory, once for each process.
  static runtime open(const runtime_options& options = {});

  /// Returns the version of TensorFlow, such as "2.21.0".
  [[nodiscard]] const std::string& version() const noexcept;
  /// Returns the path with which the library was loaded.
  [[nodiscard]] const std::string& library() const noexcept;

private:
  struct loaded;
  friend const detail::c::api& detail::functions();
  explicit runtime(std::shared_ptr<const loaded> library) noexcept : loaded_(std::move(library)) {}

  std::shared_ptr<const loaded> loaded_;
};

}  // namespace stepwell::tensorflow
