// SPDX-License-Identifier: Apache-2.0
#include "stepwell/torch/detail/tcp_store.hpp"

#include "stepwell/base/detail/failure_text.hpp"
#include "stepwell/base/detail/platform.hpp"
#include "stepwell/base/detail/thread.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"

#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>
#include <array>
#include <cstdint>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

namespace stepwell::libtorch::detail {

std::string text_of_torch(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const c10::Error& failed) { return failed.what_without_backtrace(); } catch (...) {
    return stepwell::detail::text_of(failure);
  }
}

namespace {

const std::string key_prefix = "stepwell/";  // the launcher may use the same store

std::vector<std::uint8_t> bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

/// Connects to `host` and closes the connection. Returns the address of this end. `TCPStore` would wait for a second after a failed attempt.
/// @errors `unavailable_error` if nothing listens there.
std::string address_towards(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int failed = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); failed != 0) {
    throw unavailable_error(c10::str("could not find the host ", host, " of rank 0: ", ::gai_strerror(failed)));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  for (const auto* one = found; one != nullptr; one = one->ai_next) {
    const int socket = stepwell::detail::platform::open_socket(one->ai_family, one->ai_socktype, one->ai_protocol);
    if (socket < 0) { continue; }
    sockaddr_storage self{};
    socklen_t length = sizeof self;
    std::array<char, 128> text{};
    auto* const address = reinterpret_cast<sockaddr*>(&self);
    const bool is_connected = ::connect(socket, one->ai_addr, one->ai_addrlen) == 0 && ::getsockname(socket, address, &length) == 0 &&
                              ::getnameinfo(address, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) == 0;
    ::close(socket);
    if (is_connected) { return text.data(); }
  }
  throw unavailable_error(c10::str("rank 0 of the group cannot be reached at ", host, ":", port));
}

c10::intrusive_ptr<c10d::TCPStore> connected(const std::string& host, int port, bool is_server, std::chrono::milliseconds limit) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(port);
  options.isServer = is_server;
  // A client asks the server something before it opens its second connection. The thread of LibTorch 1.13 for that connection ends the process
  // if the connection is reset, as one is that a killed process has not accepted.
  options.waitWorkers = !is_server;
  options.numWorkers = 1;
  options.timeout = limit;
  return c10::make_intrusive<c10d::TCPStore>(host, options);
}

}  // namespace

tcp_store::tcp_store(std::string host, int port, std::chrono::milliseconds limit, greeting first)
    : host_(std::move(host)), port_(port), limit_(limit), first_(std::move(first)) {}

/// The server of LibTorch 1.13 ends only when all of its connections are idle.
tcp_store::~tcp_store() {
  client_.reset();
  if (!server_) { return; }
  static_cast<void>(stepwell::detail::ends_within(limit_, "the end of the store of a group",
                                                  [server = std::move(server_)]() mutable { server.reset(); }));
}

void tcp_store::serve() {
  if (server_) { return; }
  struct outcome {
    c10::intrusive_ptr<c10d::TCPStore> server;
    std::string failure;
  };
  const auto made = std::make_shared<outcome>();
  const bool has_ended =
      stepwell::detail::ends_within(limit_, "the start of the store of a group", [made, host = host_, port = port_, limit = limit_] {
        try {
          made->server = connected(host, port, true, limit);
        } catch (...) { made->failure = text_of_torch(std::current_exception()); }
      });
  if (!has_ended || !made->server) {
    throw unavailable_error(c10::str("rank 0 could not serve the store of the group at ", host_, ":", port_,
                                     " (MASTER_ADDR, MASTER_PORT): ", has_ended ? made->failure : "the address does not answer"));
  }
  server_ = made->server;
}

/// Calls `act` in a thread of its own, connected to the server.
std::optional<std::string> tcp_store::call(std::string_view tried, action act) {
  struct outcome {
    c10::intrusive_ptr<c10d::TCPStore> client;
    std::string own_address;
    std::optional<std::string> value;
    std::string failure;
  };
  const auto done = std::make_shared<outcome>();
  done->client = std::exchange(client_, {});
  const auto run = [done, act = std::move(act), host = host_, port = port_, limit = limit_, first = first_] {
    try {
      if (!done->client) {
        done->own_address = address_towards(host, port);
        done->client = connected(host, port, false, limit);
        done->client->set(key_prefix + first.key, bytes_of(first.value));
      }
      done->value = act(*done->client);
    } catch (...) { done->failure = text_of_torch(std::current_exception()); }
  };
  const auto tried_where = c10::str("could not ", tried, " the store of the group at ", host_, ":", port_);
  if (!stepwell::detail::ends_within(limit_, "a call of the store of a group", run)) {
    throw unavailable_error(c10::str(tried_where, ": no answer within ", limit_.count(), " ms"));
  }
  if (!done->failure.empty()) {
    if (std::exchange(logged_, done->failure) != done->failure) { log_info(c10::str(tried_where, ": ", done->failure)); }
    throw unavailable_error(c10::str(tried_where, ": ", done->failure));
  }
  client_ = done->client;
  if (!done->own_address.empty()) { own_address_ = done->own_address; }
  return std::move(done->value);
}

void tcp_store::set(const std::string& key, const std::string& value) {
  call("write to", [key, value](c10d::TCPStore& store) -> std::optional<std::string> {
    store.set(key_prefix + key, bytes_of(value));
    return std::nullopt;
  });
}

std::optional<std::string> tcp_store::get(const std::string& key) {
  return call("read from", [key](c10d::TCPStore& store) -> std::optional<std::string> {
    // `TCPStore::get` waits for the key. A comparison with another text than any value returns at once.
    const auto absent = bytes_of("\x01");
    const auto bytes = store.compareSet(key_prefix + key, absent, absent);
    if (bytes == absent) { return std::nullopt; }
    return std::string(bytes.begin(), bytes.end());
  });
}

std::optional<std::string> tcp_store::compare_set(const std::string& key, const std::optional<std::string>& expected,
                                                  const std::string& desired) {
  return call("write to", [key, expected, desired](c10d::TCPStore& store) -> std::optional<std::string> {
    const auto bytes = store.compareSet(key_prefix + key, bytes_of(expected.value_or("")), bytes_of(desired));
    std::string value(bytes.begin(), bytes.end());
    // A store without the key returns the expected value, although it did not set the key.
    if (value.empty() || (value == expected && value != desired)) { return std::nullopt; }
    return value;
  });
}

c10::intrusive_ptr<c10d::Store> tcp_store::new_client() const { return connected(host_, port_, false, limit_); }

const std::string& tcp_store::own_address() const {
  if (own_address_.empty()) { throw unavailable_error(c10::str("rank 0 of the group cannot be reached at ", host_, ":", port_)); }
  return own_address_;
}

}  // namespace stepwell::libtorch::detail
