# SPDX-License-Identifier: Apache-2.0
#
# Builds programs that use the package: by header, and, if the package has them, by import, with Eigen, with xtensor, with LibTorch and with TensorFlow.
import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout


class StepwellTest(ConanFile):
    settings = "os", "arch", "compiler", "build_type"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        options = self.dependencies["stepwell"].options
        toolchain.cache_variables["WITH_MODULE"] = bool(options.module)
        toolchain.cache_variables["WITH_EIGEN"] = bool(options.with_eigen)
        toolchain.cache_variables["WITH_XTENSOR"] = bool(options.with_xtensor)
        toolchain.cache_variables["WITH_TORCH"] = bool(options.with_torch)
        toolchain.cache_variables["WITH_TENSORFLOW"] = bool(options.with_tensorflow)
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        if can_run(self):
            for program in ("by_header", "by_import", "by_eigen", "by_xtensor", "by_torch", "by_tensorflow"):
                path = os.path.join(self.cpp.build.bindir, program)
                if os.path.exists(path):
                    self.run(path, env="conanrun")
