"""Converters for formats without a reader: a command of the user prints the text of a file, or a Tika server returns it."""

from __future__ import annotations

import http.client
import os
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import BinaryIO
from urllib.parse import urlsplit

from crawlspace.content.charset import decode
from crawlspace.content.documents.contents import BYTES_PER_CHARACTER, FileContents, FileLimits, TextStatus, UnreadableFile
from crawlspace.content.documents.kinds import usual_type
from crawlspace.content.documents.text_buffer import TextBuffer, TextFull

FILE = "{file}"
_CHUNK = 64 * 1024
_OK, _NO_CONTENT, _SERVER_ERROR = 200, 204, 500


def converter_for(mime: str, converters: Mapping[str, str]) -> str:
    """Return the converter for a type: by its name, else by a pattern such as `image/*`; empty without one."""
    found = converters.get(mime) or converters.get(usual_type(mime))
    if found:
        return found
    return next((one for pattern, one in converters.items() if pattern.endswith("*") and mime.startswith(pattern[:-1])), "")


def is_server(converter: str) -> bool:
    """Return whether a converter is a Tika server, and not a command."""
    return converter.lower().startswith(("http://", "https://"))


def command_words(converter: str) -> list[str]:
    """Return the words of a command, as a shell would split them. Raises ValueError for an open quote."""
    return shlex.split(converter)


def complete(contents: FileContents, output: bytes, limits: FileLimits) -> None:
    """Complete the contents with the output of a converter."""
    most = _most_bytes(limits)
    contents.text_left_out = len(output) > most
    buffer = TextBuffer(limits)
    with suppress(TextFull):
        buffer.add(decode(output[:most], None)[0])
    buffer.complete(contents)


def run_command(path: str, converter: str, *, limits: FileLimits, folder: str) -> bytes:
    """Return the output of a command for a file, at most one byte more than the limit. Its temporary files are in `folder`."""
    most = _most_bytes(limits)
    words = [word.replace(FILE, path) for word in command_words(converter)]
    try:
        process = subprocess.Popen(  # noqa: S603 - the user's command
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"TMPDIR": folder},
        )
    except OSError as error:
        raise UnreadableFile(TextStatus.NO_READER, f"{words[0]} cannot be run: {error.strerror}") from error
    with process:
        assert process.stdout is not None
        output = process.stdout.read(most + 1)
        if len(output) > most:
            process.kill()
            return output
    if process.returncode:
        crashed = process.returncode < 0
        how = f"was ended by signal {-process.returncode}" if crashed else f"ended with exit status {process.returncode}"
        raise UnreadableFile(TextStatus.CRASHED if crashed else TextStatus.DAMAGED, f"{words[0]} {how}")
    return output


def convert_by_server(file: BinaryIO, kind: str, url: str, *, limits: FileLimits, timeout_s: float) -> bytes:
    """Return the answer of a Tika server for a file, at most one byte more than the limit."""
    parts = urlsplit(url)
    make = http.client.HTTPSConnection if parts.scheme.lower() == "https" else http.client.HTTPConnection
    connection = make(parts.hostname or "", parts.port, timeout=timeout_s)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request("PUT", target, body=_chunks(file), headers={"Accept": "text/plain", "Content-Type": kind})
        answer = connection.getresponse()
        output = answer.read(_most_bytes(limits) + 1)
    except (OSError, http.client.HTTPException) as error:
        raise UnreadableFile(TextStatus.NO_READER, f"{parts.hostname} does not answer: {error}") from error
    finally:
        connection.close()
    if answer.status not in (_OK, _NO_CONTENT):
        status = TextStatus.CRASHED if answer.status >= _SERVER_ERROR else TextStatus.DAMAGED
        raise UnreadableFile(status, f"{parts.hostname} answered {answer.status}")
    return output


def _most_bytes(limits: FileLimits) -> int:
    return limits.max_text * BYTES_PER_CHARACTER


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        yield chunk
