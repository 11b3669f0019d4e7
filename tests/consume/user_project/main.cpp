// SPDX-License-Identifier: Apache-2.0
//
// Matrix factorisation by stochastic gradient descent: ratings = users x items. Stops when the loss no longer improves.
// factorise DIRECTORY [STEPS [KILL_AT]]: makes at most STEPS steps. It is killed after step KILL_AT, as by a power cut.
#include <stepwell/stepwell.hpp>

#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace sw = stepwell;

constexpr std::size_t users = 40, items = 30, rank = 3;

struct rating {
  std::size_t user, item;
  float stars;
};

std::vector<rating> make_ratings() {
  std::mt19937 random{7};
  auto draw = [&] { return static_cast<float>(random() % 1000) / 1000.0F; };
  std::vector<float> taste(users), quality(items);
  for (float& x : taste) { x = draw(); }
  for (float& x : quality) { x = draw(); }
  std::vector<rating> all;
  for (int i = 0; i < 2000; ++i) {
    const std::size_t user = random() % users, item = random() % items;
    all.push_back({user, item, 1 + 4 * taste[user] * quality[item] + 0.1F * draw()});
  }
  return all;
}

struct factors {
  struct result {
    float loss;
  };
  std::vector<float> user = std::vector<float>(users * rank), item = std::vector<float>(items * rank);

  factors() {
    std::mt19937 random{1};
    for (auto* all : {&user, &item}) {
      for (float& x : *all) { x = static_cast<float>(random() % 1000) / 1000.0F - 0.5F; }
    }
  }

  result step(const std::vector<rating>& batch) {
    float loss = 0;
    for (const rating& r : batch) {
      float* u = &user[r.user * rank];
      float* v = &item[r.item * rank];
      float error = -r.stars;
      for (std::size_t k = 0; k < rank; ++k) { error += u[k] * v[k]; }
      for (std::size_t k = 0; k < rank; ++k) {
        const float old = u[k];
        u[k] -= 0.02F * error * v[k];
        v[k] -= 0.02F * error * old;
      }
      loss += error * error;
    }
    return {loss / static_cast<float>(batch.size())};
  }
  auto variables() { return sw::variables({{"user", user}, {"item", item}}); }
};

/// A hook that smooths the loss, counts its increases, and stops after more than `patience` steps without a new
/// minimum.
struct patience_hook {
  std::int64_t patience;
  float smooth = -1, best = 1e30F;
  std::int64_t rises = 0, best_step = 0;

  static constexpr auto state_name = "patience";
  auto variables() { return sw::variables({{"smooth", smooth}, {"best", best}, {"rises", rises}, {"best_step", best_step}}); }

  void after_create_session(auto& session, auto& /*coordinator*/) { judge(session); }
  auto before_run(auto& /*context*/) { return sw::fetch(&factors::result::loss); }
  void after_run(auto& context, const auto& values) {
    const float before = smooth;
    smooth = before < 0 ? values.value() : 0.99F * before + 0.01F * values.value();
    if (before >= 0 && smooth > before) { ++rises; }
    if (smooth < best) {
      best = smooth;
      best_step = context.global_step();
    }
    judge(context);
  }
  void end(auto& session) {
    std::printf("end step=%lld rises=%lld best=%.7f at=%lld\n", static_cast<long long>(session.global_step()),
                static_cast<long long>(rises), static_cast<double>(best), static_cast<long long>(best_step));
  }

private:
  void judge(auto& session) {
    if (session.global_step() - best_step > patience) { session.request_stop("no better for a while"); }
  }
};

int main(int argc, char** argv) {
  const std::string directory = argc > 1 ? argv[1] : "run";
  const std::int64_t steps = argc > 2 ? std::atoll(argv[2]) : 1'000'000;
  const std::int64_t kill_at = argc > 3 ? std::atoll(argv[3]) : -1;

  factors model;
  const auto ratings = make_ratings();
  auto batches = sw::data::shuffled_batches(ratings, {.batch_size = 16, .seed = 5});
  auto session = sw::monitored_training_session(
      model, {.checkpoint_dir = directory, .saves = {.save_steps = 500}, .step_counter = {.every_n_steps = sw::none}},
      sw::stop_at_step_hook{{.num_steps = steps}}, patience_hook{.patience = 300},
      sw::summary_saver_hook{{.output_dir = directory, .save_steps = 100}, sw::summary::scalar("loss", &factors::result::loss)});
  std::printf("from step=%lld\n", static_cast<long long>(session.global_step()));
  for (const auto& step : session.steps(batches)) {
    if (step.global_step == kill_at) { std::_Exit(9); }
  }
  session.close();

  std::uint64_t print = 14695981039346656037U;
  for (const auto* all : {&model.user, &model.item}) {
    for (const float x : *all) { print = (print ^ std::bit_cast<std::uint32_t>(x)) * 1099511628211U; }
  }
  std::printf("final step=%lld fingerprint=%016llx (%s)\n", static_cast<long long>(session.global_step()),
              static_cast<unsigned long long>(print), session.stop_reason().text.c_str());
}
