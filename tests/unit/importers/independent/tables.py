"""The tables of this folder, read into rows, and the ways in which the same file may be written."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent

KINDS: Mapping[str, frozenset[str]] = {
    "host": frozenset({"domain", "rules_xml", "offsite"}),
    "uri": frozenset({"prefix", "rules_xml"}),
    "rules": frozenset({"rules_xml", "domain", "prefix", "offsite", "folder"}),
    "domain": frozenset({"domain"}),
    "prefix": frozenset({"prefix"}),
    "address": frozenset({"address"}),
    "extension": frozenset({"extension"}),
    "scheme": frozenset({"scheme"}),
    "recursion": frozenset({"repeated_segments", "rules_xml"}),
    "depth": frozenset({"link_depth"}),
    "length": frozenset({"url_length"}),
}
"""The reasons of ours that a kind of refusal may have."""

EXPECTED = frozenset({"index", "follow", "shift", "status", "start"})
GIVEN = frozenset({"address", "depth"})


@dataclass(frozen=True, slots=True)
class Row:
    """One URL of a table. `admitted` is None where the documentation does not decide."""

    place: str
    admitted: bool | None
    kind: str
    url: str
    facts: Mapping[str, str]
    why: str


@dataclass(frozen=True, slots=True)
class Table:
    given_starts: tuple[str, ...]
    rows: tuple[Row, ...]


def read_table(name: str) -> Table:
    """Read a table of decisions. Raises ValueError for a line that is none."""
    starts: list[str] = []
    rows = []
    for number, line in enumerate((HERE / name).read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("given-start "):
            starts.append(line.split()[1])
        elif line.strip() and not line.startswith("#"):
            rows.append(_row(line, f"{name}:{number}"))
    return Table(tuple(starts), tuple(rows))


def read_lines(name: str) -> list[str]:
    """Read a table of lines of a pending file, without the reasons."""
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    return [re.split(r"  +", line)[0] for line in lines if line and not line.startswith("#")]


def _row(line: str, place: str) -> Row:
    decision, kind, url, others = line.split(maxsplit=3)
    rest = re.split(r"  +", others)
    facts: dict[str, str] = {}
    while rest and (rest[0] == "-" or re.fullmatch(r"(\w+=\S+ ?)+", rest[0])):
        facts.update((one.partition("=")[0], one.partition("=")[2]) for one in rest.pop(0).split() if one != "-")
    admitted = {"admitted": True, "refused": False, "?": None}[decision]
    if len(rest) != 1 or facts.keys() - EXPECTED - GIVEN or (kind != "-" and (admitted is not False or kind not in KINDS)):
        raise ValueError(f"{place}: {line}")
    return Row(place, admitted, kind, re.sub(r"\{(\d+)\}", lambda found: "x" * int(found[1]), url), facts, rest[0])


def _crlf(text: str, _: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _bom(text: str, _: str) -> str:
    return f"\ufeff{text}"


def _tabs(text: str, name: str) -> str:
    """Tabs for the blanks that only divide."""
    if name.endswith(".xml"):
        text = re.sub(r"^ +", lambda found: "\t" * len(found[0]), text, flags=re.MULTILINE)
        return re.sub(r" (?=<)|(?<=[^-]>) ", "\t", text)
    if name.endswith(".rules"):
        return re.sub(r"^[^#\n].*", lambda found: re.sub(" +", "\t", found[0]), text, flags=re.MULTILINE)
    return text


def _tight(text: str, name: str) -> str:
    """Nothing that may be left out: indentation, blank lines, the last end of a line."""
    if name.endswith(".xml"):
        return re.sub(r"\s+(?=<)|(?<=>)\s+", "", text).strip()
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())


def _spelt(text: str, name: str) -> str:
    """Another prefix of the namespace, other quotes; keywords of rules in capitals."""
    if name.endswith(".xml"):
        text = re.sub(r"(?<=[</:])ar(?=[:=])", "crawl-rules", text)
        return re.sub(r"=\"([^\"']*)\"", r"='\1'", text)
    if name.endswith(".rules"):
        words = r"^(allow|forbid)( +(domain|address|index|follow))?( +prefix)?(?= )"
        return re.sub(words, lambda found: found[0].upper(), text, flags=re.MULTILINE)
    return text


VARIANTS: Mapping[str, Callable[[str, str], str]] = {
    "as it is": lambda text, _: text,
    "CR LF": _crlf,
    "byte order mark": _bom,
    "tabs": _tabs,
    "tight": _tight,
    "spelt differently": _spelt,
}
"""What may be done to the text of a file (with its name) without another meaning."""


def copy(names: Mapping[str, str], folder: Path, variant: str) -> None:
    """Copy files of this folder to their new names in `folder`, written as the variant."""
    for name, new in names.items():
        path = folder / new
        path.parent.mkdir(parents=True, exist_ok=True)
        text = (HERE / name).read_bytes().decode("utf-8")
        path.write_bytes(VARIANTS[variant](text, name).encode("utf-8"))
