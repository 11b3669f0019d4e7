// SPDX-License-Identifier: Apache-2.0
//
// A thousand runs for counting instructions: `absent_points alone|beside|busy`. One hook works in every run: alone,
// with six hooks that have no point inside a run, or with six hooks that count runs.
#include "support/idle_hooks.hpp"

#include <stepwell/model/model_session.hpp>

#include <string_view>

namespace sw = stepwell;

namespace {

/// A hook whose only point is outside of a run.
template<int Number>
struct begins_only {
  int begun = 0;
  void begin() { ++begun; }
};

template<int Number>
struct counts_runs {
  long runs = 0;
  void after_run(auto&, const auto&) { ++runs; }
};

}  // namespace

/// All of a run, in one function: compilers decide by the size of a session what they inline.
template<class Session>
[[gnu::noinline, gnu::flatten]] void one_run(Session& session) {
  session.run(0.5f);
}
template<class Session>
[[gnu::noinline]] void measured_runs(Session& session) {
  for (int i = 0; i < 1000; ++i) { one_run(session); }
}

int main(int count, char** arguments) {
  using working = sw::test::idle_hook<1>;
  const sw::cadence never{.every_steps = sw::test::far_away};
  sw::test::tiny_model model;
  if (count != 2) { return 2; }
  const std::string_view kind = arguments[1];
  if (kind == "alone") {
    sw::monitored_session session(model, working{never});
    measured_runs(session);
  } else if (kind == "beside") {
    sw::monitored_session session(model, begins_only<1>{}, begins_only<2>{}, begins_only<3>{}, working{never}, begins_only<4>{},
                                  begins_only<5>{}, begins_only<6>{});
    measured_runs(session);
  } else {
    sw::monitored_session session(model, counts_runs<1>{}, counts_runs<2>{}, counts_runs<3>{}, working{never}, counts_runs<4>{},
                                  counts_runs<5>{}, counts_runs<6>{});
    measured_runs(session);
  }
}
