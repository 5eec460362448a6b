"""A stand-in for Spack, which is in no registry of packages: it loads a recipe, notes its directives, and runs its phases as Spack's builder for makefiles does."""

import importlib.util
import os
import subprocess
import sys
import types
from pathlib import Path

DIRECTIVES = ("license", "version", "variant", "provides", "depends_on", "conflicts", "requires")
SECONDS = 3000


class Directives:
    def __init__(self):
        self.notes = {name: [] for name in DIRECTIVES}

    def directive(self, name: str):
        return lambda *words, **options: self.notes[name].append((words, options))


class MakefilePackage:
    """What the recipe inherits."""


class Executable:
    def __init__(self, path: str):
        self.path = path

    def __call__(self, *words, output=None, error=None) -> str:
        assert (output, error) == (str, str), "the recipe wants the output as text"
        return subprocess.run([self.path, *words], capture_output=True, text=True, check=True).stdout


class Environment(dict):
    def set(self, name: str, value) -> None:
        self[name] = str(value)


class Spec:
    """A specification with or without Fortran."""

    def __init__(self, fortran: bool):
        self.fortran = fortran

    def satisfies(self, text: str) -> bool:
        return {"+fortran": self.fortran, "~fortran": not self.fortran}[text]


class Prefix(str):
    bin = property(lambda self: Prefix(f"{self}/bin"))
    lib = property(lambda self: Prefix(f"{self}/lib"))
    include = property(lambda self: Prefix(f"{self}/include"))


def find(names: str, root: str, ending: str, recursive: bool) -> list[str]:
    return [str(path) for path in (Path(root).rglob if recursive else Path(root).glob)(f"{names}{ending}")]


class Recipe:
    def __init__(self, package: type, directives: Directives):
        self.package, self.directives = package, directives

    def said(self, name: str) -> list[str]:
        return [words[0] for words, _ in self.directives.notes[name]]

    def installed(self, source: Path, folder: Path, fortran: bool) -> "Installed":
        package = self.package()
        package.prefix, package.spec = Prefix(folder / "prefix"), Spec(fortran)
        package.stage = types.SimpleNamespace(path=str(folder / "stage"))
        package.module = types.SimpleNamespace(spack_fc="gfortran")
        variables = Environment()
        package.setup_build_environment(variables)
        if set(variables) != {"CARGO_HOME"} or not variables["CARGO_HOME"].startswith(package.stage.path):
            raise AssertionError(f"the build's environment is {variables}")
        # Crates are compiled already, from the user's own home of Cargo.
        environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "FC")}
        for targets in (package.build_targets, package.install_targets):
            ran = subprocess.run(["make", *targets], cwd=source, env=environment, capture_output=True, text=True, timeout=SECONDS)
            if ran.returncode != 0:
                raise AssertionError(f"make {' '.join(targets)} ended with {ran.returncode}\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}")
        return Installed(package)


class Installed:
    def __init__(self, package):
        self.package, self.spec = package, package.spec
        package.setup_dependent_package(None, None)

    def dependent_environment(self, CC, CXX, FC) -> dict:
        """The variables of a build of another package, by these compilers."""
        compilers = {"spack_cc": CC, "spack_cxx": CXX, "spack_fc": FC}
        module = types.SimpleNamespace(**{name: path for name, path in compilers.items() if path})
        variables = Environment()
        dependent = types.SimpleNamespace(package=types.SimpleNamespace(module=module))
        self.package.setup_dependent_build_environment(variables, dependent)
        return dict(variables)


def load(path: Path) -> Recipe:
    directives = Directives()
    names = {name: directives.directive(name) for name in DIRECTIVES}
    names |= {
        "Executable": Executable, "EnvironmentModifications": Environment, "Spec": Spec, "join_path": lambda *parts: "/".join(map(str, parts)),
        "find_libraries": lambda names, root, shared, recursive: find(names, root, ".so", recursive),
        "find_headers": lambda names, root, recursive: find(names, root, ".h", recursive),
    }
    modules = {name: types.ModuleType(name) for name in ("spack", "spack.package", "spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems",
                                                         "spack_repo.builtin.build_systems.makefile")}
    modules["spack.package"].__dict__.update(names)
    modules["spack_repo.builtin.build_systems.makefile"].MakefilePackage = MakefilePackage
    before = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    try:
        spec = importlib.util.spec_from_file_location("fishplate_recipe", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        for name, module_before in before.items():
            sys.modules.pop(name)
            if module_before is not None:
                sys.modules[name] = module_before
    return Recipe(module.Fishplate, directives)
