# SPDX-License-Identifier: Apache-2.0
#
# Builds a program against the package: by header, and by import where the package has the module.
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
        toolchain.cache_variables["WITH_MODULE"] = bool(self.dependencies["stepwell"].options.module)
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        if can_run(self):
            for program in ("by_header", "by_import"):
                path = os.path.join(self.cpp.build.bindir, program)
                if os.path.exists(path):
                    self.run(path, env="conanrun")
