// SPDX-License-Identifier: Apache-2.0
#include "stepwell/tensorflow/detail/cluster_tasks.hpp"
#include "stepwell/base/detail/locks.hpp"

#include "stepwell/base/detail/platform.hpp"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell::tensorflow::detail {
namespace {

namespace platform = stepwell::detail::platform;

using std::chrono::milliseconds;
using steady = std::chrono::steady_clock;

constexpr milliseconds patience{1'000};
constexpr std::string_view scheme = "grpc://";
// A client begins a connection of HTTP/2 with these bytes: the preface, and an empty frame of settings.
constexpr std::string_view preface("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);

stepwell::detail::checked_mutex guard;
std::map<std::string, std::string>& tasks_by_address() {
  static std::map<std::string, std::string> all;
  return all;
}

/// A connection to one task, and how far the question has come. If the host has several addresses, they are asked one after the other.
class question {
public:
  question(std::string name, std::string address) : name_(std::move(name)), address_(std::move(address)) {
    is_answered_ = address_.find('/') != std::string::npos;  // another form, such as "dns:///host:port": it cannot be asked
    if (!is_answered_) { find_host(); }
  }
  question(const question&) = delete;
  question& operator=(const question&) = delete;
  ~question() { close(); }

  [[nodiscard]] bool is_open() const noexcept { return socket_ >= 0; }
  [[nodiscard]] bool is_answered() const noexcept { return is_answered_; }
  [[nodiscard]] pollfd wanted() const noexcept { return {socket_, static_cast<short>(is_asked_ ? POLLIN : POLLOUT), 0}; }
  [[nodiscard]] std::string text() const { return name_.empty() ? address_ : name_ + " at " + address_; }

  /// Continues when the socket is ready.
  void proceed() {
    char byte = 0;
    if (is_asked_) {
      is_answered_ = ::recv(socket_, &byte, 1, 0) > 0;
    } else if (platform::send_without_signal(socket_, std::as_bytes(std::span(preface))) == static_cast<ssize_t>(preface.size())) {
      is_asked_ = true;
      return;
    }
    close();
    if (!is_answered_) { connect(); }  // nothing listens there
  }

private:
  void find_host() {
    const auto colon = address_.rfind(':');
    if (colon == std::string::npos) { return; }
    auto host = address_.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) { host = host.substr(1, host.size() - 2); }
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (::getaddrinfo(host.c_str(), address_.c_str() + colon + 1, &hints, &found) != 0) { return; }
    found_.reset(found);
    next_ = found;
    connect();
  }
  void connect() {
    is_asked_ = false;
    while (socket_ < 0 && next_ != nullptr) {
      const auto& to = *std::exchange(next_, next_->ai_next);
      socket_ = platform::open_socket(to.ai_family, SOCK_STREAM, 0, false);
      if (socket_ >= 0 && ::connect(socket_, to.ai_addr, to.ai_addrlen) != 0 && errno != EINPROGRESS) { close(); }
    }
  }
  void close() noexcept {
    if (socket_ >= 0) { ::close(socket_); }
    socket_ = -1;
  }

  std::string name_;
  std::string address_;
  std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> found_{nullptr, &::freeaddrinfo};
  const addrinfo* next_ = nullptr;  // in `found_`
  int socket_ = -1;
  bool is_asked_ = false;
  bool is_answered_ = false;
};

std::vector<std::unique_ptr<question>> questions_to(std::string_view master, const std::set<std::string>* among) {
  std::map<std::string, std::string> tasks;
  {
    const stepwell::detail::mutex_lock lock(guard);
    tasks = tasks_by_address();
  }
  if (among != nullptr) {
    std::erase_if(tasks, [&](const auto& one) { return !among->contains(one.second); });
  }
  if (master.starts_with(scheme)) { tasks.try_emplace(std::string(master.substr(scheme.size()))); }
  std::vector<std::unique_ptr<question>> all;
  for (auto& [address, name] : tasks) { all.push_back(std::make_unique<question>(name, address)); }
  return all;
}

/// Waits until a socket of `all` is ready, or until `end`, and continues with these. Returns false if nothing more can happen.
bool wait_for(const std::vector<std::unique_ptr<question>>& all, steady::time_point end) {
  std::vector<pollfd> sockets;
  std::vector<question*> asked;
  for (const auto& one : all) {
    if (one->is_open()) { sockets.push_back(one->wanted()), asked.push_back(one.get()); }
  }
  const auto left = std::chrono::duration_cast<milliseconds>(end - steady::now());
  if (sockets.empty() || left.count() <= 0) { return false; }
  if (::poll(sockets.data(), sockets.size(), static_cast<int>(left.count())) < 0) { return errno == EINTR; }
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    if (sockets[i].revents != 0) { asked[i]->proceed(); }
  }
  return true;
}

}  // namespace

void add_cluster(const std::map<std::string, std::vector<std::string>>& cluster) {
  const stepwell::detail::mutex_lock lock(guard);
  for (const auto& [job, addresses] : cluster) {
    for (std::size_t i = 0; i < addresses.size(); ++i) { tasks_by_address()[addresses[i]] = "/job:" + job + "/task:" + std::to_string(i); }
  }
}

std::string name_of_task(std::string_view master) {
  if (!master.starts_with(scheme)) { return {}; }
  const stepwell::detail::mutex_lock lock(guard);
  const auto found = tasks_by_address().find(std::string(master.substr(scheme.size())));
  return found == tasks_by_address().end() ? std::string() : found->second;
}

std::vector<std::string> silent_tasks(std::string_view master, milliseconds limit, const std::set<std::string>* among) {
  const auto all = questions_to(master, among);
  const auto end = steady::now() + limit;
  while (wait_for(all, end)) {}
  std::vector<std::string> silent;
  for (const auto& one : all) {
    if (!one->is_answered()) { silent.push_back(one->text()); }
  }
  std::ranges::sort(silent);
  return silent;
}

std::string sentence_about_tasks(std::string_view master, milliseconds limit, const std::set<std::string>* among) {
  std::string names;
  for (const auto& one : silent_tasks(master, std::min(limit, patience), among)) { names.append(names.empty() ? "" : ", ").append(one); }
  return names.empty() ? names : "no answer from " + names;
}

}  // namespace stepwell::tensorflow::detail
