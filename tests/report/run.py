#!/usr/bin/env python3
"""Opens pages of results in headless Chromium: they draw, their series can be switched, and they complain of nothing.

    tests/report/run.py [--prefix build] [--only TEXT] [--list] [--pictures FOLDER] [--profile NAME]

The pages are one with every kind of block (crates/report/examples/gallery.rs) and one of a study. `--pictures` keeps pictures of
them, light and dark, narrow and wide. Without Chromium (Debian's package `chromium`) nothing is run, and the suite says so.
The last line is `N passed, N failed, N skipped`.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))
import harness  # noqa: E402
from browser import Browser, installed  # noqa: E402
from harness import Case, Problem  # noqa: E402

NARROW, WIDE = 360, 1400
SECONDS = 600
STUDY = ["study", "pcie", "--quick"]

# Plots, and traces that are drawn: lines, marks and bars.
DRAWN = """[...document.querySelectorAll('.plot')].map((plot) =>
  [plot.querySelectorAll('.main-svg').length, plot.querySelectorAll('.scatterlayer .trace, .barlayer .trace').length])"""
# Traces that the figures of the page ask for, by plot.
ASKED = "JSON.parse(document.getElementById('figures').textContent).map((figure) => figure.data.length)"
# Tick labels of one axis that overlap, as pairs of texts.
OVERLAPS = """[...document.querySelectorAll('.plot')].flatMap((plot) => ['.xtick', '.ytick'].flatMap((axis) => {
  const labels = [...plot.querySelectorAll(axis)].map((tick) => [tick.textContent, tick.getBoundingClientRect()]);
  return labels.slice(1).filter(([_, box], at) => {
    const before = labels[at][1];
    return box.left < before.right && before.left < box.right && box.top < before.bottom && before.top < box.bottom;
  }).map(([text]) => text);
}))"""
# Axes with fewer than two labels.
BARE = """[...document.querySelectorAll('.plot')].flatMap((plot) =>
  ['.xtick', '.ytick'].filter((axis) => plot.querySelectorAll(axis).length < 2))"""
# Labels and legends that stick out of the page.
OUTSIDE = """[...document.querySelectorAll('.legend button, .xtick, .ytick, h1, h2, h3, p, nav, summary, dd')].filter((part) => {
  const box = part.getBoundingClientRect();
  return box.width > 0 && (box.left < 0 || box.right > document.documentElement.clientWidth + 1);
}).map((part) => part.textContent.slice(0, 40))"""


class World:
    def __init__(self, browser: Browser, fishplate: Path, folder: Path, profile: str):
        self.browser, self.fishplate, self.folder, self.profile = browser, fishplate, folder, profile
        self.made = {}

    def page(self, name: str) -> Path:
        if name not in self.made:
            self.made[name] = self.write(name, self.folder / f"{name}.html")
        return self.made[name]

    def write(self, name: str, file: Path) -> Path:
        if name == "study":
            words = [str(self.fishplate), *STUDY, "--report", file.name]
        else:
            words = ["cargo", "run", "--quiet", "--profile", self.profile, "--manifest-path", str(harness.ROOT / "Cargo.toml"), "-p", "report",
                     "--example", name, "--", file.name]
        ran = harness.run(words, seconds=SECONDS, cwd=file.parent)
        if ran.code != 0:
            raise Problem(f"`{' '.join(words)}` ended with {ran.code}{harness.output(ran.err)}")
        return file

    def expect(self, wanted, code: str, what: str) -> None:
        found = self.browser.run(code)
        if found != wanted:
            raise Problem(f"{what}: expected {json.dumps(wanted)}, found {json.dumps(found)}")

    def no_complaint(self) -> None:
        complaints, self.browser.complaints = self.browser.complaints, []
        if complaints:
            raise Problem(f"the browser complains of {len(complaints)} things{harness.output(chr(10).join(complaints))}")


def draws(page: str, width: int, dark: bool):
    def test(world: World):
        browser = world.browser
        browser.open(world.page(page), width, dark=dark)
        asked, drawn = browser.run(ASKED), browser.run(DRAWN)
        if not asked or len(asked) != len(drawn) or any(svgs == 0 for svgs, _ in drawn):
            raise Problem(f"{len(asked)} plots, but drawn are {drawn}")
        if [traces for _, traces in drawn] != asked:
            raise Problem(f"traces {asked}, but drawn are {drawn}")
        world.expect([], OVERLAPS, "labels that overlap")
        world.expect([], BARE, "axes with fewer than two labels")
        world.expect([], OUTSIDE, "parts outside the page")
        world.expect(True, f"document.documentElement.scrollWidth <= {width}", "a page no wider than the window")
        ground = browser.run("getComputedStyle(document.body).backgroundColor")
        if (ground == "rgb(255, 255, 255)") == dark:
            raise Problem(f"the ground is {ground}")
        world.no_complaint()
    return test


def switches(world: World):
    """A press on an entry of the legend takes away its line and its band, and another one brings them back."""
    browser = world.browser
    browser.open(world.page("gallery"), WIDE)
    count = "document.querySelectorAll('#p0 .scatterlayer .trace').length"
    world.expect(4, count, "traces: a band, two lines, marks")
    for wanted, pressed in ((2, "false"), (4, "true")):
        box = browser.run("(() => { const box = document.querySelector('#p0 .legend button').getBoundingClientRect();"
                          " return [box.left + box.width / 2, box.top + box.height / 2]; })()")
        for kind in ("mousePressed", "mouseReleased"):
            browser.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)
        browser.settle()
        world.expect(wanted, count, "traces after a press")
        world.expect(pressed, "document.querySelector('#p0 .legend button').getAttribute('aria-pressed')", "state of the button")
    world.no_complaint()


def theme(world: World):
    browser = world.browser
    browser.open(world.page("gallery"), WIDE)
    line = "getComputedStyle(document.querySelector('#p0 .scatterlayer .js-line')).stroke"
    light = browser.run(line)
    browser.run("document.getElementById('theme').click()")
    browser.settle()
    world.expect("dark", "document.documentElement.dataset.theme", "theme")
    if browser.run(line) == light:
        raise Problem(f"lines keep the colour {light}")
    world.no_complaint()


def hover(world: World):
    """The box of values names the size, and each series with its value and unit."""
    browser = world.browser
    browser.open(world.page("gallery"), WIDE)
    box = browser.run("(() => { const box = document.querySelector('#p0 .nsewdrag').getBoundingClientRect();"
                      " return [box.left, box.top, box.width, box.height]; })()")
    browser.point_at(box[0] + box[2] / 2, box[1] + box[3] / 2)
    text = browser.run("document.querySelector('#p0 .hoverlayer').textContent")
    for part in ("2 KiB", "1.883 µs", "an equal curve", "</script>"):
        if part not in text:
            raise Problem(f"{part} is missing in the box of values: {text!r}")
    world.no_complaint()


def names(world: World):
    """A program's name with markup stands as text."""
    browser = world.browser
    browser.open(world.page("gallery"), WIDE)
    name = "./a</script><script>document.title='broken'</script>&<b>.x"
    world.expect(f"Every kind of block, for {name}", "document.title", "title")
    world.expect(name, "document.querySelector('#p0 .legend button').textContent", "entry of the legend")
    world.expect(0, "document.querySelectorAll('main b').length", "elements out of a name")


def repeats(world: World):
    """The same command writes the same bytes."""
    with tempfile.TemporaryDirectory() as folder:
        again = world.write("study", Path(folder) / "study.html")
        if again.read_bytes() != world.page("study").read_bytes():
            raise Problem(f"`fishplate {' '.join(STUDY)}` writes another page the second time")


def pictures(world: World, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, file in world.made.items():
        for dark in (False, True):
            for width in (NARROW, WIDE):
                world.browser.open(file, width, dark=dark)
                world.browser.picture(folder / f"{name}-{'dark' if dark else 'light'}-{width}.png")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    harness.add_case_options(parser)
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="keep pictures of the pages here")
    parser.add_argument("--profile", default="command", help="cargo's profile of the gallery (default: that of `make stage`)")
    options = parser.parse_args()
    looks = [(page, width, dark) for page in ("gallery", "study") for width in (NARROW, WIDE) for dark in (False, True)]
    cases = [Case(f"{page} draws, {width} pixels, {'dark' if dark else 'light'}", draws(page, width, dark)) for page, width, dark in looks]
    cases += [Case("series can be switched", switches), Case("the theme can be switched", theme), Case("values show", hover),
              Case("names are text", names), Case("the same command, the same bytes", repeats)]
    cases = [case for case in cases if case.wanted(options)]
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    path = installed()
    if path is None:
        return harness.not_run("pages of results", "no Chromium here: apt-get install chromium")
    fishplate = options.prefix.resolve() / "bin/fishplate"
    if not os.access(fishplate, os.X_OK):
        sys.exit(f"{fishplate} is missing: run `make stage`, or name a prefix by --prefix")
    with tempfile.TemporaryDirectory(prefix="fishplate-pages-") as folder, Browser(path) as browser:
        world = World(browser, fishplate, Path(folder), options.profile)
        status = harness.run_suite("report", cases, world)
        if options.pictures:
            pictures(world, options.pictures)
    return status


if __name__ == "__main__":
    sys.exit(main())
