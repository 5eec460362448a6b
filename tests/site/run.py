#!/usr/bin/env python3
"""Builds the site of the documentation and reads its pages: links, anchors, and what its search finds.

    tests/site/run.py [--prefix build] [--only TEXT] [--list] [--pictures FOLDER]

Settings, commands and options are those that the staged command prints: `knobs`, and the man pages. Queries are typed into a page in headless Chromium
(Debian's package `chromium`), which was opened as a file and by HTTP; without Chromium these cases are skipped. `--pictures` keeps pictures of pages.
The last line is `N passed, N failed, N skipped`.
"""

import argparse
import functools
import html
import json
import re
import sys
import tempfile
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE.parent / "report"))
sys.path.insert(0, str(HERE))
import harness  # noqa: E402
import pages  # noqa: E402
from browser import Browser, installed  # noqa: E402
from harness import Case, Problem, Skip  # noqa: E402

SITE = harness.ROOT / "build/site/html"
DOCUMENTS = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "ARCHITECTURE.md", "tests/README.md", "examples/kernels/README.md", "packaging/README.md")
# The section that a query names is listed below one of this many pages.
PAGES = 3
SECONDS = 20
# Types a query. Its hits are the addresses of the first results, waited for until one is the right one.
SEARCH = """(async () => {
  const field = document.querySelector('[data-md-component=search-query]');
  field.focus();
  field.value = %s;
  field.dispatchEvent(new Event('input', {bubbles: true}));
  field.dispatchEvent(new KeyboardEvent('keyup', {bubbles: true}));
  for (const began = Date.now(); ;) {
    const hits = [...document.querySelectorAll('.md-search-result__item')].slice(0, %d).flatMap((page) => [...page.querySelectorAll('a')])
      .map((link) => link.href.split('?')[0].split('/html/').pop() + new URL(link.href).hash);
    if (hits.includes(%s) || Date.now() - began > %d) return hits;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
})()"""


class World:
    def __init__(self, prefix: Path):
        self.fishplate = prefix / "bin/fishplate"

    @functools.cached_property
    def index(self) -> dict:
        """Title and text of each section of the index, by address."""
        found = json.loads((SITE / "search/search_index.json").read_text())["docs"]
        return {entry["location"]: (entry["title"], html.unescape(re.sub(r"<[^>]*>", " ", entry["text"]))) for entry in found}

    @functools.cached_property
    def pages(self) -> list:
        return [pages.read(path, SITE) for path in sorted(SITE.rglob("*.html"))]

    @functools.cached_property
    def settings(self) -> list[str]:
        rows = [json.loads(line) for line in printed(self.fishplate, "knobs", "--all", "--json").splitlines()]
        return [row["variable"] for row in rows]

    @functools.cached_property
    def commands(self) -> dict:
        """The options of each command, by its man page."""
        with tempfile.TemporaryDirectory() as folder:
            printed(self.fishplate, "man", folder)
            found = {page.stem: page.read_text() for page in Path(folder).glob("*.1")}
        return {name: {option.replace("\\-", "-") for line in re.findall(r"^\\fB\\-.*$", text, re.M) for option in re.findall(r"\\fB((?:\\-|\w)+)\\fR", line)}
                for name, text in found.items()}

    def section(self, command: str) -> str:
        """The address of a command's section."""
        name = "mpiexec" if command == "mpirun" else command
        page = "-".join(name.split("-")[:2])
        return f"reference/{page}.html" + (f"#{name}" if name != page else "")


def printed(*words) -> str:
    done = harness.run(list(map(str, words)), seconds=60)
    if done.code != 0:
        raise Problem(f"{' '.join(map(str, words))}: exit status {done.code}{harness.output(done.err)}")
    return done.out


def build(world: World) -> str:
    done = harness.run([sys.executable, str(harness.ROOT / "scripts/site/build.py"), "--prefix", str(world.fishplate.parent.parent)], seconds=600)
    if done.code != 0:
        raise Problem(f"scripts/site/build.py: exit status {done.code}{harness.output(done.out + done.err)}")
    return f"{len(world.pages)} pages"


def every_document(world: World) -> str:
    documents = [*DOCUMENTS, *(str(path.relative_to(harness.ROOT)) for path in (harness.ROOT / "docs").rglob("*.md"))]
    wanted = {name.removesuffix("README.md") + "index.html" if name.endswith("README.md") else name.removesuffix("md") + "html" for name in documents}
    if missing := wanted - {page.name for page in world.pages}:
        raise Problem(f"no pages: {', '.join(sorted(missing))}")
    return f"{len(wanted)} documents"


def links(world: World) -> str:
    count, broken = pages.broken_links(world.pages, SITE)
    if broken:
        raise Problem(f"{len(broken)} of {count} links lead nowhere" + harness.output("\n".join(broken)))
    return f"{count} links, 0 broken"


def loads_nothing(world: World) -> str:
    if found := [f"{page.name}: {address}" for page in world.pages for address in page.loads if pages.is_elsewhere(address)]:
        raise Problem("pages load from elsewhere" + harness.output("\n".join(found)))
    for style in SITE.rglob("*.css"):
        if found := re.findall(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//[^)]*", style.read_text()):
            raise Problem(f"{style.name} loads {found[0]}")
    return f"{sum(len(page.loads) for page in world.pages)} loads"


def settings_in_index(world: World) -> str:
    missing = [name for name in world.settings if world.index.get(f"reference/settings.html#{name.lower()}", ("", ""))[0] != name]
    if missing or not world.settings:
        raise Problem(f"not in the index: {', '.join(missing)}")
    return f"{len(world.settings)} settings"


def commands_in_index(world: World) -> str:
    missing, options = [], 0
    for command, wanted in world.commands.items():
        title, text = world.index.get(world.section(command), ("", ""))
        words = set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", text)) | set(re.findall(r"\w+", title + text))
        missing += [command] if not title or command == "mpirun" and "mpirun" not in words else [f"{command} {name}" for name in wanted - words]
        options += len(wanted)
    if missing or not options:
        raise Problem(f"not in the index: {', '.join(sorted(missing))}")
    return f"{len(world.commands)} commands with {options} options"


def searched(by_http: bool):
    def test(world: World) -> str:
        if not installed():
            raise Skip("no Chromium here: apt-get install chromium")
        wanted = {name: f"reference/settings.html#{name.lower()}" for name in world.settings}
        wanted |= {world.index[at][0] if name != "mpirun" else "mpirun": at for name in world.commands if (at := world.section(name)) in world.index}
        missed = []
        with Browser(installed()) as browser, served() as address:
            if by_http:
                browser.call("Page.navigate", url=f"{address}/docs/user/compare.html")
                until_ready(browser)
            else:
                browser.open(SITE / "docs/user/compare.html", 1400)
            for query, at in wanted.items():
                hits = browser.run(SEARCH % (json.dumps(query), PAGES, json.dumps(at), SECONDS * 1000 if not missed else 2000))
                if at not in hits:
                    missed.append(f"{query}: {', '.join(hits[:4]) or 'nothing'}")
            complaints = [line for line in browser.complaints if address not in line]
        if missed or complaints:
            raise Problem(f"{len(missed)} of {len(wanted)} queries miss their section; the browser: {complaints[:3]}" + harness.output("\n".join(missed)))
        return f"{len(wanted)} queries"
    return test


def until_ready(browser: Browser) -> None:
    browser.run("new Promise((done) => { const ask = () => document.readyState === 'complete' && location.href !== 'about:blank' ? done(0) : setTimeout(ask, 20); ask(); })")


class served:
    """The site behind an HTTP server of this process, in a folder of that server."""

    def __enter__(self) -> str:
        class Quiet(SimpleHTTPRequestHandler):
            def log_message(self, *_):
                pass
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=SITE.parent))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self.server.server_port}/{SITE.name}"

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def take_pictures(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("index", "docs/figures/performance", "docs/user/compare", "reference/fishplate-bench"):
        for width, dark in ((1400, False), (1400, True), (400, False)):
            with Browser(installed()) as browser:
                browser.open(SITE / f"{name}.html", width, dark=dark)
                browser.picture(folder / f"{name.replace('/', '-')}-{width}{'-dark' if dark else ''}.png")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    harness.add_case_options(parser)
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="keep pictures of four pages")
    options = parser.parse_args()
    cases = [Case("every document is a page", every_document), Case("links and anchors", links), Case("pages load nothing from elsewhere", loads_nothing),
             Case("the index has every setting", settings_in_index), Case("the index has every command and option", commands_in_index),
             Case("a page opened as a file finds settings and commands", searched(False)),
             Case("a page opened by HTTP finds settings and commands", searched(True))]
    # Every case reads what the first one makes.
    cases = [Case("the site is built without a warning", build), *(case for case in cases if case.wanted(options))]
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    result = harness.run_suite("site-check", cases, World(harness.checked_prefix(options.prefix)))
    if options.pictures:
        take_pictures(options.pictures)
    return result


if __name__ == "__main__":
    sys.exit(main())
