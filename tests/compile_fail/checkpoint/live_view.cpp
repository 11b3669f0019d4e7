// expect: stepwell: a saver takes a snapshot; a live view could change while it is written
// SPDX-License-Identifier: Apache-2.0
#include <stepwell/base/variable.hpp>
#include <stepwell/checkpoint/saver.hpp>

int main() {
  float weight = 1;
  stepwell::saver saver("run");
  saver.save(stepwell::variables({{"weight", weight}}));
}
