"""What an administrator wants done about errors, and how many deletions at once are too many."""

from __future__ import annotations

import pytest

from crawlspace.errors import SettingError
from crawlspace.state.error_policy import (
    CLASSES,
    OWN_ERRORS,
    DeletionLimit,
    ErrorRule,
    ErrorRules,
    read_error_rules,
    read_retry_codes,
)
from crawlspace.status import Status

KEEP = ErrorRule(keep=True)
DELETE = ErrorRule(keep=False)

VALUES = [
    ("DELETE", DELETE),
    ("DELETE:0", DELETE),
    ("DELETE:1", DELETE),
    ("DELETE:10", ErrorRule(keep=False, after=10)),
    ("KEEP", KEEP),
    ("KEEP:3", ErrorRule(keep=True, after=3)),
    ("DELETE:10, RETRY:3", ErrorRule(keep=False, after=10, retries=3)),
    ("DELETE, RETRY", ErrorRule(keep=False, retries=0)),
    ("DELETE, RETRY:0", ErrorRule(keep=False, retries=0)),
    ("KEEP,RETRY:100", ErrorRule(keep=True, retries=100)),
    (" delete : 2 ,retry : 4 ", ErrorRule(keep=False, after=2, retries=4)),
]


@pytest.mark.parametrize("value,rule", VALUES)
def test_values(value: str, rule: ErrorRule) -> None:
    assert read_error_rules({"404": value}).of(404) == rule


EXAMPLE = read_error_rules(
    {"404": "KEEP:1", "4xx": "KEEP:2", "5xx": "KEEP:3", "ttl": "KEEP:4", "net": "KEEP:5", "int": "KEEP:6", "612": "KEEP:7"}
)
STATUSES = [
    # status, the number of the rule
    (404, 1), (410, 2), (400, 2), (499, 2), (500, 3), (599, 3), (613, 4), (611, 5), (612, 7), (614, 5), (615, 5), (680, 5), (681, 5),
    (699, 6), (690, None), (200, None), (304, None), (399, None), (600, None), (740, None), (2004, None),
]  # fmt: skip


@pytest.mark.parametrize("status,number", STATUSES)
def test_the_exact_code_comes_before_its_class(status: int, number: int | None) -> None:
    rule = EXAMPLE.of(status)
    assert (rule.after if rule is not None else None) == number


def test_a_status_of_ours_is_its_number() -> None:
    assert EXAMPLE.of(Status.TIMEOUT) == ErrorRule(keep=True, after=4)


@pytest.mark.parametrize("value", [None, "", {}])
def test_nothing_set_is_no_rules(value: object) -> None:
    assert read_error_rules(value) == ErrorRules()
    assert ErrorRules().of(404) is None


NAMES = ["404", 404, " 4XX ", "5xx", "TTL", "net", "int", "611", "690", "599"]


@pytest.mark.parametrize("name", NAMES)
def test_names(name: object) -> None:
    assert list(read_error_rules({name: "KEEP"}).by_name) == [str(name).strip().lower()]


def test_no_code_has_two_classes() -> None:
    codes = [code for of_class in CLASSES.values() for code in of_class]
    assert len(codes) == len(set(codes))
    assert OWN_ERRORS - set(codes) == {Status.REDIRECT_MALFORMED, Status.REDIRECT_LOOP}


FORM = 'it must be like "DELETE", "DELETE:10, RETRY:3" or "KEEP, RETRY:1"'
WRONG = [
    # setting, what the sentence says
    ("404=DELETE", "CRAWLSPACE_HTTP_ERRORS is '404=DELETE'; it must be like {"),
    (["404"], "CRAWLSPACE_HTTP_ERRORS is ['404']; it must be like {"),
    (
        {"399": "DELETE"},
        "CRAWLSPACE_HTTP_ERRORS has '399', which names no error; it may hold codes from 400 to 599, our own 611,",
    ),
    ({"600": "DELETE"}, "has '600', which names no error"),
    ({"740": "DELETE"}, "has '740', which names no error"),
    ({"3xx": "DELETE"}, "has '3xx', which names no error"),
    ({"0404": "DELETE"}, "has '0404', which names no error"),
    ({"": "DELETE"}, "has '', which names no error"),
    ({True: "DELETE"}, "has True, which names no error"),
    ({404: "DELETE", "404": "KEEP"}, "has '404' twice, as '404' the second time"),
    ({"4xx": "DELETE", "4XX": "KEEP"}, "has '4xx' twice, as '4XX' the second time"),
    ({"404": "DELTE"}, f"CRAWLSPACE_HTTP_ERRORS['404'] is 'DELTE'; {FORM}"),
    ({404: 3}, f"CRAWLSPACE_HTTP_ERRORS[404] is 3; {FORM}"),
    ({"404": ""}, FORM),
    ({"404": "DELETE:"}, FORM),
    ({"404": "DELETE:-1"}, FORM),
    ({"404": "DELETE:1.5"}, FORM),
    ({"404": "DELETE:٣"}, FORM),
    ({"404": "DELETE 10"}, FORM),
    ({"404": "DELETE;RETRY:1"}, FORM),
    ({"404": "DELETE,"}, FORM),
    ({"404": "RETRY:3"}, FORM),
    ({"404": "RETRY:3, DELETE"}, FORM),
    ({"404": "DELETE, RETRY:3, RETRY:3"}, FORM),
    ({"404": "DELETE, RETRY:101"}, "'DELETE, RETRY:101'; the number behind RETRY must be at most 100"),
]


@pytest.mark.parametrize("value,sentence", WRONG, ids=[str(row[0]) for row in WRONG])
def test_wrong(value: object, sentence: str) -> None:
    with pytest.raises(SettingError) as caught:
        read_error_rules(value)
    assert sentence in str(caught.value)


CODES = [
    # the value of RETRY_HTTP_CODES; the codes
    (None, None),
    ([], frozenset()),
    ("", frozenset()),
    ([500, "503"], frozenset({500, 503})),
    ("500, 404", frozenset({500, 404})),
    ({429}, frozenset({429})),
]


@pytest.mark.parametrize("value,codes", CODES)
def test_the_codes_that_are_retried(value: object, codes: frozenset[int] | None) -> None:
    assert read_retry_codes(value) == codes


@pytest.mark.parametrize(
    "value,named", [([200], "200"), ("500,302", "'302'"), (5, "5"), ([None], "None"), ([612], "612"), ("5xx", "'5xx'")]
)
def test_wrong_codes(value: object, named: str) -> None:
    with pytest.raises(SettingError, match=f"RETRY_HTTP_CODES has {named}; it may hold codes from 400 to 599"):
        read_retry_codes(value)


MOST = [
    # percent, count, indexed documents, the most that may leave at once
    (10, 100, 0, 100),
    (10, 100, 999, 100),
    (10, 100, 1_000, 100),
    (10, 100, 1_009, 100),
    (10, 100, 1_010, 101),
    (10, 100, 1_000_000, 100_000),
    (10, 0, 9, 0),
    (10, 0, 19, 1),
    (0, 0, 1_000, 0),
    (0, 5, 1_000, 5),
    (100, 0, 1_000, 1_000),
]


@pytest.mark.parametrize("percent,count,indexed,most", MOST)
def test_the_most_that_may_leave_at_once(percent: int, count: int, indexed: int, most: int) -> None:
    deletion_limit = DeletionLimit(percent, count)
    assert deletion_limit.most(indexed) == most
    for deletions in (most, most + 1):
        too_many = deletions * 100 > percent * indexed and deletions > count
        assert deletion_limit.allows(deletions, indexed=indexed) is not too_many
