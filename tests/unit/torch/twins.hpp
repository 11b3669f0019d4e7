// SPDX-License-Identifier: Apache-2.0
//
// A group of two processes, of which the other one has the same elements.
#pragma once

#include <stepwell/group/detail/collective.hpp>
#include <stepwell/group/engine.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace stepwell::test {

/// A set of two processes: the other one has the same elements.
class twins final : public collective {
public:
  explicit twins(int& sums) : sums_(sums) {}
  [[nodiscard]] const std::vector<int>& members() const noexcept override { return members_; }
  void sum(dtype type, std::span<std::byte> elements) override {
    ++sums_;
    if (type == dtype::float32) { double_all<float>(elements); }
    if (type == dtype::float64) { double_all<double>(elements); }
  }
  void broadcast(std::span<std::byte> /*bytes*/) override {}
  void abandon(std::string_view /*why*/) noexcept override {}

private:
  template<class T>
  static void double_all(std::span<std::byte> elements) {
    for (auto& one : std::span(reinterpret_cast<T*>(elements.data()), elements.size() / sizeof(T))) { one *= 2; }
  }
  std::vector<int> members_{0, 1};
  int& sums_;
};

class twin_engine final : public engine {
public:
  explicit twin_engine(int& sums) : sums_(sums) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "twins"; }
  [[nodiscard]] int rank() const noexcept override { return 0; }
  [[nodiscard]] int size() const noexcept override { return 2; }
  [[nodiscard]] bool can_form_again() const noexcept override { return true; }
  [[nodiscard]] formed_collective form(const formation& /*how*/) override { return {std::make_unique<twins>(sums_), 1}; }

private:
  int& sums_;
};

}  // namespace stepwell::test
