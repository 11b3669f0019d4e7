// SPDX-License-Identifier: Apache-2.0
#include "stepwell/tensorflow/runtime.hpp"

#include "stepwell/base/detail/locks.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/tensorflow/detail/c_api.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace stepwell::tensorflow {

struct runtime::loaded {
  std::string library;
  std::string version;
  detail::c::api functions;
};

namespace {

namespace fs = std::filesystem;

constexpr std::string_view names[] = {"libtensorflow.so.2", "libtensorflow_cc.so.2"};
constexpr const char* how_to_install =
    "install it with `python3 -m venv VENV && VENV/bin/pip install tensorflow-cpu`, and set STEPWELL_TENSORFLOW to "
    "VENV/lib/python3.*/site-packages/tensorflow, or activate the environment";

// The sanitizers reject RTLD_DEEPBIND. The linker of macOS binds as deep without it.
#ifndef RTLD_DEEPBIND
#define RTLD_DEEPBIND 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool binds_deep = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool binds_deep = false;
#else
constexpr bool binds_deep = true;
#endif
#else
constexpr bool binds_deep = true;
#endif

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

/// The search for the library: places to try, in order, and the reasons why earlier ones failed.
class search {
public:
  /// Adds a place that the user named: a file, or a directory with the library.
  void add_given(const std::string& path, std::string_view named_by) {
    std::error_code ignored;
    if (!fs::is_directory(path, ignored)) { return add(path, named_by); }
    bool is_empty = true;
    for (const auto name : names) {
      const auto file = fs::path(path) / name;
      if (fs::exists(file, ignored)) { add(file.string(), named_by), is_empty = false; }
    }
    if (is_empty) { note(path, std::string(named_by) + ": holds neither libtensorflow.so.2 nor libtensorflow_cc.so.2"); }
  }

  /// Adds the package in the Python environment that `name` points to.
  void add_environment(const char* name) {
    const auto root = variable(name);
    if (root.empty()) { return note(name, "not set"); }
    std::vector<fs::path> folders;
    std::error_code failed;
    for (fs::directory_iterator one(fs::path(root) / "lib", failed), end; !failed && one != end; one.increment(failed)) {
      if (one->path().filename().string().starts_with("python")) { folders.push_back(one->path() / "site-packages" / "tensorflow"); }
    }
    std::ranges::sort(folders);
    bool is_empty = true;
    for (const auto& folder : folders) {
      if (fs::is_directory(folder, failed)) { add_given(folder.string(), name), is_empty = false; }
    }
    if (is_empty) { note(root, std::string(name) + ": has no package tensorflow"); }
  }

  void add(std::string file, std::string_view named_by) { files_.emplace_back(std::move(file), named_by); }
  void note(std::string place, std::string reason) { reasons_.push_back("  " + std::move(place) + ": " + std::move(reason)); }

  [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& files() const noexcept { return files_; }

  [[noreturn]] void fail() const {
    std::string text = "could not load TensorFlow's C library; tried";
    for (const auto& reason : reasons_) { text.append("\n").append(reason); }
    throw not_found_error(text.append("\n").append(how_to_install));
  }

private:
  std::vector<std::pair<std::string, std::string>> files_;
  std::vector<std::string> reasons_;
};

search places_for(const runtime_options& options) {
  search places;
  if (!options.library.empty()) {
    places.add_given(options.library, "runtime_options::library");
    return places;
  }
  if (const auto given = variable("STEPWELL_TENSORFLOW"); !given.empty()) {
    places.add_given(given, "STEPWELL_TENSORFLOW");
    return places;  // like a given path: another library than the named one would be a surprise
  }
  places.note("STEPWELL_TENSORFLOW", "not set");
  places.add_environment("VIRTUAL_ENV");
  places.add_environment("CONDA_PREFIX");
  for (const auto name : names) { places.add(std::string(name), "the linker's search path"); }
  return places;
}

/// Looks up all functions. Returns the names of the missing ones, separated by commas.
std::string look_up(void* library, detail::c::api& into) {
  std::string missing;
  const auto find = [&](const char* name) {
    void* const found = ::dlsym(library, name);
    if (found == nullptr) { missing.append(missing.empty() ? "" : ", ").append(name); }
    return found;
  };
#define STEPWELL_TF(member, name, result, parameters) into.member = reinterpret_cast<decltype(into.member)>(find(#name));
  STEPWELL_TF_FUNCTIONS(STEPWELL_TF)
#undef STEPWELL_TF
  return missing;
}

/// Both TensorFlow and this program contain protobuf, without versions in the names of its functions. `RTLD_DEEPBIND` makes TensorFlow use
/// its own.
void* load(const std::string& file) { return ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | (binds_deep ? RTLD_DEEPBIND : 0)); }

stepwell::detail::checked_mutex loading;

}  // namespace

constinit std::atomic<const detail::c::api*> detail::loaded_functions = nullptr;

runtime runtime::open(const runtime_options& options) {
  static std::shared_ptr<const loaded> present;
  const stepwell::detail::mutex_lock lock(loading);
  if (present) {
    if (!options.library.empty() && options.library != present->library && fs::path(present->library).parent_path() != options.library) {
      throw failed_precondition_error("could not load TensorFlow from " + options.library + ": this process has loaded " +
                                      present->library + " already; a process has one TensorFlow");
    }
    return runtime(present);
  }
  auto places = places_for(options);
  ::setenv("TF_CPP_MIN_LOG_LEVEL", "1", 0);
  for (const auto& [file, named_by] : places.files()) {
    void* const library = load(file);
    if (library == nullptr) {
      const char* const why = ::dlerror();
      places.note(file, named_by + ": " + (why == nullptr ? "cannot be loaded" : why));
      continue;
    }
    auto made = std::make_shared<loaded>(loaded{file, {}, {}});
    if (const auto missing = look_up(library, made->functions); !missing.empty()) {
      places.note(file, named_by + ": lacks the functions " + missing + "; TensorFlow 2.4 or newer is needed");
      ::dlclose(library);
      continue;
    }
    made->version = made->functions.version();
    present = std::move(made);
    detail::loaded_functions.store(&present->functions, std::memory_order_release);
    return runtime(present);
  }
  places.fail();
}

const std::string& runtime::version() const noexcept { return loaded_->version; }
const std::string& runtime::library() const noexcept { return loaded_->library; }

const detail::c::api& detail::load_functions() { return runtime::open().loaded_->functions; }

}  // namespace stepwell::tensorflow
