// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/board/http.hpp>
#include <stepwell/board/http_server.hpp>

#include <stdexcept>
#include <string>
#include <string_view>

namespace sw = stepwell;
using namespace sw::board;

namespace {

request asking(std::string host, std::string origin = {}) {
  request asked{.method = "GET", .target = "/", .address = "127.0.0.1", .port = 6007, .hosts = {std::move(host)}};
  if (!origin.empty()) { asked.origins = {std::move(origin)}; }
  return asked;
}

int status_of(const std::string& bytes) { return bytes.size() < 12 ? 0 : std::stoi(bytes.substr(9, 3)); }

/// Returns the answer of a server that answers with the method, the target and the body of the request.
std::string echo(std::string_view bytes) {
  return answer_bytes(bytes, {.port = 6007},
                      [](const request& asked) { return answer{200, asked.method + " " + asked.target + " " + asked.body, "text/plain"}; });
}

}  // namespace

TEST_CASE("a request for another host is rejected, so that a foreign name cannot resolve to the server", "[board][http]") {
  const access_rules rules({"Train.Example", "proxy.example:8443"}, "token");
  for (const auto* host :
       {"127.0.0.1:6007", "localhost:6007", "LOCALHOST:6007", "[::1]:6007", "train.example", "train.example:1", "proxy.example:8443",
        "localhost", "localhost:16007", "127.0.0.1:8080", "127.1.2.3:9", "[::1]:9"}) {  // a tunnel or a container has another port
    CAPTURE(host);
    CHECK_FALSE(rules.refusal_of(asking(host)));
  }
  for (const auto* host : {"evil.example", "localhost.evil.example:6007", "127.0.0.1.evil.example:6007", "127.evil.example", "127.0.0.1.1",
                           "128.0.0.1:6007", "localhost:evil", "localhost:", "localhost:6007.evil.example", "[::2]:6007", ":6007", "",
                           "proxy.example:1", "proxy.example", "train.example.", "127.0.0.1:6007:6007", "192.168.1.5:6007"}) {
    CAPTURE(host);
    REQUIRE(rules.refusal_of(asking(host)));
    CHECK(rules.refusal_of(asking(host))->status == 421);
  }
  CHECK(rules.refusal_of(asking("evil.example:1"))->body.find("the Host \\\"evil.example:1\\\" is not a name of this server") !=
        std::string::npos);
  CHECK(rules.refusal_of(asking("evil\x1b[2J\u009b"))->body.find_first_of("\x1b\x9b") == std::string::npos);
  auto twice = asking("localhost:6007");
  twice.hosts.emplace_back("localhost:6007");
  CHECK(rules.refusal_of(twice)->status == 400);
  twice.hosts.clear();
  CHECK(rules.refusal_of(twice)->status == 400);
}

TEST_CASE("the address on which a request arrives is accepted as its host, because an address needs no name server", "[board][http]") {
  const access_rules rules({}, "token");
  auto asked = asking("192.168.1.5:6007");
  CHECK(rules.refusal_of(asked)->status == 421);
  asked.address = "192.168.1.5";
  CHECK_FALSE(rules.refusal_of(asked));
  asked.address = "fe80::1";
  asked.hosts = {"[fe80::1]:6007"};
  CHECK_FALSE(rules.refusal_of(asked));
}

TEST_CASE("a request of a page of another site is rejected", "[board][http]") {
  const access_rules rules({}, "token");
  CHECK_FALSE(rules.refusal_of(asking("localhost:6007", "http://localhost:6007")));
  const access_rules behind_a_proxy({"hub.example"}, "token");  // which replaces the Host
  CHECK_FALSE(behind_a_proxy.refusal_of(asking("127.0.0.1:6007", "https://hub.example")));
  CHECK(behind_a_proxy.refusal_of(asking("127.0.0.1:6007", "https://evil.example"))->status == 403);
  CHECK(behind_a_proxy.refusal_of(asking("127.0.0.1:6007", "ftp://hub.example"))->status == 403);
  for (const auto* origin :
       {"http://evil.example", "null", "http://localhost:6008", "http://127.0.0.1:6007", "http://localhost:6007.evil.example"}) {
    CAPTURE(origin);
    REQUIRE(rules.refusal_of(asking("localhost:6007", origin)));
    CHECK(rules.refusal_of(asking("localhost:6007", origin))->status == 403);
  }
}

TEST_CASE("only the exact token is accepted, after the word Bearer in any case", "[board][http]") {
  const access_rules rules({}, "0123456789abcdef");
  auto asked = asking("localhost:6007");
  for (const auto* right : {"Bearer 0123456789abcdef", "bearer 0123456789abcdef", "BEARER  0123456789abcdef"}) {
    CAPTURE(right);
    asked.authorization = right;
    CHECK(rules.has_token(asked));
  }
  for (const auto* wrong :
       {"bearer0123456789abcdef", "bear 0123456789abcdef", "Bearer:0123456789abcdef", "", "Bearer", "Bearer ", "Bearer 0123456789abcde",
        "Bearer 0123456789abcdef0", "Bearer 0123456789abcdeF", "Basic 0123456789abcdef", "0123456789abcdef"}) {
    CAPTURE(wrong);
    asked.authorization = wrong;
    CHECK_FALSE(rules.has_token(asked));
  }
  CHECK_THROWS_AS(access_rules({}, ""), sw::invalid_argument_error);
  CHECK(random_token().size() == 32);
  CHECK(random_token() != random_token());
}

TEST_CASE("a target is split into its path and its decoded parameters", "[board][http]") {
  const auto parts = parse_target("/api/tags?run=a%20b&run=c+d&empty=&flag&x=%26");
  REQUIRE(parts);
  CHECK(parts->path == "/api/tags");
  CHECK(parts->values("run") == std::vector<std::string>{"a b", "c d"});
  CHECK(parts->value("empty") == "");
  CHECK(parts->value("flag") == "");
  CHECK(parts->value("x") == "&");
  CHECK_FALSE(parts->value("y"));
  for (const auto* wrong : {"", "api", "/%", "/%2", "/%zz", "/?a=%f", "http://localhost/"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_target(wrong));
  }
  std::string many = "/?";
  for (int i = 0; i < 1000; ++i) { many += "a=1&"; }
  CHECK_FALSE(parse_target(many));
}

TEST_CASE("requests that are malformed or too large are answered with an error", "[board][http]") {
  CHECK(echo("GET /a HTTP/1.1\r\nHost: x\r\n\r\n").find("GET /a ") != std::string::npos);
  CHECK(echo("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}").find("POST /a {}") != std::string::npos);
  CHECK(echo("POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n").find("POST /a {}") !=
        std::string::npos);
  CHECK(status_of(echo("this is not HTTP\r\n\r\n")) == 400);
  CHECK(status_of(echo("GET / HTTP/9.9\r\nHost: x\r\n\r\n")) == 400);
  CHECK(status_of(echo("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n")) == 501);
  CHECK(status_of(echo("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}")) == 400);
  CHECK(status_of(echo("GET / HTTP/1.1\r\nX: " + std::string(10'000, 'x') + "\r\n\r\n")) == 431);
  CHECK(status_of(echo("GET /" + std::string(1 << 20, 'x') + " HTTP/1.1\r\n\r\n")) == 431);
  CHECK(status_of(echo("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n")) == 413);
  CHECK(status_of(echo("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 20000\r\n\r\n" + std::string(20'000, 'x'))) == 413);
  CHECK(echo("").empty());
  CHECK(echo("GET / HTTP/1.1\r\nHost").empty());
}

TEST_CASE("each answer has headers that keep browsers from guessing, storing and embedding", "[board][http]") {
  const auto text = echo("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  for (const auto* header : {"Cache-Control: no-store\r\n", "X-Content-Type-Options: nosniff\r\n", "Referrer-Policy: no-referrer\r\n",
                             "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n"}) {
    CHECK(text.find(header) != std::string::npos);
  }
  CHECK(text.find("Access-Control") == std::string::npos);
}

TEST_CASE("an exception of the answering function is an internal error without details", "[board][http]") {
  const auto text =
      answer_bytes("GET / HTTP/1.1\r\nHost: x\r\n\r\n", {}, [](const request&) -> answer { throw std::runtime_error("secret"); });
  CHECK(status_of(text) == 500);
  CHECK(text.find("secret") == std::string::npos);
}
