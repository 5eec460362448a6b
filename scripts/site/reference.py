"""The reference of the site: a page for each command, and one of the settings, all from what the staged command prints."""

import html
import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

FOLDER = "reference"
# An item of a section of help: its name, and what follows on its line.
ITEM = re.compile(r"^ {2,6}(?=[-\w<\[])(\S.*?)(?:  +(\S.*))?$")


@dataclass
class Page:
    path: str
    text: str


@dataclass
class Help:
    """The help of one command: what it does, its use, the items of its sections, and examples."""

    words: list
    about: str
    usage: str
    # Heading and items (name, text) of each section.
    sections: list
    examples: str

    def commands(self) -> list[str]:
        found = [name for heading, items in self.sections if heading == "Commands" for name, _ in items]
        return [name for name in found if name != "help"]


def printed(prefix: Path, *words: str) -> str:
    return subprocess.run([prefix / "bin" / words[0], *words[1:]], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL).stdout


def help_of(prefix: Path, words: list[str]) -> Help:
    return parsed(words, printed(prefix, *words, "--help"))


def parsed(words: list[str], text: str) -> Help:
    parts = re.split(r"^(?=[A-Z][\w -]*:)", text, flags=re.M)
    about, usage, sections, examples = parts[0].strip(), "", [], ""
    for part in parts[1:]:
        heading, _, body = part.partition(":")
        if heading == "Usage":
            usage = body.strip()
        elif heading in ("Example", "Examples"):
            examples += "\n".join(line.removeprefix("  ") for line in body.strip("\n").splitlines())
        elif re.match(r" *\n", body):
            sections.append((heading, items(body)))
        else:
            about += f"\n\n{part.strip()}"
    return Help(words, about, usage, sections, examples)


def items(body: str) -> list[tuple[str, str]]:
    found, deep = [], 0
    for line in body.splitlines():
        indent = len(line) - len(line.lstrip())
        if line.strip() and (item := ITEM.match(line)) and (not found or indent < deep or line.lstrip().startswith("-") and indent <= 6):
            found.append((item[1], item[2] or ""))
            deep = len(line) - len(item[2]) if item[2] else 8
        elif found:
            name, text = found[-1]
            found[-1] = (name, f"{text}\n{line.strip()}".strip("\n"))
    return found


def plain(text: str) -> str:
    """The text of a help, whose quoted names stay names and whose signs are no Markdown."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([\\*_\[\]|#])", r"\\\1", html.escape(part, quote=False)) for part in parts)


def cell(text: str) -> str:
    paragraphs = [" ".join(part.split("\n")) for part in re.split(r"\n\n+", text.strip())]
    return "<br>".join(plain(part) for part in paragraphs).replace("|", r"\|").replace(r"\\|", r"\|")


def code(text: str) -> str:
    return f"<code>{html.escape(text, quote=False).replace('|', '&#124;')}</code>"


def named(shown: Help, heading: str, name: str) -> str:
    """The name of an item. That of a command leads to its section."""
    if heading != "Commands":
        return code(name)
    section = "-".join([*shown.words, name])
    # Each of the first commands has a page.
    return f"[{name}]({section}.md)" if len(shown.words) == 1 else f"[{name}](#{section})"


def section(shown: Help, level: str) -> str:
    lines = [f"{level} {' '.join(shown.words)}", "", plain(shown.about), "", "```text", shown.usage, "```", ""]
    for heading, found in shown.sections:
        first = {"Options": "option", "Arguments": "argument", "Commands": "command"}.get(heading, heading.lower())
        found = [item for item in found if heading != "Commands" or item[0] != "help"]
        lines += [f"| {first} | meaning |", "| --- | --- |", *(f"| {named(shown, heading, name)} | {cell(text)} |" for name, text in found), ""]
    if shown.examples:
        lines += ["```sh", shown.examples, "```", ""]
    return "\n".join(lines)


def tree(prefix: Path, words: list[str]) -> list[Help]:
    """The help of a command and of all below it."""
    shown = help_of(prefix, words)
    return [shown, *(below for name in shown.commands() for below in tree(prefix, [*words, name]))]


def command_page(own: Help, *below: Help, more: str = "") -> Page:
    return Page(f"{FOLDER}/{'-'.join(own.words)}.md", "\n".join([section(own, "#"), more, *(section(shown, "##") for shown in below)]))


def settings(prefix: Path) -> list[dict]:
    return [json.loads(line) for line in printed(prefix, "fishplate", "knobs", "--all", "--json").splitlines()]


def setting(row: dict) -> str:
    facts = [f"Type: {row['kind'] if 'kind' in row else row['type']}", f"default: `{row['default']}`"]
    if row.get("least") is not None:
        facts.append(f"from `{row['least']}` to `{row['most']}`")
    if row["aliases"]:
        facts.append("also " + ", ".join(f"`{name}`" for name in row["aliases"]))
    text = [f"## {row['variable']}", "", plain(row["doc"]), "", "; ".join(facts) + ".", ""]
    if row["for_studies"]:
        text += ["For studies: it imitates another library, or measures one part.", ""]
    return "\n".join(text)


def pages(prefix: Path) -> list[Page]:
    top = help_of(prefix, ["fishplate"])
    rows = settings(prefix)
    head = ["# Settings", "", "Settings are environment variables. `fishplate run -x NAME=VALUE` sets one for a job, and `fishplate knobs` shows the present values.", ""]
    return [Page(f"{FOLDER}/settings.md", "\n".join([*head, *map(setting, rows)])),
            command_page(top), *(command_page(*tree(prefix, ["fishplate", name])) for name in top.commands()),
            command_page(help_of(prefix, ["mpiexec"]), more="`mpirun` is another name of this command.\n")]
