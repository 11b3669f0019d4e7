// SPDX-License-Identifier: Apache-2.0
#include "server.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include <array>
#include <chrono>
#include <exception>
#include <string>
#include <tuple>
#include <utility>

namespace async_server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using namespace std::chrono_literals;

constexpr std::size_t most_connections = 100;
constexpr std::size_t most_header = 8 << 10;
constexpr std::size_t most_body = 16 << 10;
constexpr auto patience = 10s;
constexpr auto awaited = asio::as_tuple(asio::use_awaitable);  // failures are values

using request = http::request<http::string_body>;
using response = http::response<http::string_body>;

/// Counts something for as long as it lives.
class counted {
public:
  explicit counted(std::size_t& count) : count_(count) { ++count_; }
  counted(const counted&) = delete;
  counted& operator=(const counted&) = delete;
  ~counted() { --count_; }

private:
  std::size_t& count_;
};

/// An element of a set for as long as it lives.
template<class T>
class listed {
public:
  listed(std::set<T*>& all, T& one) : all_(all), one_(one) { all_.insert(&one_); }
  listed(const listed&) = delete;
  listed& operator=(const listed&) = delete;
  ~listed() { all_.erase(&one_); }

private:
  std::set<T*>& all_;
  T& one_;
};

/// The status for what came and was no request; 0 where nobody is there to be told.
int status_of(const beast::error_code& failure) {
  if (failure == http::error::end_of_stream || failure == http::error::partial_message) { return 0; }
  if (failure == http::error::body_limit) { return 413; }
  if (failure == http::error::header_limit || failure == http::error::buffer_overflow) { return 431; }
  return failure.category() == http::make_error_code(http::error::end_of_stream).category() ? 400 : 0;
}

answer answered(const answering& answers, const request& asked) {
  try {
    return answers({std::string(asked.method_string()), std::string(asked.target()), asked.body()});
  } catch (const std::exception&) { return {500, R"({"error":"this should not have happened"})"}; }
}

answer refusal(int status) { return {status, R"({"error":"this is no request that can be answered"})"}; }

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
    : acceptor_(loop, tcp::endpoint(asio::ip::address_v4::loopback(), port)), answers_(std::move(answers)) {}

std::uint16_t server::port() const { return acceptor_.local_endpoint().port(); }

void server::start() { asio::co_spawn(acceptor_.get_executor(), accept_all(shared_from_this()), asio::detached); }

void server::stop() {
  is_stopping_ = true;
  acceptor_.close();
  for (auto* connection : waiting_) { connection->cancel(); }
}

asio::awaitable<void> server::accept_all(std::shared_ptr<server> self) {
  asio::steady_timer pause(acceptor_.get_executor());
  while (!is_stopping_) {
    auto [failure, socket] = co_await acceptor_.async_accept(awaited);
    if (failure && !is_stopping_) {  // too many open files, perhaps
      pause.expires_after(100ms);
      static_cast<void>(co_await pause.async_wait(awaited));
    } else if (!failure && open_ < most_connections) {
      asio::co_spawn(acceptor_.get_executor(), talk(self, std::move(socket)), asio::detached);
    }
  }
}

asio::awaitable<void> server::talk(std::shared_ptr<server> self, tcp::socket socket) {
  const counted one(open_);
  stream connection(std::move(socket));
  beast::flat_buffer unread(most_header + most_body);
  for (bool goes_on = true; goes_on && !is_stopping_;) { goes_on = co_await answer_one(connection, unread); }
  static_cast<void>(self);
}

/// Whoever is still sending would lose the answer with the connection: let him finish, but not for ever.
asio::awaitable<void> server::let_finish(stream& connection) {
  const listed<stream> waits(waiting_, connection);
  beast::error_code failure;
  connection.socket().shutdown(tcp::socket::shutdown_send, failure);
  connection.expires_after(1s);
  std::array<char, 4096> rest;
  while (!failure && !is_stopping_) { std::tie(failure, std::ignore) = co_await connection.async_read_some(asio::buffer(rest), awaited); }
}

/// Whether there may be another.
asio::awaitable<bool> server::answer_one(stream& connection, beast::flat_buffer& unread) {
  http::request_parser<http::string_body> parser;
  parser.header_limit(most_header);
  parser.body_limit(most_body);
  beast::error_code failure;
  {
    const listed<stream> waits(waiting_, connection);
    connection.expires_after(patience);
    std::tie(failure, std::ignore) = co_await http::async_read(connection, unread, parser, awaited);
  }
  const int refused = failure ? status_of(failure) : 200;
  if (refused == 0) { co_return false; }
  const bool is_question = refused == 200;
  const auto said = is_question ? answered(answers_, parser.get()) : refusal(refused);
  const bool keep_alive = is_question && parser.get().keep_alive() && !is_stopping_;
  const auto written = message(said, is_question ? parser.get().version() : 11, keep_alive);
  connection.expires_after(patience);
  std::tie(failure, std::ignore) = co_await http::async_write(connection, written, awaited);
  if (!is_question && !failure) { co_await let_finish(connection); }
  co_return keep_alive && !failure;
}

}  // namespace async_server
