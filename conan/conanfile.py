# SPDX-License-Identifier: Apache-2.0
#
# The Conan recipe: `conan create conan -pr:a conan/profiles/debian12` from the root of the project. It uses the sources of the project.
import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load
from conan.tools.scm import Version

required_conan_version = ">=2.0"


class StepwellConan(ConanFile):
    name = "stepwell"
    description = "Monitored training sessions for C++20: hooks, checkpoints, summaries and recovery around a training loop"
    license = "Apache-2.0"
    topics = ("machine-learning", "training", "checkpoint", "tensorboard", "coroutines")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {
        "shared": [True, False],
        "fPIC": [True, False],
        "module": [True, False],  # import stepwell;
        "tool": [True, False],    # the program `stepwell`
        "with_eigen": [True, False],
        "with_xtensor": [True, False],
        "with_torch": [True, False],
        "with_mpi": [True, False],
        "with_board": [True, False],
        "with_tensorflow": [True, False],  # loads TensorFlow's library at run time; needs nothing of it to build
    }
    default_options = {"shared": False, "fPIC": True, "module": False, "tool": False, "with_eigen": False,
                       "with_xtensor": False, "with_torch": False, "with_mpi": False, "with_board": False,
                       "with_tensorflow": False}

    def set_version(self):
        root = os.path.join(self.recipe_folder, os.pardir, "CMakeLists.txt")
        self.version = re.search(r"project\(stepwell VERSION ([0-9.]+)", load(self, root)).group(1)

    def export_sources(self):
        root = os.path.join(self.recipe_folder, os.pardir)
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "modules/*", "src/*"):
            copy(self, pattern, src=root, dst=self.export_sources_folder)

    def config_options(self):
        if self.settings.os == "Windows":
            del self.options.fPIC

    def configure(self):
        if self.options.shared:
            self.options.rm_safe("fPIC")

    def requirements(self):
        # Each range ends before the first major version that was never tested.
        self.requires("boost/[>=1.81 <2]", transitive_headers=True)  # Asio, headers only
        self.requires("protobuf/[>=3.21 <8]")
        self.requires("xsimd/[>=8.1 <15]")
        self.requires("xtl/[>=0.7.2 <0.9]")
        self.requires("fmt/[>=9 <13]")
        self.requires("snappy/[>=1.1.9 <2]")
        self.requires("zlib/[>=1.2.11 <2]")
        self.requires("isa-l/[>=2.30 <3]")
        self.requires("nlohmann_json/[>=3.11 <4]")
        if self.options.tool:
            self.requires("cli11/[>=2.1 <3]")
            self.requires("libarchive/[>=3.6 <4]")
        if self.options.with_eigen:
            self.requires("eigen/[>=3.4 <6]", transitive_headers=True)
        if self.options.with_xtensor:
            self.requires("xtensor/[>=0.24 <0.28]", transitive_headers=True)
        if self.options.with_torch:
            self.requires("libtorch/[>=1.13 <3]", transitive_headers=True, transitive_libs=True)

        if self.options.with_mpi:
            self.requires("openmpi/[>=4.1 <6]")

    def build_requirements(self):
        self.tool_requires("cmake/[>=3.25 <5]")
        self.tool_requires("protobuf/<host_version>")

    def layout(self):
        cmake_layout(self)

    def validate(self):
        check_min_cppstd(self, 20)
        if self.settings.os not in ("Linux", "FreeBSD", "Macos"):  # nobody has built it on FreeBSD or macOS yet
            raise ConanInvalidConfiguration(f"stepwell needs a system with flock, pwrite and fsync of directories; {self.settings.os} is not supported")
        compiler, version = str(self.settings.compiler), Version(self.settings.compiler.version)
        oldest = {"gcc": "12", "clang": "17", "apple-clang": "16"}.get(compiler)
        if oldest is None or version < oldest:
            raise ConanInvalidConfiguration(f"stepwell needs g++ 12, clang 17, Apple clang 16, or newer; this is {compiler} {version}")
        if self.options.module and (compiler != "clang" or version < "19"):
            raise ConanInvalidConfiguration(
                f"stepwell's module needs clang 19 or newer; this is {compiler} {version}. Set stepwell/*:module=False and include "
                "the headers")

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["STEPWELL_BUILD_TESTS"] = False
        toolchain.cache_variables["STEPWELL_BUILD_EXAMPLES"] = False
        toolchain.cache_variables["STEPWELL_BUILD_MODULE"] = bool(self.options.module)
        toolchain.cache_variables["STEPWELL_BUILD_TOOL"] = bool(self.options.tool)
        toolchain.cache_variables["STEPWELL_BUILD_EIGEN"] = bool(self.options.with_eigen)
        toolchain.cache_variables["STEPWELL_BUILD_XTENSOR"] = bool(self.options.with_xtensor)
        toolchain.cache_variables["STEPWELL_BUILD_TORCH"] = bool(self.options.with_torch)
        toolchain.cache_variables["STEPWELL_BUILD_MPI"] = bool(self.options.with_mpi)
        toolchain.cache_variables["STEPWELL_BUILD_BOARD"] = bool(self.options.with_board)
        toolchain.cache_variables["STEPWELL_BUILD_TENSORFLOW"] = bool(self.options.with_tensorflow)
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", src=self.source_folder, dst=os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        # The package's own CMake configuration files are used, also for the module.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs.append(os.path.join("lib", "cmake", "stepwell"))
        if self.options.tool:
            self.runenv_info.prepend_path("PATH", os.path.join(self.package_folder, "bin"))
