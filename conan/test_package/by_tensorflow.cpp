// SPDX-License-Identifier: Apache-2.0
#include <stepwell/base/error.hpp>
#include <stepwell/tensorflow/runtime.hpp>
#include <stepwell/tensorflow/training.hpp>

#include <cstdio>
#include <string>

int main() {
  try {
    std::printf("TensorFlow %s\n", stepwell::tensorflow::runtime::open().version().c_str());
    return 0;
  } catch (const stepwell::not_found_error& failure) {
    const std::string text = failure.what();
    std::printf("%s\n", text.c_str());
    return text.find("pip install tensorflow-cpu") != std::string::npos ? 0 : 1;
  }
}
