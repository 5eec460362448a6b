from pathlib import Path

from spack_repo.builtin.build_systems.makefile import MakefilePackage

from spack.package import *


class Fishplate(MakefilePackage):
    """MPI library behind the standard ABI of MPI 5.0, its launcher, benchmarks, and modelled machines on which programs run in virtual time.

    RDMA devices are used by the libibverbs and librdmacm of the host, which are opened when a job starts."""

    # The checkout that has this recipe.
    git = f"file://{Path(__file__).resolve().parents[2]}"

    license("MIT OR Apache-2.0", checked_by="fishplate")

    version("main", branch="main")
    version("0.2.0", tag="v0.2.0", preferred=True)

    variant("fortran", default=True, description="Build the modules mpi_f08 and mpi for the Fortran compiler of the specification")

    provides("mpi@:5.0")

    depends_on("c", type="build")
    depends_on("fortran", type="build", when="+fortran")
    depends_on("rust@1.88:", type="build")
    depends_on("gmake", type="build")

    conflicts("platform=darwin", msg="Fishplate runs on Linux")
    conflicts("platform=windows", msg="Fishplate runs on Linux")
    requires("target=x86_64:", "target=aarch64:", policy="one_of", msg="Fishplate runs on x86-64 and aarch64")

    executables = ["^fishplate$"]

    @classmethod
    def determine_version(cls, exe):
        words = Executable(exe)("--version", output=str, error=str).split()
        return words[1].rstrip(",") if words[:1] == ["fishplate"] else None

    def setup_build_environment(self, env: EnvironmentModifications) -> None:
        # Crates are fetched into the stage, not into the user's home.
        env.set("CARGO_HOME", join_path(self.stage.path, "cargo"))

    @property
    def build_targets(self):
        return ["library", "command"]

    @property
    def install_targets(self):
        # With FC the modules are built ahead, without it by each user's first mpifort.
        compiler = self.module.spack_fc if self.spec.satisfies("+fortran") else ""
        return ["install", f"PREFIX={self.prefix}", f"FC={compiler}"]

    @property
    def libs(self):
        return find_libraries("libmpi_abi", root=self.prefix.lib, shared=True, recursive=False)

    @property
    def headers(self):
        return find_headers("mpi", root=self.prefix.include, recursive=False)

    def wrappers(self) -> dict:
        """The compilers of MPI programs, by the variables of build systems."""
        found = {"MPICC": "mpicc", "MPICXX": "mpicxx"}
        if self.spec.satisfies("+fortran"):
            found |= {"MPIFC": "mpifort", "MPIF90": "mpif90", "MPIF77": "mpif77"}
        return {variable: join_path(self.prefix.bin, name) for variable, name in found.items()}

    def setup_run_environment(self, env: EnvironmentModifications) -> None:
        for variable, wrapper in self.wrappers().items():
            env.set(variable, wrapper)

    def setup_dependent_build_environment(self, env: EnvironmentModifications, dependent_spec: Spec) -> None:
        self.setup_run_environment(env)
        # The wrappers call the compilers of the package that is built.
        module = dependent_spec.package.module
        for variable, compiler in (("MPICC_CC", "spack_cc"), ("MPICXX_CXX", "spack_cxx"), ("MPIFORT_FC", "spack_fc")):
            if hasattr(module, compiler):
                env.set(variable, getattr(module, compiler))

    def setup_dependent_package(self, module, dependent_spec: Spec) -> None:
        self.spec.mpicc = self.wrappers()["MPICC"]
        self.spec.mpicxx = self.wrappers()["MPICXX"]
        if self.spec.satisfies("+fortran"):
            self.spec.mpifc = self.wrappers()["MPIF90"]
            self.spec.mpif77 = self.wrappers()["MPIF77"]

    def check(self) -> None:
        """`make test` installs packages of the system, so it is not run here."""
