// SPDX-License-Identifier: Apache-2.0
//
// Serves the board of a directory, with the installed component; with TLS, if that component has it.
#include <stepwell/board/board_hook.hpp>

#include <cstdio>
#include <filesystem>
#include <string>

#ifdef WITH_TLS
#include <openssl/pem.h>
#include <openssl/ssl.h>
#endif

namespace {

stepwell::board_options options() {
  return {.port = 0, .runs_directory = "runs", .on_ready = [](const std::string& url) { std::puts(url.c_str()); }};
}

#ifdef WITH_TLS

/// Writes a certificate that signs itself, and its key.
void make_certificate(const char* certificate, const char* key) {
  EVP_PKEY* pair = EVP_EC_gen("P-256");
  X509* made = X509_new();
  X509_gmtime_adj(X509_getm_notBefore(made), 0);
  X509_gmtime_adj(X509_getm_notAfter(made), 3600);
  X509_set_pubkey(made, pair);
  X509_sign(made, pair, EVP_sha256());
  std::FILE* to = std::fopen(certificate, "w");
  PEM_write_X509(to, made);
  std::fclose(to);
  to = std::fopen(key, "w");
  PEM_write_PrivateKey(to, pair, nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(to);
  X509_free(made);
  EVP_PKEY_free(pair);
}

/// Returns the first line of the answer to a client that trusts only this certificate.
std::string status_line(const std::string& address, const char* certificate) {
  SSL_CTX* trusted = SSL_CTX_new(TLS_client_method());
  SSL_CTX_load_verify_file(trusted, certificate);
  SSL_CTX_set_verify(trusted, SSL_VERIFY_PEER, nullptr);
  BIO* server = BIO_new_ssl_connect(trusted);
  BIO_set_conn_hostname(server, address.c_str());
  BIO_puts(server, ("GET /healthz HTTP/1.1\r\nHost: " + address + "\r\nConnection: close\r\n\r\n").c_str());
  char text[256] = {};
  const int size = BIO_read(server, text, sizeof text);
  BIO_free_all(server);
  SSL_CTX_free(trusted);
  const std::string said(text, size > 0 ? static_cast<std::size_t>(size) : 0);
  return said.substr(0, said.find('\r'));
}

bool serves_https() {
  make_certificate("board.crt", "board.key");
  auto with_tls = options();
  with_tls.certificate_file = "board.crt";
  with_tls.private_key_file = "board.key";
  const stepwell::directory_board board(with_tls);
  const std::string begin = "https://";
  const auto said = status_line(board.url().substr(begin.size(), board.url().find('/', begin.size()) - begin.size()), "board.crt");
  std::puts(said.c_str());
  return board.url().starts_with(begin) && said == "HTTP/1.1 200 OK";
}

#else

bool serves_https() { return true; }

#endif

}  // namespace

int main() {
  std::filesystem::create_directory("runs");
  const stepwell::directory_board board(options());
  return board.url().starts_with("http://127.0.0.1:") && serves_https() ? 0 : 1;
}
