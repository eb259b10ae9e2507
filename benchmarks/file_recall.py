"""The words found in real files, beside another program's reading: LibreOffice (soffice), poppler's pdftotext, and pandoc for EPUB.

python -m benchmarks.file_recall FOLDER

FOLDER holds files of any kinds, in folders too; the source packages of python-docx, python-pptx, openpyxl, pypdf and odfpy have hundreds.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.measure import BenchmarkFailed, Row, finish, say
from crawlspace.content.documents.contents import FileLimits
from crawlspace.content.documents.readers import read_file

BENCHMARK = "file_recall"
_LEAST_ON_AVERAGE = 0.98
_LEAST_OF_A_FILE = 0.9
_WORD = re.compile(r"[^\W\d_]{2,}")
"""Numbers are not compared: a spreadsheet shows them in another form than it has them, and those of lists and axes are in no file."""
_PICTURE = re.compile(r"\[[^\]\s]*\.\w{3,4}\]")
"""What pandoc prints in place of a picture: the name of its file."""
_TEXTS = (".docx", ".docm", ".odt", ".rtf")
_BOOKS = (".epub",)
_SLIDES = (".pptx", ".pptm", ".ppsx", ".odp")
_SHEETS = (".xlsx", ".xlsm", ".xls", ".ods")
_CSV = "csv:Text - txt - csv (StarCalc):9,34,76,1,,0,false,false,false,false,false,-1"
_MISSING_SHOWN = 8
_A_CALL = 40
"""Files that soffice converts at a time."""


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Compare the words found in files with another program's reading.")
    parser.add_argument("folder", type=Path)
    options = parser.parse_args(arguments)
    for program in ("soffice", "pdftotext", "pandoc"):
        if shutil.which(program) is None:
            raise BenchmarkFailed(f"there is no {program}")
    recalls: dict[str, list[float]] = defaultdict(list)
    below: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="bench-recall-") as temp:
        files = _collected(options.folder, Path(temp, "files"))
        texts = _read_by_others(files, Path(temp))
        for file in files:
            words = set(_WORD.findall(texts.get(file, "").lower()))
            if not words:
                continue
            with file.open("rb") as opened:
                contents = read_file(opened, None, FileLimits())
            found = _found(words, contents.text.lower(), is_drawn=file.suffix.lower() in (*_SLIDES, ".pdf"))
            recall = len(found) / len(words)
            if contents.status is None:  # what cannot be read is listed
                recalls[file.suffix.lower()].append(recall)
            if recall < _LEAST_OF_A_FILE:
                missing = ", ".join(sorted(words - found)[:_MISSING_SHOWN])
                status = f" ({contents.status})" if contents.status else ""
                below.append(Row(BENCHMARK, file.name.partition("-")[2] + status, f"{recall:.2f}: without {missing}"))
    rows = []
    for suffix, values in sorted(recalls.items()):
        mean = sum(values) / len(values)
        what = f"{suffix}: {len(values)} files, words found on average, least"
        rows.append(Row(BENCHMARK, what, f"{mean:.3f}, {min(values):.2f}", f">= {_LEAST_ON_AVERAGE}", mean >= _LEAST_ON_AVERAGE))
    return [*rows, *below]


def _collected(folder: Path, into: Path) -> list[Path]:
    """Copy the files into one folder, each with a name of its own."""
    into.mkdir()
    kinds = (*_TEXTS, *_BOOKS, *_SLIDES, *_SHEETS, ".pdf")
    found = [path for path in sorted(folder.rglob("*")) if path.suffix.lower() in kinds and path.is_file()]
    return [Path(shutil.copy(path, into / f"{number:04d}-{path.name}")) for number, path in enumerate(found)]


def _read_by_others(files: Sequence[Path], temp: Path) -> dict[Path, str]:
    for folder in ("texts", "slides", "sheets"):
        (temp / folder).mkdir()
    _convert([file for file in files if file.suffix.lower() in _TEXTS], "txt:Text (encoded):UTF8", temp / "texts")
    _convert([file for file in files if file.suffix.lower() in _SLIDES], "pdf", temp / "slides")
    _convert([file for file in files if file.suffix.lower() in _SHEETS], _CSV, temp / "sheets")
    texts = {}
    for file in files:
        kind = file.suffix.lower()
        if kind in _SHEETS:
            outputs = [path.read_text("utf-8", "replace") for path in (temp / "sheets").glob(f"{_escaped(file.stem)}*.csv")]
            texts[file] = " ".join(outputs)
        elif kind in _BOOKS:
            texts[file] = _PICTURE.sub("", _of(["pandoc", "--from=epub", "--to=plain", str(file)]))
        elif kind in _TEXTS:
            output = temp / "texts" / f"{file.stem}.txt"
            texts[file] = output.read_text("utf-8", "replace") if output.exists() else ""
        else:
            texts[file] = _of_pdf(file if kind == ".pdf" else temp / "slides" / f"{file.stem}.pdf")
    return texts


def _convert(files: Sequence[Path], into: str, folder: Path) -> None:
    for at in range(0, len(files), _A_CALL):
        say(f"soffice: {at} of {len(files)} files into {folder.name}")
        profile = f"-env:UserInstallation=file://{folder.parent}/profile"
        command = [
            "soffice",
            profile,
            "--headless",
            "--convert-to",
            into,
            "--outdir",
            str(folder),
            *map(str, files[at : at + _A_CALL]),
        ]
        subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=900)


def _of_pdf(path: Path) -> str:
    if not path.exists():
        return ""
    return _of(["pdftotext", str(path), "-"])


def _of(command: Sequence[str]) -> str:
    """Return what a program prints."""
    return subprocess.run(command, check=False, capture_output=True).stdout.decode("utf-8", "replace")


def _found(words: Iterable[str], text: str, *, is_drawn: bool) -> set[str]:
    """Return the words that a text has. `is_drawn`: what is drawn on pages may be cut into pieces of words by the other program."""
    ours = set(_WORD.findall(text))
    found = {word for word in words if word in ours}
    if is_drawn:
        whole = "".join(text.split())
        found |= {word for word in words if word in whole}
    return found


def _escaped(name: str) -> str:
    return re.sub(r"([\[\]*?])", r"[\1]", name)


if __name__ == "__main__":
    sys.exit(finish(main))
