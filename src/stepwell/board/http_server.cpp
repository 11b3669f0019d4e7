// SPDX-License-Identifier: Apache-2.0
#include "stepwell/board/http_server.hpp"

#include "stepwell/base/error.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#if STEPWELL_BOARD_TLS
#include <boost/asio/ssl.hpp>
#endif
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

#include <sys/resource.h>
#include <algorithm>
#include <array>
#include <exception>
#include <list>
#include <sstream>
#include <tuple>
#include <utility>
#include <vector>

namespace stepwell::board {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using namespace std::chrono_literals;

constexpr std::size_t kept_descriptors = 32;  // reserved for checkpoints, event files and the event loop
constexpr auto first_pause = 10ms;
constexpr auto longest_pause = 1000ms;
constexpr auto longest_silence = 10s;                          // of a stream
constexpr auto awaited = asio::as_tuple(asio::use_awaitable);  // returns failures instead of throwing them

using parser_type = http::request_parser<http::string_body>;
using message_type = http::request<http::string_body>;
using response_type = http::response<http::string_body>;
using tcp_stream = beast::tcp_stream;
#if STEPWELL_BOARD_TLS
using tls_stream = asio::ssl::stream<tcp_stream>;
using tls_context = asio::ssl::context;
#else
struct tls_context {};
#endif

void set_limits(parser_type& parser, const server_options& options) {
  parser.header_limit(static_cast<std::uint32_t>(options.max_header_bytes));
  parser.body_limit(options.max_body_bytes);
}

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

std::size_t connections_allowed(std::size_t most) {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY) { return most; }
  const auto limit = static_cast<std::size_t>(files.rlim_cur);
  return limit <= kept_descriptors ? 1 : std::min(most, limit - kept_descriptors);
}

/// Returns the HTTP status for a malformed request, or 0 if the connection is closed.
int status_of(const beast::error_code& failure) {
  if (failure == http::error::end_of_stream || failure == http::error::partial_message) { return 0; }
  if (failure == http::error::body_limit) { return 413; }
  if (failure == http::error::header_limit || failure == http::error::buffer_overflow) { return 431; }
  return failure.category() == http::make_error_code(http::error::end_of_stream).category() ? 400 : 0;
}

std::vector<std::string> all_of(const message_type& asked, http::field name) {
  std::vector<std::string> values;
  for (auto [at, end] = asked.equal_range(name); at != end; ++at) { values.emplace_back(at->value()); }
  return values;
}

request request_of(const message_type& asked, const tcp::endpoint& here) {
  return {.method = std::string(asked.method_string()),
          .target = std::string(asked.target()),
          .body = asked.body(),
          .address = here.address().to_string(),
          .port = here.port(),
          .hosts = all_of(asked, http::field::host),
          .origins = all_of(asked, http::field::origin),
          .authorization = std::string(asked[http::field::authorization]),
          .content_type = std::string(asked[http::field::content_type]),
          .last_event_id = std::string(asked["Last-Event-ID"])};
}

/// Returns true if the body has a transfer coding that the parser does not decode: any other than "chunked".
bool has_unknown_coding(const message_type& asked) {
  const auto codings = all_of(asked, http::field::transfer_encoding);
  return !codings.empty() && (codings.size() != 1 || !beast::iequals(codings.front(), "chunked"));
}

/// Returns the answer to a request that was read, or could not be read because of `failure`. Nothing if the connection is to be closed.
/// `is_good` is set to true if the connection may carry another request.
std::optional<answer> answer_of(const beast::error_code& failure, const parser_type& parser, const tcp::endpoint& here,
                                const answering& answers, bool& is_good) {
  const int refused = failure ? status_of(failure) : has_unknown_coding(parser.get()) ? 501 : 200;
  is_good = refused == 200;
  if (refused == 0) { return std::nullopt; }
  if (!is_good) { return refusal(refused, "invalid request"); }
  try {
    return answers(request_of(parser.get(), here));
  } catch (const std::exception&) { return refusal(500, "internal error"); }
}

void set_headers(auto& made, const answer& said) {
  made.set(http::field::content_type, said.events ? "text/event-stream" : said.content_type);
  made.set(http::field::cache_control, "no-store");
  made.set("X-Content-Type-Options", "nosniff");
  made.set("Referrer-Policy", "no-referrer");
  made.set("Cross-Origin-Resource-Policy", "same-origin");
  made.set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
  for (const auto& [name, value] : said.headers) { made.set(name, value); }
}

response_type message(answer&& said, unsigned version, bool keep_alive) {
  response_type made(static_cast<http::status>(said.status), version);
  set_headers(made, said);
  made.keep_alive(keep_alive);
  made.body() = std::move(said.body);
  if (said.content_type == "application/json") { made.body() += "\n"; }
  made.prepare_payload();
  return made;
}

/// Returns the header of a stream of events. The stream ends with the connection.
std::string header_of_stream(const answer& said) {
  http::response<http::empty_body> made(http::status::ok, 11);
  set_headers(made, said);
  made.keep_alive(false);
  std::ostringstream text;
  text << made.base();
  return std::move(text).str();
}

asio::ip::address address_of(const std::string& text) {
  beast::error_code failure;
  const auto address = asio::ip::make_address(text, failure);
  if (failure) { throw invalid_argument_error("\"" + text + "\" is not an IP address, e.g. 127.0.0.1"); }
  return address;
}

/// Returns the context with the certificate. Null: HTTP.
std::unique_ptr<tls_context> make_tls_context(const server_options& options) {
  const auto& [certificate, key] = std::tie(options.certificate_file, options.private_key_file);
  if (certificate.empty() && key.empty()) { return nullptr; }
  if (certificate.empty() || key.empty()) {
    throw invalid_argument_error("HTTPS needs both certificate_file and private_key_file; only one of them is given");
  }
#if STEPWELL_BOARD_TLS
  auto made = std::make_unique<tls_context>(tls_context::tls_server);
  made->set_options(tls_context::default_workarounds | tls_context::no_sslv2 | tls_context::no_sslv3 | tls_context::no_tlsv1 |
                    tls_context::no_tlsv1_1 | tls_context::no_compression);
  const auto check = [](const beast::error_code& failure, std::string_view what, const std::string& path) {
    if (failure) { throw invalid_argument_error("HTTPS: the " + std::string(what) + " cannot be used: " + failure.message(), path); }
  };
  beast::error_code failure;
  check(made->use_certificate_chain_file(certificate, failure), "certificate", certificate);
  check(made->use_private_key_file(key, tls_context::pem, failure), "private key", key);
  return made;
#else
  throw unimplemented_error("HTTPS: this library was built without OpenSSL; build it with STEPWELL_BOARD_TLS=ON");
#endif
}

/// Ends the sending side of a connection.
asio::awaitable<void> end_sending(tcp_stream& connection) {
  beast::error_code ignored;
  static_cast<void>(connection.socket().shutdown(tcp::socket::shutdown_send, ignored));
  co_return;
}
#if STEPWELL_BOARD_TLS
asio::awaitable<void> end_sending(tls_stream& connection) {
  beast::get_lowest_layer(connection).expires_after(1s);
  static_cast<void>(co_await connection.async_shutdown(awaited));
}
#endif

}  // namespace

/// The state of a server. Each connection holds a reference to it.
struct http_server::core : std::enable_shared_from_this<core> {
  core(asio::io_context& loop, const server_options& given, answering given_answers)
      : options(given), tls(make_tls_context(given)), acceptor(loop, {address_of(given.address), given.port}),
        port(acceptor.local_endpoint().port()), answers(std::move(given_answers)),
        most_connections(connections_allowed(given.max_connections)), next_try(loop) {}

  asio::awaitable<void> accept_all(std::shared_ptr<core> self);
  asio::awaitable<void> wait_for_place();
  asio::awaitable<void> pause_accepting();
  asio::awaitable<void> talk(std::shared_ptr<core> self, tcp::socket socket);
  template<class Stream>
  asio::awaitable<void> answer_all(Stream& connection);
  template<class Stream>
  asio::awaitable<bool> answer_one(Stream& connection, beast::flat_buffer& unread);
  template<class Stream>
  asio::awaitable<void> send_events(Stream& connection, const answer& said);
  template<class Stream>
  asio::awaitable<void> let_finish(Stream& connection);

  [[nodiscard]] bool is_full() const noexcept { return open >= most_connections; }

  /// Closes the connection. Its coroutine ends with an error soon; until then the connection is at the end of the list.
  void close_longest_idle() {
    if (idle.empty()) { return; }
    idle.front()->close();
    idle.splice(idle.end(), idle, idle.begin());
  }

  void stop() {
    if (std::exchange(is_stopping, true)) { return; }
    beast::error_code ignored;
    static_cast<void>(acceptor.close(ignored));
    next_try.cancel();
    for (auto* connection : idle) { connection->cancel(); }
    for (auto* timer : pauses) { timer->cancel(); }
  }

  const server_options options;
  const std::unique_ptr<tls_context> tls;  // null: HTTP
  tcp::acceptor acceptor;
  const std::uint16_t port;
  answering answers;
  const std::size_t most_connections;
  std::size_t open = 0;
  std::size_t streams = 0;
  std::list<tcp_stream*> idle;            // connections that wait for a request or its rest; the longest idle first
  std::list<asio::steady_timer*> pauses;  // of streams
  asio::steady_timer next_try;
  std::chrono::milliseconds pause = first_pause;
  bool is_stopping = false;
};

asio::awaitable<void> http_server::core::accept_all(std::shared_ptr<core> self) {
  while (!is_stopping) {
    co_await wait_for_place();
    if (is_stopping) { break; }
    auto [failure, socket] = co_await acceptor.async_accept(awaited);
    if (is_stopping) { break; }
    if (failure == asio::error::connection_aborted) { continue; }  // the peer has already closed the connection
    if (failure) {                                                 // descriptors or memory are exhausted
      co_await pause_accepting();
      continue;
    }
    pause = first_pause;
    co_await wait_for_place();  // the connections may all have become busy since
    if (is_stopping) { break; }
    if (is_full()) { close_longest_idle(); }
    asio::co_spawn(acceptor.get_executor(), talk(self, std::move(socket)), asio::detached);
  }
}

/// Waits while as many connections as allowed are open, and all of them are busy.
asio::awaitable<void> http_server::core::wait_for_place() {
  while (is_full() && idle.empty() && !is_stopping) { co_await pause_accepting(); }
}

/// Waits. Doubles the next pause, up to the limit.
asio::awaitable<void> http_server::core::pause_accepting() {
  next_try.expires_after(pause);
  pause = std::min<std::chrono::milliseconds>(2 * pause, longest_pause);
  static_cast<void>(co_await next_try.async_wait(awaited));
}

asio::awaitable<void> http_server::core::talk(std::shared_ptr<core> self, tcp::socket socket) {
  const counted one(open);
  tcp_stream connection(std::move(socket));
#if STEPWELL_BOARD_TLS
  if (tls) {
    tls_stream secured(std::move(connection), *tls);
    beast::error_code failure;
    {
      const listed<tcp_stream> waits(idle, secured.next_layer());
      secured.next_layer().expires_after(options.patience);
      std::tie(failure) = co_await secured.async_handshake(asio::ssl::stream_base::server, awaited);
    }
    if (!failure) { co_await answer_all(secured); }
    co_return;
  }
#endif
  co_await answer_all(connection);
  static_cast<void>(self);
}

template<class Stream>
asio::awaitable<void> http_server::core::answer_all(Stream& connection) {
  beast::flat_buffer unread(options.max_header_bytes + options.max_body_bytes);
  for (bool goes_on = true; goes_on && !is_stopping;) { goes_on = co_await answer_one(connection, unread); }
}

/// Reads the rest of the peer's data for one second. If the connection were closed at once, the peer would lose the answer.
template<class Stream>
asio::awaitable<void> http_server::core::let_finish(Stream& connection) {
  auto& socket = beast::get_lowest_layer(connection);
  const listed<tcp_stream> waits(idle, socket);
  co_await end_sending(connection);
  beast::error_code failure;
  socket.expires_after(1s);
  std::array<char, 4096> rest;
  while (!failure && !is_stopping) { std::tie(failure, std::ignore) = co_await connection.async_read_some(asio::buffer(rest), awaited); }
}

/// Returns true if the connection may carry another request.
template<class Stream>
asio::awaitable<bool> http_server::core::answer_one(Stream& connection, beast::flat_buffer& unread) {
  auto& socket = beast::get_lowest_layer(connection);
  parser_type parser;
  set_limits(parser, options);
  beast::error_code failure;
  {
    const listed<tcp_stream> waits(idle, socket);
    socket.expires_after(options.patience);
    std::tie(failure, std::ignore) = co_await http::async_read(connection, unread, parser, awaited);
  }
  beast::error_code unknown;
  bool is_good = false;
  auto said = answer_of(failure, parser, socket.socket().local_endpoint(unknown), answers, is_good);
  if (!said) { co_return false; }
  if (said->events && streams >= options.max_streams) { said = refusal(503, "too many streams of events are open; close another page"); }
  if (said->events) {
    co_await send_events(connection, *said);
    co_return false;
  }
  const bool keep_alive = is_good && parser.get().keep_alive() && !is_stopping;
  const auto written = message(std::move(*said), is_good ? parser.get().version() : 11, keep_alive);
  socket.expires_after(options.patience);
  std::tie(failure, std::ignore) = co_await http::async_write(connection, written, awaited);
  if (!is_good && !failure) { co_await let_finish(connection); }
  co_return keep_alive && !failure;
}

template<class Stream>
asio::awaitable<void> http_server::core::send_events(Stream& connection, const answer& said) {
  const counted one(streams);
  asio::steady_timer next_look(acceptor.get_executor());
  const listed<asio::steady_timer> paused(pauses, next_look);
  auto text = header_of_stream(said);
  auto last_sent = std::chrono::steady_clock::now();
  for (bool was_stopping = false; !was_stopping;) {
    was_stopping = is_stopping;  // the last events are sent after the stop
    const auto more = said.events->next();
    if (!more) { was_stopping = true; }
    if (more) { text += *more; }
    if (text.empty() && std::chrono::steady_clock::now() - last_sent > longest_silence) { text = ":\n\n"; }
    if (!text.empty()) {
      beast::get_lowest_layer(connection).expires_after(options.patience);
      auto [failure, size] = co_await asio::async_write(connection, asio::buffer(text), awaited);
      if (failure) { co_return; }
      last_sent = std::chrono::steady_clock::now();
      text.clear();
    }
    if (was_stopping || is_stopping) { continue; }
    next_look.expires_after(options.stream_period);
    static_cast<void>(co_await next_look.async_wait(awaited));
  }
  co_await end_sending(connection);
}

bool is_loopback(const std::string& address) { return address_of(address).is_loopback(); }

http_server::http_server(asio::io_context& loop, const server_options& options, answering answers)
    : core_(std::make_shared<core>(loop, options, std::move(answers))) {}

http_server::~http_server() { core_->stop(); }

std::uint16_t http_server::port() const { return core_->port; }

void http_server::start() { asio::co_spawn(core_->acceptor.get_executor(), core_->accept_all(core_), asio::detached); }

void http_server::stop() { core_->stop(); }

std::string answer_bytes(std::string_view bytes, const server_options& options, const answering& answers) {
  if (bytes.empty()) { return {}; }  // the parser must have got a byte before its end
  parser_type parser;
  set_limits(parser, options);
  parser.eager(true);
  beast::error_code failure;
  while (!parser.is_done() && !failure) {
    const auto used = parser.put(asio::buffer(bytes), failure);
    bytes.remove_prefix(used);
    if (failure == http::error::need_more || (!failure && used == 0)) {
      failure = {};
      parser.put_eof(failure);
      if (!failure && !parser.is_done()) { failure = http::error::partial_message; }
    }
  }
  bool is_good = false;
  auto said = answer_of(failure, parser, {asio::ip::address_v4::loopback(), options.port}, answers, is_good);
  if (!said) { return {}; }
  if (said->events) { return header_of_stream(*said) + said->events->next().value_or(""); }
  std::ostringstream text;
  text << message(std::move(*said), is_good ? parser.get().version() : 11, is_good && parser.get().keep_alive());
  return std::move(text).str();
}

}  // namespace stepwell::board
