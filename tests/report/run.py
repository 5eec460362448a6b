#!/usr/bin/env python3
"""Opens pages of results in headless Chromium: they draw, their series can be switched, and they complain of nothing.

    tests/report/run.py [--prefix build] [--only TEXT] [--list] [--pictures FOLDER] [--profile NAME]

The pages are one with every kind of block (crates/answers/results/examples/gallery.rs) and one of a study. `--pictures` keeps pictures of
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

NARROW, MIDDLE, WIDE = 360, 800, 1400
SECONDS = 600
STUDY = ["study", "pcie", "--quick"]

# Series of the legend of each plot, and those with a drawing.
ASKED = "[...document.querySelectorAll('figure:has(.plot)')].map((figure) => figure.querySelectorAll('.legend button').length)"
DRAWN = """[...document.querySelectorAll('figure:has(.plot)')].map((figure) =>
  new Set([...figure.querySelectorAll('.axes [data-series]')].filter((group) => {
    const box = group.getBoundingClientRect();
    return box.width > 0 && box.height > 0;
  }).map((group) => group.dataset.series)).size)"""
# Parts of a plot that its axes do not contain, but for the outline of a mark.
BEYOND = """[...document.querySelectorAll('.axes')].flatMap((axes) => {
  const around = axes.getBoundingClientRect();
  return [...axes.querySelectorAll('use, rect, path')].map((part) => part.getBoundingClientRect()).filter((box) =>
    box.left < around.left - 8 || box.right > around.right + 8 || box.top < around.top - 8 || box.bottom > around.bottom + 8).length;
}).filter((count) => count > 0)"""
# Marks without a visible line or area.
INVISIBLE = """[...document.querySelectorAll('#marks path')].filter((mark) => {
  const style = getComputedStyle(mark);
  return mark.getAttribute('d') === '' || style.fill === 'none' && style.stroke === 'none';
}).length"""
# Labels of one axis that overlap, and values of bars that do, as texts. Slanted names stand beside each other.
OVERLAPS = """[...document.querySelectorAll('.plot')].flatMap((plot) => ['.xtick', '.ytick', '.value'].flatMap((kind) => {
  const boxes = [...plot.querySelectorAll(kind)].map((label) => label.querySelector('text') || label)
    .filter((text) => getComputedStyle(text).transform === 'none').map((text) => [text.textContent, text.getBoundingClientRect()])
    .filter(([_, box]) => box.width > 0);
  return boxes.filter(([_, box], at) => boxes.slice(0, at).some(([_, other]) =>
    box.left < other.right && other.left < box.right && box.top < other.bottom && other.top < box.bottom)).map(([text]) => text);
}))"""
# Axes with fewer than two labels.
BARE = """[...document.querySelectorAll('.plot')].flatMap((plot) => ['.xtick', '.ytick'].filter((axis) =>
  [...plot.querySelectorAll(axis)].filter((tick) => tick.getBoundingClientRect().width > 0).length < 2))"""
# Labels and legends that stick out of the page.
OUTSIDE = """[...document.querySelectorAll('.legend button, .axes text, .positions text, .across, h1, h2, h3, p, nav, summary, dd')].filter((part) => {
  const box = part.getBoundingClientRect();
  return box.width > 0 && (box.left < 0 || box.right > document.documentElement.clientWidth + 1);
}).map((part) => part.textContent.slice(0, 40))"""
# Strips whose ranges leave them, or whose names are wider than their range or overlap.
STRIPS = """[...document.querySelectorAll('.strip')].filter((strip) => {
  const around = strip.getBoundingClientRect();
  const ranges = [...strip.querySelectorAll('rect')].map((range) => range.getBoundingClientRect());
  const names = [...strip.querySelectorAll('text')].map((name) => name.getBoundingClientRect()).filter((box) => box.width > 0);
  const inside = (box, other) => box.left > other.left - 2 && box.right < other.right + 2;
  return ranges.length === 0 || ranges.some((box) => box.width < 1 || !inside(box, around))
    || names.some((box) => !ranges.some((range) => inside(box, range)));
}).length"""
# Letters of fewer than 12 pixels.
SMALL = """[...document.querySelectorAll('text, button, p, td, th, figcaption')].filter((part) => parseFloat(getComputedStyle(part).fontSize) < 12)
  .map((part) => part.textContent.slice(0, 40))"""


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
            words = ["cargo", "run", "--quiet", "--profile", self.profile, "--manifest-path", str(harness.ROOT / "Cargo.toml"), "-p", "results",
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
        asked = browser.run(ASKED)
        if not asked or 0 in asked:
            raise Problem(f"series in the legends: {asked}")
        world.expect(asked, DRAWN, "series that are drawn")
        world.expect([], BEYOND, "parts beyond the axes")
        world.expect(0, INVISIBLE, "marks that nobody sees")
        world.expect([], SMALL, "small letters")
        world.expect([], OVERLAPS, "labels that overlap")
        world.expect(0, STRIPS, "strips whose ranges or names have no room")
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
    count = "[...document.querySelectorAll('#p0 .axes g')].filter((group) => group.getBoundingClientRect().width > 0).length"
    world.expect(4, count, "parts: a band, two lines, marks")
    for wanted, pressed in ((2, "false"), (4, "true")):
        box = browser.run("(() => { const box = document.querySelector('#p0 .legend button').getBoundingClientRect();"
                          " return [box.left + box.width / 2, box.top + box.height / 2]; })()")
        for kind in ("mousePressed", "mouseReleased"):
            browser.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)
        browser.settle()
        world.expect(wanted, count, "parts after a press")
        world.expect(pressed, "document.querySelector('#p0 .legend button').getAttribute('aria-pressed')", "state of the button")
    world.no_complaint()


def theme(world: World):
    browser = world.browser
    browser.open(world.page("gallery"), WIDE)
    line = "getComputedStyle(document.querySelector('#p0 .line path')).stroke"
    light = browser.run(line)
    browser.run("document.getElementById('theme').click()")
    browser.settle()
    world.expect("dark", "document.documentElement.dataset.theme", "theme")
    if browser.run(line) == light:
        raise Problem(f"lines keep the colour {light}")
    world.no_complaint()


def middle(browser: Browser) -> tuple[float, float]:
    """The middle of the first plot's axes."""
    left, top, width, height = browser.run("(() => { const box = document.querySelector('#p0 .axes').getBoundingClientRect();"
                                           " return [box.left, box.top, box.width, box.height]; })()")
    return left + width / 2, top + height / 2


def shown(browser: Browser) -> str:
    """The text of the first plot's box of values; nothing while it is hidden."""
    return browser.run("(() => { const box = document.querySelector('#p0 .box'); return box.hidden ? '' : box.innerText; })()")


def hover(world: World):
    """The box of values names the size, and each series with its value and unit. One that is switched off is absent."""
    browser = world.browser
    browser.open(world.page("gallery"), WIDE)
    browser.point_at(*middle(browser))
    text = shown(browser)
    for part in ("2 KiB", "1.883 µs", "an equal curve", "</script>"):
        if part not in text:
            raise Problem(f"{part} is missing in the box of values: {text!r}")
    browser.run("document.querySelectorAll('#p0 .legend button')[1].click()")
    x, y = middle(browser)
    browser.point_at(x + 1, y)
    if "an equal curve" in shown(browser):
        raise Problem(f"a series that is off has a value: {shown(browser)!r}")
    browser.point_at(1, 1)
    if shown(browser):
        raise Problem(f"the box stays after the pointer: {shown(browser)!r}")
    world.no_complaint()


def touch(world: World):
    """A narrow plot shows the nearest value alone, within the page."""
    browser = world.browser
    browser.open(world.page("gallery"), NARROW)
    browser.point_at(*middle(browser))
    if len(shown(browser).split("µs")) != 2:
        raise Problem(f"not one value: {shown(browser)!r}")
    box = browser.run("(() => { const box = document.querySelector('#p0 .box').getBoundingClientRect(); return [box.left, box.right]; })()")
    if box[0] < 0 or box[1] > NARROW:
        raise Problem(f"the box of values reaches from {box[0]} to {box[1]} of {NARROW} pixels")
    world.no_complaint()


def scriptless(world: World):
    """Without scripts a page has its plots, and each mark its value."""
    browser = world.browser
    browser.open(world.page("gallery"), WIDE, scripts=False)
    world.expect(browser.run(ASKED), DRAWN, "series that are drawn")
    world.expect(["1 B", "1.2 µs"], "document.querySelector('#p0 .line use title').textContent.split('\\n').slice(-2)", "value of the first mark")
    world.expect(True, "document.getElementById('theme').hidden", "a button without a use")
    world.no_complaint()


def small(world: World):
    """A page has less than a megabyte."""
    for name in ("gallery", "study"):
        size = world.page(name).stat().st_size
        if size > 1_000_000:
            raise Problem(f"the page {name} has {size} bytes")


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
    looks = [(page, width, dark) for page in ("gallery", "study") for width in (NARROW, MIDDLE, WIDE) for dark in (False, True)]
    cases = [Case(f"{page} draws, {width} pixels, {'dark' if dark else 'light'}", draws(page, width, dark)) for page, width, dark in looks]
    cases += [Case("series can be switched", switches), Case("the theme can be switched", theme), Case("values show", hover),
              Case("values show on a narrow page", touch), Case("a page without scripts", scriptless), Case("pages are small", small),
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
