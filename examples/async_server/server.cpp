// SPDX-License-Identifier: Apache-2.0
#include "server.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include <sys/resource.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace async_server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using namespace std::chrono_literals;

constexpr std::size_t most_connections = 100;
constexpr std::size_t kept_descriptors = 32;  // reserved for checkpoints, event files and the event loop
constexpr std::size_t most_header = 8 << 10;
constexpr std::size_t most_body = 16 << 10;
constexpr auto patience = 5s;
constexpr auto first_pause = 10ms;
constexpr auto longest_pause = 1000ms;
constexpr auto awaited = asio::as_tuple(asio::use_awaitable);  // returns failures instead of throwing them

using request = http::request<http::string_body>;
using response = http::response<http::string_body>;

/// A guard that increments a counter for its lifetime.
class counted {
public:
  explicit counted(std::size_t& count) : count_(count) { ++count_; }
  counted(const counted&) = delete;
  counted& operator=(const counted&) = delete;
  ~counted() { --count_; }

private:
  std::size_t& count_;
};

/// A guard that keeps an element in a list for its lifetime.
template<class T>
class listed {
public:
  listed(std::list<T*>& all, T& one) : all_(all), place_(all.insert(all.end(), &one)) {}
  listed(const listed&) = delete;
  listed& operator=(const listed&) = delete;
  ~listed() { all_.erase(place_); }

private:
  std::list<T*>& all_;
  typename std::list<T*>::iterator place_;
};

/// Returns the number of connections that leaves enough descriptors for the rest of the process.
std::size_t connections_allowed() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY) { return most_connections; }
  const auto limit = static_cast<std::size_t>(files.rlim_cur);
  return limit <= kept_descriptors ? 1 : std::min(most_connections, limit - kept_descriptors);
}

/// Returns the HTTP status for a malformed request, or 0 if the connection is closed.
int status_of(const beast::error_code& failure) {
  if (failure == http::error::end_of_stream || failure == http::error::partial_message) { return 0; }
  if (failure == http::error::body_limit) { return 413; }
  if (failure == http::error::header_limit || failure == http::error::buffer_overflow) { return 431; }
  return failure.category() == http::make_error_code(http::error::end_of_stream).category() ? 400 : 0;
}

std::vector<std::string> all_of(const request& asked, http::field name) {
  std::vector<std::string> values;
  for (auto [at, end] = asked.equal_range(name); at != end; ++at) { values.emplace_back(at->value()); }
  return values;
}

question question_of(const request& asked, std::uint16_t port) {
  return {.method = std::string(asked.method_string()),
          .target = std::string(asked.target()),
          .body = asked.body(),
          .port = port,
          .hosts = all_of(asked, http::field::host),
          .origins = all_of(asked, http::field::origin),
          .authorization = std::string(asked[http::field::authorization])};
}

answer answered(const answering& answers, const request& asked, std::uint16_t port) {
  try {
    return answers(question_of(asked, port));
  } catch (const std::exception&) { return {500, R"({"error":"internal error"})"}; }
}

/// Returns true if the body has a transfer coding that the parser does not decode: any other than "chunked".
bool has_unknown_coding(const request& asked) {
  const auto codings = all_of(asked, http::field::transfer_encoding);
  return !codings.empty() && (codings.size() != 1 || !beast::iequals(codings.front(), "chunked"));
}

answer refusal(int status) { return {status, R"({"error":"invalid request"})"}; }

response message(const answer& said, unsigned version, bool keep_alive) {
  response made(static_cast<http::status>(said.status), version);
  made.set(http::field::content_type, "application/json");
  made.keep_alive(keep_alive);
  made.body() = said.json + "\n";
  made.prepare_payload();
  return made;
}

}  // namespace

server::server(asio::io_context& loop, std::uint16_t port, answering answers)
    : acceptor_(loop, tcp::endpoint(asio::ip::address_v4::loopback(), port)), answers_(std::move(answers)),
      most_connections_(connections_allowed()), next_try_(loop), pause_(first_pause) {}

std::uint16_t server::port() const { return acceptor_.local_endpoint().port(); }

void server::start() { asio::co_spawn(acceptor_.get_executor(), accept_all(shared_from_this()), asio::detached); }

void server::stop() {
  is_stopping_ = true;
  acceptor_.close();
  next_try_.cancel();
  for (auto* connection : idle_) { connection->cancel(); }
}

asio::awaitable<void> server::accept_all(std::shared_ptr<server> self) {
  while (!is_stopping_) {
    if (is_full() && idle_.empty()) {
      co_await pause_accepting();
      continue;
    }
    auto [failure, socket] = co_await acceptor_.async_accept(awaited);
    if (is_stopping_) { break; }
    if (failure == asio::error::connection_aborted) { continue; }  // the peer has already closed the connection
    if (failure) {                                                 // descriptors or memory are exhausted
      co_await pause_accepting();
      continue;
    }
    pause_ = first_pause;
    if (is_full()) { close_longest_idle(); }
    asio::co_spawn(acceptor_.get_executor(), talk(self, std::move(socket)), asio::detached);
  }
}

/// Waits. Doubles the next pause, up to the limit.
asio::awaitable<void> server::pause_accepting() {
  next_try_.expires_after(pause_);
  pause_ = std::min<std::chrono::milliseconds>(2 * pause_, longest_pause);
  static_cast<void>(co_await next_try_.async_wait(awaited));
}

bool server::is_full() const noexcept { return open_ >= most_connections_; }

/// Closes the connection. Its coroutine ends with an error soon; until then the connection is at the end of the list.
void server::close_longest_idle() {
  if (idle_.empty()) { return; }
  idle_.front()->close();
  idle_.splice(idle_.end(), idle_, idle_.begin());
}

asio::awaitable<void> server::talk(std::shared_ptr<server> self, tcp::socket socket) {
  const counted one(open_);
  stream connection(std::move(socket));
  beast::flat_buffer unread(most_header + most_body);
  for (bool goes_on = true; goes_on && !is_stopping_;) { goes_on = co_await answer_one(connection, unread); }
  static_cast<void>(self);
}

/// Reads the rest of the peer's data for one second. If the connection were closed at once, the peer would lose the
/// answer.
asio::awaitable<void> server::let_finish(stream& connection) {
  const listed<stream> waits(idle_, connection);
  beast::error_code failure;
  connection.socket().shutdown(tcp::socket::shutdown_send, failure);
  connection.expires_after(1s);
  std::array<char, 4096> rest;
  while (!failure && !is_stopping_) { std::tie(failure, std::ignore) = co_await connection.async_read_some(asio::buffer(rest), awaited); }
}

/// Returns true if the connection may carry another request.
asio::awaitable<bool> server::answer_one(stream& connection, beast::flat_buffer& unread) {
  http::request_parser<http::string_body> parser;
  parser.header_limit(most_header);
  parser.body_limit(most_body);
  beast::error_code failure;
  {
    const listed<stream> waits(idle_, connection);
    connection.expires_after(patience);
    std::tie(failure, std::ignore) = co_await http::async_read(connection, unread, parser, awaited);
  }
  const int refused = failure ? status_of(failure) : has_unknown_coding(parser.get()) ? 501 : 200;
  if (refused == 0) { co_return false; }
  const bool is_question = refused == 200;
  const auto said = is_question ? answered(answers_, parser.get(), connection.socket().local_endpoint(failure).port()) : refusal(refused);
  const bool keep_alive = is_question && parser.get().keep_alive() && !is_stopping_;
  const auto written = message(said, is_question ? parser.get().version() : 11, keep_alive);
  connection.expires_after(patience);
  std::tie(failure, std::ignore) = co_await http::async_write(connection, written, awaited);
  if (!is_question && !failure) { co_await let_finish(connection); }
  co_return keep_alive && !failure;
}

}  // namespace async_server
