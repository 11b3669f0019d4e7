// SPDX-License-Identifier: Apache-2.0
//
// The board over TLS, with certificates that the test makes.
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/board/board_hook.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

namespace sw = stepwell;
namespace asio = boost::asio;
namespace ssl = boost::asio::ssl;
using asio::ip::tcp;

namespace {

template<auto free>
struct deleter {
  void operator()(auto* held) const { free(held); }
};
using key_pointer = std::unique_ptr<EVP_PKEY, deleter<EVP_PKEY_free>>;
using certificate_pointer = std::unique_ptr<X509, deleter<X509_free>>;

/// A key, and a certificate for "localhost" that it signs itself.
struct identity {
  std::string certificate;
  std::string key;

  identity(const sw::test::temporary_directory& directory, const std::string& name)
      : certificate(directory / (name + ".crt")), key(directory / (name + ".key")) {
    const key_pointer pair(EVP_EC_gen("P-256"));
    const certificate_pointer made(X509_new());
    X509_set_version(made.get(), 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 1);
    X509_gmtime_adj(X509_getm_notBefore(made.get()), -3600);
    X509_gmtime_adj(X509_getm_notAfter(made.get()), 3600);
    X509_set_pubkey(made.get(), pair.get());
    auto* subject = X509_get_subject_name(made.get());
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
    X509_set_issuer_name(made.get(), subject);
    std::unique_ptr<X509_EXTENSION, deleter<X509_EXTENSION_free>> names(
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "DNS:localhost"));
    X509_add_ext(made.get(), names.get(), -1);
    REQUIRE(X509_sign(made.get(), pair.get(), EVP_sha256()) > 0);
    write(certificate, [&](std::FILE* to) { return PEM_write_X509(to, made.get()); });
    write(key, [&](std::FILE* to) { return PEM_write_PrivateKey(to, pair.get(), nullptr, nullptr, 0, nullptr, nullptr); });
  }

private:
  static void write(const std::string& path, auto with) {
    std::FILE* to = std::fopen(path.c_str(), "wb");
    REQUIRE(to != nullptr);
    CHECK(with(to) == 1);
    std::fclose(to);
  }
};

std::uint16_t port_of(const std::string& url) { return static_cast<std::uint16_t>(std::stoi(url.substr(url.rfind(':') + 1))); }

sw::board_options with_tls(const sw::test::temporary_directory& directory, const identity& who) {
  return {.port = 0,
          .certificate_file = who.certificate,
          .private_key_file = who.key,
          .runs_directory = directory.path(),
          .on_ready = [](const std::string&) {}};
}

/// Returns the answer to GET `target`, read by a client that trusts only the certificate `trusted`.
std::string get(std::uint16_t port, const std::string& trusted, const std::string& target) {
  asio::io_context context;
  ssl::context tls(ssl::context::tls_client);
  tls.load_verify_file(trusted);
  ssl::stream<tcp::socket> socket(context, tls);
  socket.set_verify_mode(ssl::verify_peer);
  socket.set_verify_callback(ssl::host_name_verification("localhost"));
  socket.next_layer().connect({asio::ip::address_v4::loopback(), port});
  socket.handshake(ssl::stream_base::client);
  asio::write(socket, asio::buffer("GET " + target + " HTTP/1.1\r\nHost: localhost:" + std::to_string(port) +
                                   "\r\nOrigin: https://localhost:" + std::to_string(port) + "\r\nConnection: close\r\n\r\n"));
  std::string text;
  boost::system::error_code failure;
  asio::read(socket, asio::dynamic_buffer(text), failure);
  return text;
}

/// Returns what the server sends to a client without TLS until it closes the connection.
std::string plain(std::uint16_t port, const std::string& sent) {
  asio::io_context context;
  tcp::socket socket(context);
  socket.connect({asio::ip::address_v4::loopback(), port});
  asio::write(socket, asio::buffer(sent));
  std::string text;
  boost::system::error_code failure;
  asio::read(socket, asio::dynamic_buffer(text), failure);
  return text;
}

}  // namespace

TEST_CASE("a board with a certificate speaks HTTPS, and only that", "[board][tls]") {
  const sw::test::log_capture log;
  const sw::test::temporary_directory directory;
  const identity ours(directory, "ours");
  const sw::directory_board board(with_tls(directory, ours));
  CHECK(board.url().starts_with("https://127.0.0.1:"));
  const auto port = port_of(board.url());
  CHECK(plain(port, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").find("HTTP/1.1 200") == std::string::npos);
  const auto said = get(port, ours.certificate, "/api/board");
  CHECK(said.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(said.find("\"mode\":\"directory\"") != std::string::npos);
  CHECK(get(port, ours.certificate, "/").size() > 100'000);
}

TEST_CASE("a client that trusts another certificate does not talk to the board", "[board][tls]") {
  const sw::test::log_capture log;
  const sw::test::temporary_directory directory;
  const identity ours(directory, "ours");
  const identity other(directory, "other");
  const sw::directory_board board(with_tls(directory, ours));
  CHECK_THROWS_AS(get(port_of(board.url()), other.certificate, "/api/board"), boost::system::system_error);
  CHECK(get(port_of(board.url()), ours.certificate, "/api/board").starts_with("HTTP/1.1 200 OK\r\n"));
}

TEST_CASE("a certificate that cannot be used is an error that names the file", "[board][tls]") {
  const sw::test::log_capture log;
  const sw::test::temporary_directory directory;
  const identity ours(directory, "ours");
  const identity other(directory, "other");
  const auto refusal_of = [&](const std::string& certificate, const std::string& key) -> std::string {
    auto options = with_tls(directory, ours);
    options.certificate_file = certificate;
    options.private_key_file = key;
    try {
      const sw::directory_board board(options);
    } catch (const sw::invalid_argument_error& refused) { return refused.what(); }
    return "";
  };
  CHECK(refusal_of(directory / "none.crt", ours.key).find("none.crt") != std::string::npos);
  CHECK(refusal_of(ours.certificate, directory / "none.key").find("none.key") != std::string::npos);
  CHECK(refusal_of(ours.key, ours.key).find("ours.key") != std::string::npos);
  CHECK(refusal_of(ours.certificate, other.key).find("other.key") != std::string::npos);  // does not belong to the certificate
  CHECK(refusal_of(ours.certificate, "").find("both certificate_file and private_key_file") != std::string::npos);
  CHECK(refusal_of("", ours.key).find("both certificate_file and private_key_file") != std::string::npos);
}
