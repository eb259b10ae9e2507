"""The cores or collections of one sink: the one that is searched, one that is being built beside it, and the one of before.

Which they are is a document in each of them, its note, of which that in the searched one counts. A switch puts another one in its place in one
step, and so the other note too: after a kill at any moment there is a single note that counts, and it is true. The note looks like what is left
of a deleted document, which no search finds. Names of aliases or cores would need several steps, and after the SWAP of two cores Solr 9.10.1
mixes names up if one of them is renamed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from crawlspace.errors import IndexUnavailable
from crawlspace.index.inventory import Copies
from crawlspace.index.json_client import Client, items
from crawlspace.index.search_server.copies import may_begin
from crawlspace.index.solr.contents import SolrContents, answered

_ID = "crawlspace-copies"


@dataclass(frozen=True, slots=True)
class Note:
    """What an index says of others, where it is the one that is searched; empty where there is none."""

    next: str = ""
    previous: str = ""
    discarded: str = ""
    """One that is to be deleted, if it is there."""

    @classmethod
    def of(cls, document: Mapping[str, object]) -> Note:
        written = dict(str(one).split("=", 1) for one in items(document.get("fields")) if "=" in str(one))
        return cls(written.get("next", ""), written.get("previous", ""), written.get("discarded", ""))

    def document(self) -> dict[str, object]:
        """Return it as Solr takes it."""
        written = {"next": self.next, "previous": self.previous, "discarded": self.discarded}
        fields = [f"{name}={value}" for name, value in written.items() if value]
        return {"id": _ID, "version": 1, "deleted": True} | ({"fields": fields} if fields else {})


class IndexAdmin(Protocol):
    """How cores or collections are made and exchanged. All raise IndexUnavailable."""

    async def present(self) -> str:
        """Return the name of the one that is searched. Raises IndexUnavailable where another one could not take its place."""

    async def name_of_new(self, previous: str) -> str:
        """Return a name for another one beside the searched and the previous one."""

    async def create(self, name: str) -> None:
        """Make an empty one as the searched one is."""

    async def put_in_place(self, name: str) -> None:
        """Have that one be searched, in one step."""

    def name_of_replaced(self, present: str, name: str) -> str:
        """Return the name that the searched one has afterwards."""

    async def delete(self, name: str) -> None:
        """Delete one, if it is there."""


class SolrCopies:
    """The copies of the index of one sink. All raise IndexUnavailable."""

    def __init__(self, client: Client, server: str, index: str, admin: IndexAdmin) -> None:
        self._client = client
        self._server = server
        self._index = index
        self._admin = admin

    async def note(self) -> Note:
        """Return the note of the one that is searched."""
        found = await SolrContents(self._client, self._server, self._index).get([_ID], "id,fields")
        return Note.of(found[0]) if found else Note()

    async def all(self) -> Copies:
        note = await self.note()
        return Copies(await self._admin.present(), note.next, note.previous)

    async def begin_next(self, *, on_previous: bool) -> None:
        copies = await self.all()
        if not may_begin(copies, f"{self._index} at {self._server}", on_previous=on_previous):
            return
        note = await self._delete_discarded(await self.note())
        if on_previous:
            await self._write(self._index, replace(note, next=note.previous))
            return
        name = await self._admin.name_of_new(note.previous)
        await self._write(self._index, replace(note, discarded=name))
        await self._admin.create(name)
        await self._write(self._index, replace(note, next=name))

    async def switch(self) -> None:
        copies = await self.all()
        if not copies.next:
            raise IndexUnavailable(f"no index is being built beside {self._index} at {self._server}")
        older = "" if copies.previous == copies.next else copies.previous
        note = Note(previous=self._admin.name_of_replaced(copies.present, copies.next), discarded=older)
        await self._write(copies.next, note)
        await self._admin.put_in_place(copies.next)
        await self._delete_discarded(note)

    async def give_up_next(self) -> None:
        note = await self.note()
        if note.next:
            note = replace(note, next="", discarded="" if note.next == note.previous else note.next)
            await self._write(self._index, note)
        await self._delete_discarded(note)

    async def _delete_discarded(self, note: Note) -> Note:
        if not note.discarded:
            return note
        await self._admin.delete(note.discarded)
        note = replace(note, discarded="")
        await self._write(self._index, note)
        return note

    async def _write(self, index: str, note: Note) -> None:
        # Not by our update chain: a note has no version that grows.
        reply = await self._client.request(
            "POST", f"/{index}/update", body=[note.document()], parameters={"commit": "true", "wt": "json"}
        )
        answered(reply, f"{index} at {self._server}")
