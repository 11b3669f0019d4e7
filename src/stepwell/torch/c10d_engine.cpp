// SPDX-License-Identifier: Apache-2.0
#include "stepwell/torch/detail/c10d_engine.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/group/detail/formation_wait.hpp"
#include "stepwell/group/detail/group_store.hpp"
#include "stepwell/torch/detail/gloo.hpp"
#include "stepwell/torch/detail/tcp_store.hpp"

#include <ATen/ATen.h>
#include <c10/util/StringUtil.h>
#include <torch/version.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#ifdef STEPWELL_WITH_NCCL  // this part has been compiled, but never run
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

#include <arpa/inet.h>
#include <netinet/in.h>
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// Keys in the store besides those of `agree_on_formation`:
//   process/RANK      the identity of the newest process of this rank; each connection sets it first
//   nccl/NAME/...     the addresses for sums on GPUs, if this library is built with NCCL; they are not removed
// Values of a formation:
//   failed            set if a process could not connect to the others
//   gloo/...          the addresses of the processes

namespace stepwell::libtorch::detail {

namespace {

std::string process_key(int rank) { return c10::str("process/", rank); }
constexpr const char* failed_key = "failed";

/// The addresses of a formation, for Gloo. A wait for an address ends as soon as its process cannot provide it any more.
class address_store final : public c10d::Store {
public:
  address_store(tcp_store& store, const agreed_formation& agreed, const formation& how)
      : store_(&store), values_of_formation_(store, agreed.name), agreed_(agreed), how_(how) {}

  /// Forbids further calls: they would refer to the arguments of the constructor.
  void close() { store_ = nullptr; }

  /// Returns the member whose address is the first one in `text`, if any.
  [[nodiscard]] const group_member* member_at_address_in(std::string_view text) const;
  [[nodiscard]] const std::vector<group_member>& members() const { return agreed_.members; }

  void set(const std::string& key, const std::vector<std::uint8_t>& value) override {
    auto& own = values_[key].assign(value.begin(), value.end());
    if (!open().set(full(key), own)) { throw_superseded(); }
  }
  std::vector<std::uint8_t> get(const std::string& key) override {
    const auto& value = awaited(key, how_.until);
    return {value.begin(), value.end()};
  }
  bool check(const std::vector<std::string>& keys) override {
    return std::ranges::all_of(keys, [&](const auto& key) { return open().get(full(key)).has_value(); });
  }
  void wait(const std::vector<std::string>& keys) override { wait(keys, getTimeout()); }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override {
    const auto now = how_.time.now();
    for (const auto& key : keys) { awaited(key, timeout < how_.until - now ? now + timeout : how_.until); }
  }
  std::int64_t add(const std::string& key, std::int64_t /*value*/) override { unexpected("add", key); }
  bool deleteKey(const std::string& key) override { unexpected("deleteKey", key); }
  std::int64_t getNumKeys() override { unexpected("getNumKeys", ""); }
#if TORCH_VERSION_MAJOR >= 2
  c10::intrusive_ptr<c10d::Store> clone()
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 10
      override
#endif
  {
    unexpected("clone", "");
  }
#endif

private:
  [[noreturn]] static void unexpected(const char* what, const std::string& key) {
    throw internal_error(c10::str("Gloo calls ", what, "(", key, ") of the store; this version of LibTorch is not supported"));
  }
  [[noreturn]] static void throw_superseded() { throw unavailable_error("the group is formed anew"); }
  [[nodiscard]] formation_values& open() {
    if (store_ == nullptr) { unexpected("a function", ""); }
    return values_of_formation_;
  }
  [[nodiscard]] static std::string full(const std::string& key) { return "gloo/" + key; }

  const std::string& awaited(const std::string& key, clock::time_point until) {
    stepwell::detail::formation_wait wait(how_);
    while (!values_.contains(key)) {
      if (auto value = open().get(full(key))) {
        values_[key] = *std::move(value);
        break;
      }
      check_members();
      if (how_.time.now() >= until) { throw unavailable_error(c10::str("a process of the group has not sent its address (", key, ")")); }
      wait.pause([] { return std::string("the address of another process of the group"); });
    }
    return values_.at(key);
  }

  /// @errors `unavailable_error` if this formation cannot succeed.
  void check_members() {
    if (open().get(failed_key)) { throw unavailable_error("another process of the group could not connect to all processes"); }
    if (!open().is_newest()) { throw_superseded(); }
    for (const auto& member : agreed_.members) {
      const auto newest = store_->get(process_key(member.rank));
      if (newest && *newest != member.identity) {
        throw unavailable_error(c10::str("rank ", member.rank, " of the group was replaced by the process ", *newest));
      }
    }
  }

  tcp_store* store_;
  formation_values values_of_formation_;
  agreed_formation agreed_;
  const formation& how_;
  std::map<std::string, std::string> values_;
};

/// Returns the bytes of the socket address that `text` names, such as "[127.0.0.1]:5000". Empty if there is none.
std::string socket_address_in(std::string_view text) {
  const auto begin = text.find('[', text.rfind('['));
  const auto end = text.find("]:", std::min(begin, text.size()));
  if (end == std::string_view::npos) { return {}; }
  const std::string host(text.substr(begin + 1, end - begin - 1));
  const int port = std::atoi(std::string(text.substr(end + 2)).c_str());  // 0 if there is no number; such an address is not found
  std::string bytes;
  const auto append = [&](const auto& value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); };
  in_addr four{};
  in6_addr six{};
  const bool is_six = ::inet_pton(AF_INET6, host.c_str(), &six) == 1;
  if (!is_six && ::inet_pton(AF_INET, host.c_str(), &four) != 1) { return {}; }
  append(static_cast<sa_family_t>(is_six ? AF_INET6 : AF_INET));
  append(htons(static_cast<std::uint16_t>(port)));
  if (!is_six) {
    append(four);
    return bytes;
  }
  append(std::uint32_t{0});  // the flow
  append(six);
  return bytes;
}

const group_member* address_store::member_at_address_in(std::string_view text) const {
  const auto address = socket_address_in(text);
  if (address.empty()) { return nullptr; }
  for (const auto& [key, value] : values_) {
    if (value.find(address) == std::string::npos) { continue; }
    const auto place = static_cast<std::size_t>(std::atoi(key.substr(key.rfind('/') + 1).c_str()));
    if (place < agreed_.members.size()) { return &agreed_.members[place]; }
  }
  return nullptr;
}

std::optional<at::ScalarType> summable(dtype type) {
  switch (type) {
    case dtype::float32: return at::kFloat;
    case dtype::float64: return at::kDouble;
    case dtype::half: return at::kHalf;
#if TORCH_VERSION_MAJOR >= 2
    case dtype::bfloat16: return at::kBFloat16;
#endif
    case dtype::int64: return at::kLong;
    case dtype::int32: return at::kInt;
    case dtype::int8: return at::kChar;
    case dtype::uint8: return at::kByte;
    default: return std::nullopt;
  }
}

#ifdef STEPWELL_WITH_NCCL
using gpu_process_group = c10d::ProcessGroupNCCL;
#else
using gpu_process_group = c10d::ProcessGroupGloo;  // never made
#endif

class c10d_collective final : public collective {
public:
  /// `group` is null if there is one process. `gpus` adds on GPUs, and is null if this is not possible.
  c10d_collective(c10::intrusive_ptr<c10d::ProcessGroupGloo> group, c10::intrusive_ptr<gpu_process_group> gpus,
                  c10::intrusive_ptr<address_store> addresses, int place)
      : group_(std::move(group)), gpus_(std::move(gpus)), addresses_(std::move(addresses)), place_(static_cast<std::size_t>(place)) {
    for (const auto& member : addresses_->members()) { ranks_.push_back(member.rank); }
  }

  [[nodiscard]] const std::vector<int>& members() const noexcept override { return ranks_; }

  void sum(dtype type, std::span<std::byte> elements) override {
    run("sum", group_, summed(type, at::kCPU), elements, [](auto& group, auto& tensors) { return group.allreduce(tensors); });
  }

  void broadcast(std::span<std::byte> bytes) override {
    run("broadcast", group_, at::TensorOptions(at::kByte), bytes, [](auto& group, auto& tensors) { return group.broadcast(tensors); });
  }

  [[nodiscard]] bool adds_on_gpu() const noexcept override { return gpus_ != nullptr; }
  void sum_on_gpu(dtype type, std::span<std::byte> elements) override {
    run("sum on the GPU", gpus_, summed(type, at::kCUDA), elements, [](auto& group, auto& tensors) { return group.allreduce(tensors); });
  }

  void abandon(std::string_view /*why*/) noexcept override {
    const std::lock_guard lock(mutex_);
#ifdef STEPWELL_WITH_NCCL
    if (gpus_) { gpus_->abort(); }
#endif
    gpus_.reset();
    group_.reset();  // closes the connections, so that the others fail
  }

private:
  static at::TensorOptions summed(dtype type, at::DeviceType where) {
    const auto torch_type = summable(type);
    if (!torch_type) { throw unimplemented_error(c10::str("c10d cannot add elements of type ", to_string(type))); }
    return at::TensorOptions(*torch_type).device(where);
  }

  template<class Group, class Operation>
  void run(std::string_view tried, const c10::intrusive_ptr<Group>& group, const at::TensorOptions& options, std::span<std::byte> elements,
           Operation operation) {
    if (ranks_.size() == 1 || elements.empty()) { return; }
    const std::lock_guard lock(mutex_);
    if (!group) { throw unavailable_error(c10::str("cannot ", tried, ": the connections to the other processes were closed")); }
    try {
      std::vector<at::Tensor> tensors{
          at::from_blob(elements.data(), {static_cast<std::int64_t>(elements.size() / options.dtype().itemsize())}, options)};
      operation(*group, tensors)->wait();
    } catch (...) {
      const auto text = text_of_torch(std::current_exception());
      throw unavailable_error(c10::str("could not ", tried, ": ", lost(text), " or does not answer: ", text));
    }
  }

  /// Returns the part of a sentence that names the lost process, or all that may be lost.
  [[nodiscard]] std::string lost(std::string_view text) const {
    const auto& members = addresses_->members();
    if (const auto* found = addresses_->member_at_address_in(text)) {
      return c10::str("rank ", found->rank, " of the group, process ", found->identity, ", is lost");
    }
    std::string others;
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (i != place_) { others += c10::str(others.empty() ? "rank " : ", ", members[i].rank, " (", members[i].identity, ")"); }
    }
    return c10::str(members.size() > 2 ? "one of " : "", others, " of the group is lost");
  }

  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
  c10::intrusive_ptr<gpu_process_group> gpus_;
  c10::intrusive_ptr<address_store> addresses_;
  std::size_t place_;
  std::vector<int> ranks_;
  std::mutex mutex_;  // guards both groups
};

class c10d_engine final : public engine {
public:
  c10d_engine(const launched_process& self, std::chrono::milliseconds timeout)
      : self_{self.rank, self.size, make_identity()}, timeout_(timeout), serves_store_(self.rank == 0 && !self.has_store),
        store_(self.host, self.port, std::min<std::chrono::milliseconds>(timeout, std::chrono::seconds(5)),
               {process_key(self.rank), self_.identity}) {}

  [[nodiscard]] std::string_view name() const noexcept override { return "c10d"; }
  [[nodiscard]] int rank() const noexcept override { return self_.rank; }
  [[nodiscard]] int size() const noexcept override { return self_.size; }
  [[nodiscard]] bool can_form_again() const noexcept override { return true; }

  [[nodiscard]] formed_collective form(const formation& how) override {
    serve_store(how);
    auto attempt = how;
    for (;;) {
      announce_identity();
      const auto agreed = agree_on_formation(store_, self_, attempt);
      try {
        return {connected(agreed, attempt), agreed.generation, agreed.ended};
      } catch (const unavailable_error& failed) {
        log_info(c10::str("generation ", agreed.generation, " of the group has failed before its first operation: ", failed.what()));
        report_failure(agreed);
      }
      attempt.last_generation = agreed.generation;
    }
  }

  void announce_end(std::int64_t cause) override { stepwell::announce_end(store_, self_.rank, cause); }

private:
  /// Starts the store, and waits for the port while a former process of this rank still has it.
  void serve_store(const formation& how) {
    stepwell::detail::formation_wait wait(how);
    bool is_logged = false;
    while (serves_store_) {
      try {
        return store_.serve();
      } catch (const unavailable_error& failed) {
        if (!std::exchange(is_logged, true)) { log_info(failed.what()); }
        wait.pause([&] { return c10::str("the store of rank 0: ", failed.what()); });
      }
    }
  }

  [[nodiscard]] std::unique_ptr<collective> connected(const agreed_formation& agreed, const formation& how) {
    auto addresses = c10::make_intrusive<address_store>(store_, agreed, how);
    c10::intrusive_ptr<c10d::ProcessGroupGloo> group;
    c10::intrusive_ptr<gpu_process_group> gpus;
    if (agreed.members.size() > 1) {
      try {
        const auto options = c10d::ProcessGroupGloo::Options::create(timeout_);
        options->devices = {device()};
        options->threads = 1;  // one operation at a time
        group = c10::make_intrusive<c10d::ProcessGroupGloo>(addresses, agreed.place, static_cast<int>(agreed.members.size()), options);
        gpus = connected_gpus(agreed);
      } catch (const stepwell::error&) { throw; } catch (...) {
        throw unavailable_error(c10::str("could not connect the processes of the group: ", text_of_torch(std::current_exception())));
      }
    }
    addresses->close();
    return std::make_unique<c10d_collective>(std::move(group), std::move(gpus), std::move(addresses), agreed.place);
  }

  /// Returns a group that adds on the GPUs. Null if this process has no GPU. NCCL connects at the first sum.
  [[nodiscard]] c10::intrusive_ptr<gpu_process_group> connected_gpus([[maybe_unused]] const agreed_formation& agreed) const {
#ifdef STEPWELL_WITH_NCCL
    if (!at::cuda::is_available()) { return {}; }
    ::setenv("NCCL_BLOCKING_WAIT", "1", 0);  // NOLINT(concurrency-mt-unsafe) otherwise a loss ends the process
    const auto options = c10d::ProcessGroupNCCL::Options::create();
    options->timeout = timeout_;
    auto addresses = c10::make_intrusive<c10d::PrefixStore>(c10::str("stepwell/nccl/", agreed.name), store_.new_client());
    return c10::make_intrusive<c10d::ProcessGroupNCCL>(addresses, agreed.place, static_cast<int>(agreed.members.size()), options);
#else
    return {};
#endif
  }

  [[nodiscard]] std::shared_ptr<::gloo::transport::Device> device() const {
    const char* interface = std::getenv("GLOO_SOCKET_IFNAME");  // NOLINT(concurrency-mt-unsafe)
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 8)
    constexpr bool is_lazy = false;
    if (interface != nullptr) { return c10d::ProcessGroupGloo::createDeviceForInterface(interface, is_lazy); }
    return c10d::ProcessGroupGloo::createDeviceForHostname(store_.own_address(), is_lazy);
#else
    if (interface != nullptr) { return c10d::ProcessGroupGloo::createDeviceForInterface(interface); }
    return c10d::ProcessGroupGloo::createDeviceForHostname(store_.own_address());
#endif
  }

  /// A former process of this rank that continues may have set the key after this process.
  void announce_identity() {
    try {
      store_.set(process_key(self_.rank), self_.identity);
    } catch (const unavailable_error&) { return; }  // the next connection sets it
  }

  void report_failure(const agreed_formation& agreed) {
    try {
      formation_values(store_, agreed.name).set(failed_key, self_.identity);
    } catch (const unavailable_error&) { return; }  // the next connection finds an empty store
  }

  store_identity self_;
  std::chrono::milliseconds timeout_;
  bool serves_store_;
  tcp_store store_;
};

}  // namespace

std::unique_ptr<engine> make_c10d_engine(const launched_process& self, std::chrono::milliseconds timeout) {
  return std::make_unique<c10d_engine>(self, timeout);
}

}  // namespace stepwell::libtorch::detail
