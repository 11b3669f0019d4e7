# SPDX-License-Identifier: Apache-2.0
#
# A draft: no release is published, and nobody has built stepwell on macOS. `url` and `sha256` of a release are missing.
class Stepwell < Formula
  desc "Monitored training sessions for C++20"
  homepage "https://stepwell.invalid/"
  license "Apache-2.0"
  head "file://#{File.expand_path("../..", __dir__)}", using: :git

  depends_on "cmake" => [:build, :test]
  depends_on "ninja" => :build
  depends_on "xtl" => :build
  depends_on "xsimd" => :build
  depends_on "boost"
  depends_on "cli11" => :build
  depends_on "fmt"
  depends_on "isa-l"
  depends_on "libarchive"
  depends_on "nlohmann-json" => :build
  depends_on "protobuf"
  depends_on "snappy"

  uses_from_macos "zlib"

  def install
    system "cmake", "-S", ".", "-B", "build", "-G", "Ninja",
           "-DSTEPWELL_BUILD_TESTS=OFF", "-DSTEPWELL_BUILD_EXAMPLES=OFF", "-DSTEPWELL_BUILD_BOARD=ON",
           "-DBUILD_SHARED_LIBS=ON", *std_cmake_args
    system "cmake", "--build", "build"
    system "cmake", "--install", "build"
  end

  test do
    (testpath/"CMakeLists.txt").write <<~CMAKE
      cmake_minimum_required(VERSION 3.25)
      project(trainer LANGUAGES CXX)
      find_package(stepwell REQUIRED)
      add_executable(trainer trainer.cpp)
      target_link_libraries(trainer PRIVATE stepwell::stepwell)
    CMAKE
    (testpath/"trainer.cpp").write <<~CPP
      #include <stepwell/stepwell.hpp>
      struct counter {
        int steps = 0;
        int step() { return ++steps; }
        auto variables() { return stepwell::variables({{"steps", steps}}); }
      };
      int main() {
        counter model;
        auto session = stepwell::monitored_training_session(model, {}, stepwell::stop_at_step_hook{{.last_step = 10}});
        for ([[maybe_unused]] const auto& step : session.steps()) {}
        session.close();
        return model.steps == 10 ? 0 : 1;
      }
    CPP
    system "cmake", "-S", ".", "-B", "build"
    system "cmake", "--build", "build"
    system "./build/trainer"
    assert_match version.to_s, shell_output("#{bin}/stepwell --version") if build.stable?
  end
end
