# SPDX-License-Identifier: Apache-2.0

import os

from spack.package import *


class Stepwell(CMakePackage):
    """Monitored training sessions for C++20: hooks, checkpoints, summaries and recovery around a training loop."""

    homepage = "https://stepwell.invalid/"  # no release is published: build with `dev_path`, as docs/how_to/build-with-it.md shows
    license("Apache-2.0")

    version("0.1.0")

    variant("shared", default=True, description="Build a shared library")
    variant("tool", default=True, description="Build the program stepwell")
    variant("board", default=False, description="Build the board, a page in a browser that shows a run")
    variant("eigen", default=False, description="Install the adapter for Eigen")
    variant("xtensor", default=False, description="Install the adapter for xtensor")
    variant("torch", default=False, description="Build the adapter for LibTorch")
    variant("tensorflow", default=False, description="Build sessions over graphs of TensorFlow")
    variant("mpi", default=False, description="Build groups of processes that MPI connects")

    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")

    depends_on("boost@1.81: +system")
    depends_on("protobuf@3.21:")
    depends_on("xsimd@8.1:")
    depends_on("xtl@0.7.2:")
    depends_on("fmt@9:")
    depends_on("snappy@1.1.9:")
    depends_on("zlib-api")
    depends_on("isa-l@2.30:")
    depends_on("nlohmann-json@3.11:")
    depends_on("cli11@2.1:", when="+tool")
    depends_on("libarchive@3.6:", when="+tool")
    depends_on("eigen@3.4:", when="+eigen")
    depends_on("xtensor@0.24:", when="+xtensor")
    depends_on("py-torch@1.13:", when="+torch")
    depends_on("mpi@3:", when="+mpi")

    conflicts("%gcc@:11", msg="stepwell needs g++ 12 or later")
    conflicts("%clang@:16", msg="stepwell needs clang 17 or later")
    conflicts("platform=windows")

    generator("ninja")

    def cmake_args(self):
        args = [
            self.define("STEPWELL_BUILD_TESTS", False),
            self.define("STEPWELL_BUILD_EXAMPLES", False),
            self.define_from_variant("BUILD_SHARED_LIBS", "shared"),
        ]
        for part in ("tool", "board", "eigen", "xtensor", "torch", "tensorflow", "mpi"):
            args.append(self.define_from_variant("STEPWELL_BUILD_" + part.upper(), part))
        if self.spec.satisfies("+torch"):
            torch = os.path.join(python_platlib, "torch", "share", "cmake", "Torch")
            args.append(self.define("Torch_DIR", os.path.join(self.spec["py-torch"].prefix, torch)))
        return args
