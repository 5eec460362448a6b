"""Renders a recipe of conda by rattler-build, and prints a line for each system: name and version of the package, and what builds it."""

import sys

from rattler_build import PlatformConfig, RenderConfig, Stage0Recipe, VariantConfig

SYSTEMS = ("linux-64", "linux-aarch64")
# What conda-forge pins.
PINNED = {"c_compiler": ["gcc"], "c_stdlib": ["sysroot"], "rust_compiler": ["rust"]}

recipe = Stage0Recipe.from_file(sys.argv[1])
for system in SYSTEMS:
    config = RenderConfig(platform=PlatformConfig(target_platform=system, build_platform=system, host_platform=system))
    for variant in recipe.render(VariantConfig(PINNED), config):
        found = variant.recipe.to_dict()
        print(f"{system}: {found['package']['name']} {found['package']['version']} by {', '.join(found['requirements']['build'])}")
