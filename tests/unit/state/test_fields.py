"""Each field of a URL is of one kind, and every store has a place for it."""

from __future__ import annotations

import apsw

from crawlspace.model import UrlState
from crawlspace.state.fields import COMPUTED, FIELDS, FOUND, MERGED, WRITTEN
from crawlspace.state.redis.encoding import Row
from crawlspace.state.sqlite.schema import SCHEMA


def test_each_field_is_of_one_kind() -> None:
    assert sorted((*FOUND, *COMPUTED, *MERGED, *WRITTEN)) == sorted(UrlState.__struct_fields__)
    assert UrlState.__struct_fields__ == FIELDS


def test_the_state_file_has_a_column_for_each_but_the_representative_which_is_looked_up() -> None:
    db = apsw.Connection(":memory:")
    db.execute(SCHEMA)
    columns = {name for (name,) in db.execute("SELECT name FROM pragma_table_info('url')")}
    assert {*FIELDS} - columns == {"duplicate_of"}


def test_a_record_in_redis_has_each_but_those_with_keys_of_their_own() -> None:
    assert {*FIELDS} - {*Row.__struct_fields__} == {"id", "indexed", "duplicate_of", "inherited"}
