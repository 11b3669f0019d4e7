// SPDX-License-Identifier: Apache-2.0
#include "torch_and_catch.hpp"

#include <stepwell/torch/torch.hpp>

#include "support/log_capture.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/checkpoint/restore.hpp>
#include <stepwell/checkpoint/snapshot.hpp>
#include <stepwell/checkpoint/update_fence.hpp>
#include <stepwell/hooks/detail/value_text.hpp>

#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sw = stepwell;

namespace {

static_assert(sw::variable_like<torch::Tensor> && std::is_constructible_v<sw::variable_ref, std::string, torch::Tensor>);

std::vector<std::string> names_of(const sw::variable_list& list) {
  std::vector<std::string> names;
  for (const auto& variable : list) { names.push_back(variable.name()); }
  return names;
}

torch::nn::Sequential small_network() {
  torch::manual_seed(1);
  return torch::nn::Sequential(torch::nn::Linear(3, 2), torch::nn::BatchNorm1d(2));
}

/// Runs the steps `from` to `to` - 1.
void train(torch::nn::Sequential& network, torch::optim::Optimizer& optimizer, int from = 0, int to = 3) {
  for (int i = from; i < to; ++i) {
    torch::manual_seed(static_cast<std::uint64_t>(10 + i));
    const auto images = torch::randn({8, 3});
    optimizer.step([&] {
      optimizer.zero_grad();
      auto loss = network->forward(images).pow(2).mean() + network->parameters()[0].pow(2).sum();
      loss.backward();
      return loss;
    });
  }
}

sw::snapshot captured(const sw::variable_list& variables) {
  return sw::snapshot::capture(*sw::snapshot_pool(sw::snapshot_size(variables), 1).try_acquire(), variables, 0);
}

sw::variable_list state_of(torch::nn::Sequential& network, torch::optim::Optimizer& optimizer) {
  return sw::variables({{"network", sw::libtorch::variables(*network)}, {"optimizer", sw::libtorch::variables(optimizer, *network)}});
}

/// Returns all bytes of a state.
std::string bytes_of(const sw::variable_list& state) {
  std::string all;
  const auto taken = captured(state);
  for (const auto& entry : taken.entries()) { all.append(reinterpret_cast<const char*>(entry.bytes.data()), entry.bytes.size()); }
  return all;
}

/// Returns true if six steps give the same bits as three steps, a save, a restore into another network and optimizer,
/// and three more steps.
template<class Optimizer, class Options>
bool resumes(const Options& options, bool with_optimizer = true) {
  torch::set_num_threads(1);
  auto whole = small_network();
  Optimizer whole_optimizer(whole->parameters(), options);
  train(whole, whole_optimizer, 0, 6);

  auto first = small_network();
  Optimizer first_optimizer(first->parameters(), options);
  train(first, first_optimizer, 0, 3);
  const auto taken = captured(state_of(first, first_optimizer));

  auto second = small_network();
  Optimizer second_optimizer(second->parameters(), options);
  if (with_optimizer) {
    sw::restore(state_of(second, second_optimizer), taken);
  } else {
    sw::restore(sw::variables({{"network", sw::libtorch::variables(*second)}}), taken);
  }
  train(second, second_optimizer, 3, 6);
  return bytes_of(state_of(second, second_optimizer)) == bytes_of(state_of(whole, whole_optimizer));
}

/// Returns the weights after three steps. With `is_asked`, the optimizer's variables were listed before the first step.
template<class Optimizer, class Options>
std::vector<float> trained(const Options& options, bool is_asked) {
  auto network = small_network();
  Optimizer optimizer(network->parameters(), options);
  if (is_asked) { (void)sw::libtorch::variables(optimizer, *network); }
  train(network, optimizer);
  const auto weights = network->parameters()[0].detach();
  return {weights.data_ptr<float>(), weights.data_ptr<float>() + weights.numel()};
}

}  // namespace

TEST_CASE("a tensor is a variable of its type and shape, and its memory is restored into", "[torch]") {
  auto weights = torch::arange(6, torch::kFloat).reshape({2, 3});
  const sw::variable_ref ref("weights", weights);
  CHECK(ref.dtype() == sw::dtype::float32);
  CHECK(ref.shape() == sw::tensor_shape{2, 3});
  const float restored = 9;
  std::memcpy(ref.writable_bytes().data() + 5 * sizeof restored, &restored, sizeof restored);
  CHECK(weights[1][2].item<float>() == 9);
  CHECK(sw::variable_ref("scalar", torch::tensor(std::int64_t{3})).shape().empty());
  CHECK(sw::variable_ref("half", torch::zeros({2}, torch::kBFloat16)).dtype() == sw::dtype::bfloat16);
}

TEST_CASE("a tensor that a checkpoint cannot hold is refused by name, with the reason", "[torch]") {
  const auto refused = [](const torch::Tensor& tensor) {
    try {
      (void)sw::variables({{"encoder/weights", tensor}});
    } catch (const sw::invalid_argument_error& failure) { return std::string(failure.what()); }
    return std::string("accepted");
  };
  CHECK_THAT(refused(torch::Tensor()), ContainsSubstring("encoder/weights") && ContainsSubstring("undefined"));
  CHECK_THAT(refused(torch::zeros({2, 2}).to_sparse()), ContainsSubstring("sparse"));
  CHECK_THAT(refused(torch::quantize_per_tensor(torch::zeros({2}), 1, 0, torch::kQUInt8)), ContainsSubstring("QUInt8"));
}

TEST_CASE("a fetched tensor in another order than row-major is refused, with what to do", "[torch]") {
  CHECK_THROWS_WITH(sw::view_of(torch::zeros({2, 3}).t()), ContainsSubstring("use contiguous()"));
}

TEST_CASE("a NaN is found in a tensor in another order than row-major", "[torch]") {
  using adapter = sw::tensor_adapter<torch::Tensor>;
  auto values = torch::zeros({2, 3});
  CHECK_FALSE(adapter::any_bad_on_device(values, false));  // the guard reads the elements itself
  CHECK(adapter::any_bad_on_device(values.t(), false) == false);
  values[1][2] = std::numeric_limits<float>::infinity();
  CHECK(adapter::any_bad_on_device(values.t(), false) == true);
  CHECK(adapter::any_bad_on_device(values.t(), true) == false);
  values[1][2] = std::numeric_limits<float>::quiet_NaN();
  CHECK(adapter::any_bad_on_device(values.t(), true) == true);
  CHECK(sw::value_text(values.t()).find("nan") != std::string::npos);
}

TEST_CASE("a variable in another order than row-major is copied for a snapshot, and back", "[torch]") {
  auto weights = torch::arange(24, torch::kFloat).reshape({1, 2, 3, 4}).contiguous(torch::MemoryFormat::ChannelsLast);
  const auto taken = captured(sw::variables({{"weights", weights}}));
  const auto* bytes = reinterpret_cast<const float*>(taken.find("weights")->bytes.data());
  CHECK(std::vector<float>(bytes, bytes + 4) == std::vector<float>{0, 1, 2, 3});  // row-major in the snapshot
  weights.zero_();
  sw::restore(sw::variables({{"weights", weights}}), taken);
  CHECK(torch::equal(weights, torch::arange(24, torch::kFloat).reshape({1, 2, 3, 4})));
  CHECK(weights.is_contiguous(torch::MemoryFormat::ChannelsLast));
}

TEST_CASE("a tensor of a device that cannot be copied is an error that names the variable", "[torch]") {
  const auto nowhere = torch::empty({2}, torch::TensorOptions().device(torch::kMeta));
  try {
    (void)captured(sw::variables({{"encoder/weights", nowhere}}));
    FAIL("there is nothing to copy");
  } catch (const sw::internal_error& failure) {
    CHECK_THAT(failure.what(), ContainsSubstring("encoder/weights") && ContainsSubstring("could not copy a LibTorch tensor to the host"));
  }
}

TEST_CASE("a module's parameters and buffers are named by their path", "[torch]") {
  auto network = small_network();
  CHECK(names_of(sw::libtorch::variables(*network)) ==
        std::vector<std::string>{"0/weight", "0/bias", "1/weight", "1/bias", "1/running_mean", "1/running_var", "1/num_batches_tracked"});
  CHECK(sw::libtorch::variables(*network)[0].bytes().data() == network->parameters()[0].data_ptr());
  CHECK_FALSE(sw::libtorch::variables(*network)[3].is_early());
  CHECK(sw::libtorch::variables(*network)[4].is_early());
}

TEST_CASE("an optimiser's state is there before its first step, and is named by parameter", "[torch]") {
  auto network = small_network();
  torch::optim::Adam adam(network->parameters());
  const auto names = names_of(sw::libtorch::variables(adam, *network));
  REQUIRE(names.size() == 18);
  CHECK(names[0] == "0/weight/step");
  CHECK(names[1] == "0/weight/exp_avg");
  CHECK(names[5] == "0/bias/exp_avg_sq");
  CHECK(std::vector(names.begin() + 12, names.end()) == std::vector<std::string>{"param_groups/0/lr", "param_groups/0/betas",
                                                                                 "param_groups/0/eps", "param_groups/0/weight_decay",
                                                                                 "param_groups/0/amsgrad", "param_groups/parameters"});
  train(network, adam);
  CHECK(names_of(sw::libtorch::variables(adam, *network)) == names);
  std::int64_t step = 0;
  std::memcpy(&step, sw::libtorch::variables(adam, *network)[0].bytes().data(), sizeof step);
  CHECK(step == 3);

  torch::optim::SGD plain(network->parameters(), torch::optim::SGDOptions(0.1));
  CHECK(names_of(sw::libtorch::variables(plain, *network))[0] == "param_groups/0/lr");  // no state of its parameters
  torch::optim::SGD heavy(network->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  CHECK(names_of(sw::libtorch::variables(heavy, *network))[0] == "0/weight/momentum_buffer");
}

TEST_CASE("an optimiser trains alike whether or not its state was read before", "[torch]") {
  using namespace torch::optim;
  CHECK(trained<Adam>(AdamOptions(0.1), true) == trained<Adam>(AdamOptions(0.1), false));
  CHECK(trained<Adam>(AdamOptions(0.1).amsgrad(true), true) == trained<Adam>(AdamOptions(0.1).amsgrad(true), false));
  CHECK(trained<AdamW>(AdamWOptions(0.1), true) == trained<AdamW>(AdamWOptions(0.1), false));
  CHECK(trained<SGD>(SGDOptions(0.1).momentum(0.9), true) == trained<SGD>(SGDOptions(0.1).momentum(0.9), false));
}

TEST_CASE("a run that was stopped and resumed ends bit-identical to one that was not, with every optimiser", "[torch]") {
  using namespace torch::optim;
  CHECK(resumes<SGD>(SGDOptions(0.1)));
  CHECK(resumes<SGD>(SGDOptions(0.1).momentum(0.9)));
  CHECK(resumes<SGD>(SGDOptions(0.1).momentum(0.9).nesterov(true).weight_decay(0.01)));
  CHECK(resumes<SGD>(SGDOptions(0.1).momentum(0.9).dampening(0.5)));
  CHECK(resumes<Adam>(AdamOptions(0.1)));
  CHECK(resumes<Adam>(AdamOptions(0.1).amsgrad(true)));
  CHECK(resumes<AdamW>(AdamWOptions(0.1)));
  CHECK(resumes<AdamW>(AdamWOptions(0.1).amsgrad(true)));
  CHECK(resumes<Adagrad>(AdagradOptions(0.1).lr_decay(0.1).initial_accumulator_value(0.2)));
  CHECK(resumes<RMSprop>(RMSpropOptions(0.1)));
  CHECK(resumes<RMSprop>(RMSpropOptions(0.1).momentum(0.9).centered(true)));
  CHECK(resumes<LBFGS>(LBFGSOptions(0.1).max_iter(3).history_size(5)));
  CHECK(resumes<LBFGS>(LBFGSOptions(0.1).max_iter(2).history_size(20).line_search_fn("strong_wolfe")));
}

TEST_CASE("a run without the optimiser's state ends otherwise: the test above can fail", "[torch]") {
  using namespace torch::optim;
  CHECK_FALSE(resumes<SGD>(SGDOptions(0.1).momentum(0.9), false));
  CHECK_FALSE(resumes<SGD>(SGDOptions(0.1).momentum(0.9).dampening(0.5), false));
  CHECK_FALSE(resumes<Adam>(AdamOptions(0.1), false));
  CHECK_FALSE(resumes<AdamW>(AdamWOptions(0.1).amsgrad(true), false));
  CHECK_FALSE(resumes<Adagrad>(AdagradOptions(0.1), false));
  CHECK_FALSE(resumes<RMSprop>(RMSpropOptions(0.1).momentum(0.9), false));
  CHECK_FALSE(resumes<LBFGS>(LBFGSOptions(0.1).max_iter(3).history_size(5), false));
}

TEST_CASE("a snapshot with a fence is copied during the forward and backward pass, and keeps the state before the step", "[torch][fence]") {
  const auto trained_to = [](bool is_fenced, std::string& before) {
    torch::set_num_threads(1);
    torch::manual_seed(1);
    torch::nn::Sequential network(torch::nn::Linear(300, 200), torch::nn::BatchNorm1d(200));
    torch::optim::Adam optimizer(network->parameters(), torch::optim::AdamOptions(0.1));
    sw::update_fence fence;
    fence.set_checks(true);
    before = bytes_of(state_of(network, optimizer));
    const auto state = state_of(network, optimizer);
    const auto taken = sw::snapshot::capture(*sw::snapshot_pool(0, 1).try_acquire(), state, 0, fence);
    CHECK(fence.is_pending());
    if (!is_fenced) { fence.wait(); }
    network->forward(torch::ones({8, 300}) * 2).pow(2).mean().backward();  // changes the running means
    sw::libtorch::step(optimizer, fence);
    CHECK_FALSE(fence.is_pending());
    std::string copied;
    for (const auto& entry : taken.entries()) { copied.append(reinterpret_cast<const char*>(entry.bytes.data()), entry.bytes.size()); }
    CHECK(copied == before);
    return bytes_of(state_of(network, optimizer));
  };
  std::string before;
  const auto after = trained_to(true, before);
  CHECK(after != before);
  CHECK(after == trained_to(false, before));
}

TEST_CASE("a listed tensor may be replaced before the fence: the checkpoint has the previous one", "[torch][fence]") {
  auto hidden = torch::full({2048}, 1.0F);
  sw::update_fence fence;
  fence.set_checks(true);
  const auto taken = sw::snapshot::capture(*sw::snapshot_pool(0, 1).try_acquire(), sw::variables({{"hidden", hidden}}), 0, fence);
  hidden = torch::full({2048}, 2.0F);
  const auto reused = torch::full({2048}, 3.0F);  // would get the memory of the previous tensor, if it were free
  fence.wait();
  const auto* const first = reinterpret_cast<const float*>(taken.find("hidden")->bytes.data());
  CHECK(std::vector<float>(first, first + 2048) == std::vector<float>(2048, 1.0F));
}

TEST_CASE("tensors of all element types that a checkpoint has are variables", "[torch]") {
  const std::map<std::string, sw::dtype> newer = {{"UInt16", sw::dtype::uint16},
                                                  {"UInt32", sw::dtype::uint32},
                                                  {"UInt64", sw::dtype::uint64},
                                                  {"Float8_e5m2", sw::dtype::float8_e5m2},
                                                  {"Float8_e4m3fn", sw::dtype::float8_e4m3fn}};
  int found = 0;
  for (int i = 0; i < static_cast<int>(at::ScalarType::NumOptions); ++i) {
    const auto type = static_cast<at::ScalarType>(i);
    const auto known = newer.find(at::toString(type));
    if (known == newer.end()) { continue; }
    CHECK(sw::variable_ref("tensor", torch::empty({2}, type)).dtype() == known->second);
    ++found;
  }
  CHECK(found == (TORCH_VERSION_MAJOR >= 2 ? 5 : 0));
}

TEST_CASE("momentum with dampening is restored as none where there was none yet", "[torch]") {
  const auto options = torch::optim::SGDOptions(0.1).momentum(0.9).dampening(0.5);
  auto network = small_network();
  torch::optim::SGD fresh(network->parameters(), options);
  const auto taken = captured(sw::libtorch::variables(fresh, *network));
  torch::optim::SGD used(network->parameters(), options);
  train(network, used, 0, 1);
  CHECK_FALSE(used.state().empty());
  sw::restore(sw::libtorch::variables(used, *network), taken);
  CHECK(used.state().empty());
}

TEST_CASE("optimisers whose state is not known are refused", "[torch]") {
  struct own_optimizer : torch::optim::Optimizer {
    explicit own_optimizer(std::vector<torch::Tensor> parameters)
        : Optimizer(std::move(parameters), std::make_unique<torch::optim::SGDOptions>(0.1)) {}
    torch::Tensor step(LossClosure /*closure*/) override { return {}; }
  };
  auto network = small_network();
  own_optimizer other(network->parameters());
  CHECK_THROWS_WITH(sw::libtorch::variables(other, *network), ContainsSubstring("this optimiser is not supported"));
  auto foreign = small_network();
  torch::optim::Adam adam(foreign->parameters());
  CHECK_THROWS_WITH(sw::libtorch::variables(adam, *network), ContainsSubstring("parameter 0 of group 0") && ContainsSubstring("[2,3]"));
}

namespace {

/// Changes the options of an optimiser, restores its state into another one, and compares the options of the two.
template<class Optimizer, class Options>
bool restores_options(const Options& initial, const Options& changed) {
  const auto options_in = [](Optimizer& optimizer) -> Options& { return static_cast<Options&>(optimizer.param_groups()[0].options()); };
  auto network = small_network();
  Optimizer first(network->parameters(), initial);
  options_in(first) = changed;
  const auto taken = captured(sw::libtorch::variables(first, *network));
  Optimizer second(network->parameters(), initial);
  const bool differed = !(options_in(second) == changed);
  sw::restore(sw::libtorch::variables(second, *network), taken);
  return differed && options_in(second) == changed;
}

/// A network of two layers, of which one optimiser first trains the second one only.
struct growing {
  torch::nn::Sequential network = torch::nn::Sequential(torch::nn::Linear(3, 3), torch::nn::Linear(3, 2));
  torch::optim::Adam optimizer{network->ptr(1)->parameters(), torch::optim::AdamOptions(0.1)};

  void add() { optimizer.add_param_group(torch::optim::OptimizerParamGroup(network->ptr(0)->parameters())); }
  sw::variable_list variables() { return sw::libtorch::variables(optimizer, *network); }
};

}  // namespace

TEST_CASE("options of an optimiser that the program has changed are restored, with every optimiser", "[torch]") {
  using namespace torch::optim;
  CHECK(restores_options<Adam>(AdamOptions(0.1), AdamOptions(0.05).betas(std::make_tuple(0.8, 0.7)).eps(1e-3).weight_decay(0.5)));
  CHECK(restores_options<AdamW>(AdamWOptions(0.1), AdamWOptions(0.05).betas(std::make_tuple(0.8, 0.7)).eps(1e-3).weight_decay(0.5)));
  CHECK(restores_options<Adagrad>(AdagradOptions(0.1),
                                  AdagradOptions(0.05).lr_decay(0.1).weight_decay(0.2).initial_accumulator_value(0.3).eps(1e-3)));
  CHECK(restores_options<RMSprop>(RMSpropOptions(0.1).momentum(0.9),
                                  RMSpropOptions(0.05).alpha(0.5).eps(1e-3).weight_decay(0.2).momentum(0.8)));
  CHECK(restores_options<SGD>(SGDOptions(0.1).momentum(0.9), SGDOptions(0.05).momentum(0.8).weight_decay(0.1).nesterov(true)));
  CHECK(restores_options<LBFGS>(LBFGSOptions(0.1).max_eval(25),
                                LBFGSOptions(0.05).max_iter(7).max_eval(9).tolerance_grad(1e-3).tolerance_change(1e-4)));
}

TEST_CASE("a restore that changes options of an optimiser says so in one line", "[torch]") {
  const sw::test::log_capture log;
  auto network = small_network();
  torch::optim::SGD first(network->parameters(), torch::optim::SGDOptions(0.05).weight_decay(0.2));
  torch::optim::SGD second(network->parameters(), torch::optim::SGDOptions(0.1));
  const auto taken = captured(sw::libtorch::variables(first, *network));
  sw::restore(sw::libtorch::variables(second, *network), taken);
  REQUIRE(log.messages().size() == 1);
  CHECK_THAT(log.messages()[0].text, ContainsSubstring("lr of parameter group 0 from 0.1 to 0.05, weight_decay of parameter group 0"));
  sw::restore(sw::libtorch::variables(second, *network), taken);
  CHECK(log.messages().size() == 1);  // nothing has changed
}

TEST_CASE("an option that decides which state an optimiser has is not restored over another one", "[torch]") {
  auto network = small_network();
  torch::optim::Adam plain(network->parameters(), torch::optim::AdamOptions(0.1));
  torch::optim::Adam amsgrad(network->parameters(), torch::optim::AdamOptions(0.1).amsgrad(true));
  const auto taken = captured(sw::libtorch::variables(amsgrad, *network));
  CHECK_THROWS_WITH(sw::restore(sw::libtorch::variables(plain, *network), taken),
                    ContainsSubstring("param_groups/0/amsgrad") && ContainsSubstring("construct it with the value of the checkpoint"));
}

TEST_CASE("a rate that the program, a scheduler of LibTorch or a new optimiser sets goes on after a resume with the same bits", "[torch]") {
  torch::set_num_threads(1);
  struct trainee {
    torch::nn::Sequential network = small_network();
    std::unique_ptr<torch::optim::Adam> optimizer = made(0.1);
    std::unique_ptr<torch::optim::StepLR> scheduler = std::make_unique<torch::optim::StepLR>(*optimizer, 2, 0.5);

    [[nodiscard]] std::unique_ptr<torch::optim::Adam> made(double rate) const {
      return std::make_unique<torch::optim::Adam>(network.ptr()->parameters(), torch::optim::AdamOptions(rate));
    }
    void run(int kind, int from, int to) {
      for (int i = from; i < to; ++i) {
        if (kind == 0 && i == 2) { optimizer->param_groups()[0].options().set_lr(0.03); }
        if (kind == 1 && i == 2) { optimizer = made(0.03); }
        train(network, *optimizer, i, i + 1);
        if (kind == 2) { scheduler->step(); }
      }
    }
    sw::variable_list variables() {
      return sw::variables({{"state", state_of(network, *optimizer)}, {"scheduler", sw::libtorch::variables(*scheduler)}});
    }
  };
  for (const int kind : {0, 1, 2}) {
    trainee whole;
    whole.run(kind, 0, 6);
    trainee first;
    first.run(kind, 0, 3);
    const auto taken = captured(first.variables());
    trainee second;
    sw::restore(second.variables(), taken);
    second.run(kind, 3, 6);
    CHECK(bytes_of(second.variables()) == bytes_of(whole.variables()));
  }
}

TEST_CASE("a parameter group that was added during the training is lost with a warning that names its parameters", "[torch]") {
  const sw::test::log_capture log;
  growing first;
  CHECK(captured(first.variables()).find("param_groups/parameters")->strings[0] == "1/weight\n1/bias\n");
  first.add();
  const auto taken = captured(first.variables());
  growing second;
  sw::restore(second.variables(), taken);
  REQUIRE(log.messages().size() == 1);
  CHECK(log.messages()[0].level == sw::log_level::warning);
  CHECK_THAT(log.messages()[0].text, ContainsSubstring("not restored: 0/bias, 0/weight. If add_param_group adds a group"));
  growing third;
  third.add();
  sw::restore(third.variables(), taken);
  CHECK(log.messages().size() == 1);
}

TEST_CASE("a module that is registered twice has one state in the optimiser, and resumes with the same bits", "[torch]") {
  torch::set_num_threads(1);
  struct twice : torch::nn::Module {
    torch::nn::Linear layer = torch::nn::Linear(3, 2);
    twice() {
      torch::manual_seed(1);
      layer = register_module("a", torch::nn::Linear(3, 2));
      register_module("b", layer);
    }
  };
  struct trainee {
    twice network;
    torch::optim::Adam optimizer{network.parameters(), torch::optim::AdamOptions(0.1)};
    void run(int steps) {
      for (int i = 0; i < steps; ++i) {
        optimizer.zero_grad();
        network.layer->forward(torch::ones({1, 3})).pow(2).sum().backward();
        optimizer.step();
      }
    }
    sw::variable_list variables() {
      return sw::variables({{"network", sw::libtorch::variables(network)}, {"adam", sw::libtorch::variables(optimizer, network)}});
    }
  };
  trainee first;
  REQUIRE(first.network.parameters().size() == 4);
  CHECK(first.variables().size() == 4 + 2 * 3 + 6);
  first.run(2);
  const auto taken = captured(first.variables());
  first.run(2);
  trainee second;
  sw::restore(second.variables(), taken);
  second.run(2);
  CHECK(bytes_of(second.variables()) == bytes_of(first.variables()));
}
