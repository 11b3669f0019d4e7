// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <boost/program_options.hpp>

#include <charconv>
#include <limits>
#include <sstream>
#include <vector>

namespace digits {
namespace {

namespace po = boost::program_options;

/// A whole-number option. It rejects inputs that Boost accepts: signs of unsigned numbers, and values out of range.
template<class Target>  // an integer, or an optional one
struct number {
  std::string name;
  Target& target;
  std::int64_t low;
  std::int64_t high;

  void operator()(const std::string& text) const {
    std::int64_t value = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failed != std::errc{} || end != text.data() + text.size() || value < low || value > high) {
      throw usage_error("--" + name + " must be a whole number from " + std::to_string(low) + " to " + std::to_string(high) + ", not '" +
                        text + "'");
    }
    target = static_cast<Target>(value);
  }
};

constexpr std::int64_t any = std::numeric_limits<std::int64_t>::max();

template<class Target>
auto whole(const char* name, Target& target, std::int64_t low, std::int64_t high) {
  return po::value<std::string>()->value_name("N")->notifier(number<Target>{name, target, low, high});
}

po::options_description description(options& into) {
  const auto with_default = [](const char* text, const auto& value) {
    std::ostringstream line;
    line << text << " (" << value << ")";
    return line.str();
  };
  const auto add = [](po::options_description& all, const char* name, const po::value_semantic* value, const std::string& text) {
    all.add_options()(name, value, text.c_str());
  };
  po::options_description all(
      "digits: learns to read handwritten digits, and resumes where it was stopped\n\nOptions, with their defaults");
  add(all, "run-dir", po::value(&into.run_dir)->value_name("DIR"),
      with_default("the directory of checkpoints and event files", into.run_dir));
  add(all, "steps", whole("steps", into.steps, 1, any), with_default("the step to stop at", into.steps));
  add(all, "epochs", whole("epochs", into.epochs, 1, 1'000'000),
      "the number of epochs to stop after, if --steps is not reached before (no limit)");
  add(all, "data", po::value(&into.data)->value_name("DIR"), "MNIST's four files, unpacked (rendered into RUN-DIR/data)");
  add(all, "batch-size", whole("batch-size", into.batch_size, 1, 100'000), with_default("examples per step", into.batch_size));
  add(all, "hidden", whole("hidden", into.hidden, 1, 100'000), with_default("units of the hidden layer", into.hidden));
  add(all, "seed", whole("seed", into.seed, 0, any), with_default("seed of the initial weights and of the order of examples", into.seed));
  add(all, "save-steps", whole("save-steps", into.save_steps, 0, any),
      with_default("steps between checkpoints, 0 for none", into.save_steps));
  add(all, "threads", whole("threads", into.threads, 1, 1024), with_default("threads of a matrix product", into.threads));
  add(all, "group", po::bool_switch(&into.group),
      "train with all processes that mpirun has started; the data must be there, from --data or from an earlier run");
  all.add_options()("help", "print this text");
  return all;
}

}  // namespace

std::optional<options> parse_options(int count, const char* const* arguments) {
  options parsed;
  const auto known = description(parsed);
  po::variables_map found;
  try {
    constexpr auto style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    const po::positional_options_description nothing_bare;
    po::store(po::command_line_parser(count, arguments).options(known).style(style).positional(nothing_bare).run(), found);
    if (found.count("help") != 0) { return std::nullopt; }
    po::notify(found);
  } catch (const po::error& wrong) { throw usage_error(wrong.what()); }
  if (parsed.run_dir.empty()) { throw usage_error("--run-dir must name a directory"); }
  return parsed;
}

std::string help_text() {
  options defaults;
  std::ostringstream text;
  text << description(defaults);
  return text.str();
}

}  // namespace digits
