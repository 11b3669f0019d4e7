// SPDX-License-Identifier: Apache-2.0
#include "digits_graph.hpp"

#include <stepwell/base/random.hpp>
#include <stepwell/tensorflow/graph_builder.hpp>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace digits {
namespace {

namespace sw = stepwell;
namespace tf = stepwell::tensorflow;

constexpr std::int64_t pixels = 784;
constexpr std::int64_t classes = 10;

/// A matrix of random weights from -limit to limit.
tf::tensor random_weights(std::int64_t inputs, std::int64_t outputs, float limit, sw::random_stream random) {
  tf::tensor made(sw::dtype::float32, {inputs, outputs});
  for (auto& one : made.span<float>()) { one = limit * static_cast<float>(2.0 * random.uniform() - 1.0); }
  return made;
}

/// The graph while it is built.
class network {
public:
  network(std::int64_t hidden_size, std::uint64_t seed)
      : hidden_size_(hidden_size), seed_(seed), rows_(build_.constant("rows", tf::tensor(std::vector<std::int32_t>{0}))) {}

  tf::graph build() && {
    const tf::output images = placeholder("images", sw::dtype::float32, {-1, pixels});
    const tf::output labels = placeholder("labels", sw::dtype::int32, {-1});
    // He's limit for a layer with ReLU, Glorot's for the other one.
    const float he = std::sqrt(6.0F / static_cast<float>(pixels));
    const float glorot = std::sqrt(6.0F / static_cast<float>(hidden_size_ + classes));
    const auto sums = dense("hidden", images, random_weights(pixels, hidden_size_, he, sw::random_stream(seed_, 0)));
    const tf::output active = build_.add("Relu", "hidden/active").input(sums);
    const auto logits = dense("output", active, random_weights(hidden_size_, classes, glorot, sw::random_stream(seed_, 1)));
    learn(score(logits, labels));
    return std::move(build_).finish();
  }

private:
  tf::output placeholder(const char* name, sw::dtype type, const sw::tensor_shape& shape) {
    return build_.add("Placeholder", name).attr("dtype", type).attr("shape", shape);
  }
  tf::output scalar(const std::string& name, float value) { return build_.constant(name, tf::tensor(value)); }
  tf::output mean(const char* name, const tf::output& of) { return build_.add("Mean", name).input(of).input(rows_); }

  /// Adds inputs * kernel + bias.
  tf::output dense(const std::string& name, const tf::output& inputs, const tf::tensor& kernel) {
    const auto width = kernel.shape()[1];
    const auto weights = add_parameter(name + "/kernel", kernel);
    const auto bias = add_parameter(name + "/bias", tf::tensor(sw::dtype::float32, {width}));
    const tf::output product = build_.add("MatMul", name + "/product").input(inputs).input(weights);
    return build_.add("BiasAdd", name + "/sums").input(product).input(bias);
  }
  tf::output add_parameter(const std::string& name, const tf::tensor& initial) {
    const auto made = build_.variable(name, initial);
    parameters_.push_back({name, made, initial.shape()});
    return made.value;
  }

  /// Adds the mean cross-entropy and the accuracy, and their summaries. Returns the cross-entropy.
  tf::output score(const tf::output& logits, const tf::output& labels) {
    const tf::output wanted = build_.add("OneHot", "wanted")
                                  .input(labels)
                                  .input(build_.constant("classes", tf::tensor(static_cast<std::int32_t>(classes))))
                                  .input(scalar("one", 1))
                                  .input(scalar("zero", 0));
    const tf::output likelihood = build_.add("LogSoftmax", "log_likelihood").input(logits);
    const tf::output chosen = build_.add("Mul", "chosen").input(wanted).input(likelihood);
    const tf::output columns = build_.constant("columns", tf::tensor(std::vector<std::int32_t>{1}));
    const tf::output sum = build_.add("Sum", "log_likelihood_of_labels").input(chosen).input(columns);
    const tf::output loss = build_.add("Neg", "loss").input(mean("mean_log_likelihood", sum));

    const tf::output column = build_.constant("column", tf::tensor(std::int32_t{1}));
    const tf::output found = build_.add("ArgMax", "found").input(logits).input(column).attr("output_type", sw::dtype::int32);
    const tf::output is_right = build_.add("Equal", "is_right").input(found).input(labels);
    const tf::output accuracy = mean("accuracy", build_.add("Cast", "rightness").input(is_right).attr("DstT", sw::dtype::float32));
    const std::vector<tf::output> summaries = {summary("train/loss", loss), summary("train/accuracy", accuracy)};
    build_.add("MergeSummary", "summaries").inputs(summaries).build();
    build_.add_to_collection("summary_op", "summaries:0");
    return loss;
  }
  tf::output summary(const std::string& tag, const tf::output& value) {
    return build_.add("ScalarSummary", tag).input(build_.constant(tag + "/tag", tf::tensor(tag))).input(value);
  }

  /// Adds the gradients, Adam's updates of all parameters, and the train operation, which also counts the step.
  void learn(const tf::output& loss) {
    std::vector<tf::output> values;
    for (const auto& one : parameters_) { values.push_back(one.variable.value); }
    const auto gradients = build_.gradients({loss}, values);
    const auto rate = scalar("learning_rate", 3e-4F);
    const auto beta1 = scalar("beta1", 0.9F);
    const auto beta2 = scalar("beta2", 0.999F);
    const auto epsilon = scalar("epsilon", 1e-8F);
    const auto power1 = build_.variable("beta1_power", tf::tensor(0.9F));
    const auto power2 = build_.variable("beta2_power", tf::tensor(0.999F));
    std::vector<tf::operation> updates;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const auto& [name, variable, shape] = parameters_[i];
      const auto first = build_.variable(name + "/Adam", tf::tensor(sw::dtype::float32, shape));
      const auto second = build_.variable(name + "/Adam_1", tf::tensor(sw::dtype::float32, shape));
      auto update = build_.add("ResourceApplyAdam", name + "/update");
      for (const auto& input : {variable.handle, first.handle, second.handle, power1.value, power2.value, rate, beta1, beta2, epsilon}) {
        update.input(input);
      }
      updates.push_back(update.input(gradients[i]).build());
    }
    const std::vector<tf::operation> powers = {next_power(power1, beta1, updates), next_power(power2, beta2, updates)};
    count_step(powers);
  }
  /// Multiplies a power of beta, after all updates have read it.
  tf::operation next_power(const tf::graph_variable& power, const tf::output& beta, const std::vector<tf::operation>& updates) {
    const auto name = power.handle.operation().name();
    const tf::output product = build_.add("Mul", name + "/next").input(power.value).input(beta);
    auto assign = build_.add("AssignVariableOp", name + "/update");
    assign.input(power.handle).input(product);
    for (const auto& one : updates) { assign.control_input(one); }
    return assign.build();
  }
  void count_step(const std::vector<tf::operation>& after) {
    const auto step = build_.variable("global_step", tf::tensor(std::int64_t{0}));
    auto count = build_.add("AssignAddVariableOp", "train_op");
    count.input(step.handle).input(build_.constant("one_step", tf::tensor(std::int64_t{1})));
    for (const auto& one : after) { count.control_input(one); }
    count.build();
    build_.add_to_collection("train_op", "train_op");
  }

  struct parameter {
    std::string name;
    tf::graph_variable variable;
    sw::tensor_shape shape;
  };

  tf::graph_builder build_;
  std::int64_t hidden_size_;
  std::uint64_t seed_;
  std::vector<parameter> parameters_;
  tf::output rows_;
};

}  // namespace

tf::graph make_graph(std::size_t hidden_size, std::uint64_t seed) { return network(static_cast<std::int64_t>(hidden_size), seed).build(); }

std::vector<std::string> variable_names() {
  std::vector<std::string> names = {"beta1_power", "beta2_power"};
  for (const std::string parameter : {"hidden/kernel", "hidden/bias", "output/kernel", "output/bias"}) {
    for (const char* const slot : {"", "/Adam", "/Adam_1"}) { names.push_back(parameter + slot); }
  }
  return names;
}

}  // namespace digits
