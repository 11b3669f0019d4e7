// SPDX-License-Identifier: Apache-2.0
#include "stepwell/group/engine.hpp"

namespace stepwell {

namespace {

class single_process final : public collective {
public:
  [[nodiscard]] const std::vector<int>& members() const noexcept override { return members_; }
  void sum(dtype /*type*/, std::span<std::byte> /*elements*/) override {}
  void broadcast(std::span<std::byte> /*bytes*/) override {}
  void abandon(std::string_view /*why*/) noexcept override {}

private:
  std::vector<int> members_{0};
};

class single_process_engine final : public engine {
public:
  [[nodiscard]] std::string_view name() const noexcept override { return "one process"; }
  [[nodiscard]] int rank() const noexcept override { return 0; }
  [[nodiscard]] int size() const noexcept override { return 1; }
  [[nodiscard]] bool can_form_again() const noexcept override { return true; }
  [[nodiscard]] formed_collective form(const formation& how) override {
    return {std::make_unique<single_process>(), how.last_generation + 1};
  }
};

}  // namespace

std::unique_ptr<engine> make_single_process_engine() { return std::make_unique<single_process_engine>(); }

}  // namespace stepwell
