// SPDX-License-Identifier: Apache-2.0
//
// The board: its cost for a training, and a directory to open. A program of its own:
//   board_bench steps [ROUNDS]      the step rate with the board and 100 clients beside that without, with steps of 100 us
//   board_bench make DIRECTORY      writes 200 runs with 10 tags of 10,000 points each, for tests/bench/board_directory.py
#include "bench/timing.hpp"

#include <stepwell/base/log.hpp>
#include <stepwell/board/board_hook.hpp>
#include <stepwell/summary/writer.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

#include <fmt/format.h>
#include <time.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace sw = stepwell;
namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

/// A step of a fixed amount of arithmetic.
struct working {
  struct result {
    double loss;
  };
  std::int64_t rounds = 1;
  double value = 1;

  result step() {
    for (std::int64_t i = 0; i < rounds; ++i) { value = std::sqrt(value + 1); }
    return {value};
  }
  auto variables() { return sw::variables({{"value", value}}); }
};

/// Returns the number of rounds that take 100 us.
std::int64_t rounds_of_step() {
  constexpr std::int64_t tried = 20'000;
  std::vector<double> times;
  for (int i = 0; i < 200; ++i) {
    working model{.rounds = tried};
    times.push_back(sw::bench::seconds_of([&] { static_cast<void>(model.step()); }));
  }
  return static_cast<std::int64_t>(tried * 100e-6 / sw::bench::median(times));
}

/// A client that reads the stream of events for ever.
class reader : public std::enable_shared_from_this<reader> {
public:
  reader(asio::io_context& loop, std::uint16_t port, std::atomic<std::uint64_t>& bytes) : socket_(loop), bytes_(bytes) {
    socket_.connect({asio::ip::address_v4::loopback(), port});
    asio::write(socket_, asio::buffer("GET /api/live HTTP/1.1\r\nHost: localhost:" + std::to_string(port) + "\r\n\r\n"));
  }
  void read() {
    socket_.async_read_some(asio::buffer(piece_), [self = shared_from_this()](const boost::system::error_code& failure, std::size_t size) {
      self->bytes_ += size;
      if (!failure) { self->read(); }
    });
  }

private:
  tcp::socket socket_;
  std::array<char, 16'384> piece_;
  std::atomic<std::uint64_t>& bytes_;
};

double thread_seconds() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

/// Returns the median, with the interval that contains that of all possible pairs with a probability of 95 %.
std::string median_text(std::vector<double> values) {
  std::ranges::sort(values);
  const auto last = static_cast<double>(values.size() - 1);
  const double half = 0.98 * std::sqrt(static_cast<double>(values.size()));  // of the ranks of the interval, which are binomial
  const auto at = [&](double rank) { return values[static_cast<std::size_t>(std::clamp(rank, 0.0, last))]; };
  return fmt::format("{:.4f} (95 %: {:.4f} to {:.4f})", sw::bench::median(values), at(last / 2 - half), at(std::ceil(last / 2 + half)));
}

int measure_steps(int rounds) {
  constexpr std::size_t clients = 100;
  constexpr std::chrono::seconds length{1};  // longer than the time between two looks of the board
  const auto work = rounds_of_step();
  working bare_model{.rounds = work};
  working watched_model{.rounds = work};
  std::string url;
  const sw::training_options quiet{.step_counter = {.every_n_steps = sw::none}};
  auto bare = sw::monitored_training_session(bare_model, quiet);
  auto watched = sw::monitored_training_session(
      watched_model, quiet,
      sw::board_hook{{.port = 0, .on_ready = [&](const std::string& given) { url = given; }}, sw::tag("loss", &working::result::loss)});
  const auto port = static_cast<std::uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
  asio::io_context loop;
  std::atomic<std::uint64_t> bytes = 0;
  for (std::size_t i = 0; i < clients; ++i) { std::make_shared<reader>(loop, port, bytes)->read(); }
  std::thread reading([&] { loop.run(); });
  // The rate, and the processor time of the session's thread for each step, which other load on the machine changes less.
  const auto measure = [&](auto& session) {
    std::int64_t steps = 0;
    const auto begin = std::chrono::steady_clock::now();
    const double busy = thread_seconds();
    while (std::chrono::steady_clock::now() - begin < length) {
      for (int i = 0; i < 100; ++i) { session.run(); }
      steps += 100;
    }
    const auto count = static_cast<double>(steps);
    return std::pair(count / std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(),
                     (thread_seconds() - busy) / count);
  };
  std::vector<double> with;
  std::vector<double> without;
  std::vector<double> rates;
  std::vector<double> costs;
  for (int i = 0; i < rounds; ++i) {
    const bool is_first = i % 2 == 0;
    const auto first = is_first ? measure(watched) : measure(bare);
    const auto second = is_first ? measure(bare) : measure(watched);
    const auto& [ours, theirs] = is_first ? std::pair(first, second) : std::pair(second, first);
    with.push_back(ours.first);
    without.push_back(theirs.first);
    rates.push_back(ours.first / theirs.first);
    costs.push_back(ours.second / theirs.second);
  }
  std::printf("steps/s with the board and %zu clients %.0f, without %.0f (medians)\n", clients, sw::bench::median(with),
              sw::bench::median(without));
  std::printf("of %d pairs: the rate is %s of that without, the processor time of a step %s\n", rounds, median_text(rates).c_str(),
              median_text(costs).c_str());
  std::printf("the clients have read %.1f MB\n", static_cast<double>(bytes) / 1e6);
  watched.close();
  bare.close();
  loop.stop();
  reading.join();
  return 0;
}

int make_runs(const std::string& directory) {
  constexpr int runs = 200;
  constexpr int tags = 10;
  constexpr int points = 10'000;
  for (int run = 0; run < runs; ++run) {
    sw::summary::writer out(directory + "/run" + std::to_string(1000 + run));
    for (int step = 1; step <= points; ++step) {
      sw::format::summary values;
      for (int tag = 0; tag < tags; ++tag) {
        values.values.push_back(
            {"values/" + std::to_string(tag), "", std::nullopt, static_cast<float>(std::sin(0.001 * step * (tag + 1)) + run)});
      }
      out.add_summary(std::move(values), step);
    }
    out.close();
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string_view what = count > 1 ? arguments[1] : "";
  if (what == "steps") { return measure_steps(count > 2 ? std::atoi(arguments[2]) : 15); }
  if (what == "make" && count == 3) { return make_runs(arguments[2]); }
  std::fprintf(stderr, "board_bench steps [ROUNDS], or board_bench make DIRECTORY\n");
  return 2;
}
