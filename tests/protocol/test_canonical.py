"""One writing per document, and a reader that refuses what two readers take differently."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric_protocol import canonical

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12)
DOCUMENTS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(-(2.0**53) + 1, 2.0**53 - 1)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(DOCUMENTS)
def test_what_is_written_is_read_back_and_written_the_same(document):
    data = canonical.dumps(document)
    assert canonical.loads(data) == json.loads(data)
    assert canonical.dumps(canonical.loads(data)) == data


@given(st.dictionaries(TEXT, st.integers(0, 9), min_size=2, max_size=6))
def test_the_order_of_keys_does_not_change_the_digest(document):
    turned = dict(reversed(list(document.items())))
    assert canonical.digest(turned) == canonical.digest(document)


@given(st.binary(max_size=64))
def test_any_bytes_are_read_or_refused_by_name(data):
    with contextlib.suppress(canonical.BadDocument):
        value = canonical.loads(data)
        assert json.loads(data) == value


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b'{"a":1,"a":2}', "DUPLICATE_KEY"),
        (b'{"a":{"b":1,"b":1}}', "DUPLICATE_KEY"),
        (b'{"a":1,"\\u0061":2}', "DUPLICATE_KEY"),
        (b"NaN", "NOT_A_NUMBER"),
        (b"[Infinity]", "NOT_A_NUMBER"),
        (b"[-Infinity]", "NOT_A_NUMBER"),
        (b"1e999", "NUMBER_TOO_LARGE"),
        (b"1e20", "NUMBER_TOO_LARGE"),
        (b"9007199254740993", "NUMBER_TOO_LARGE"),
        (b"1" * 5000, "NUMBER_TOO_LARGE"),
        (b'{"a":1', "NOT_JSON"),
        (b'"\xff"', "NOT_UTF8"),
        (b"\xef\xbb\xbf{}", "NOT_JSON"),
        ('{"a":1}'.encode("utf-16"), "NOT_UTF8"),
        (b"", "NOT_JSON"),
        (b"{} {}", "NOT_JSON"),
        (b'"\\ud800"', "BAD_TEXT"),
        (b'{"\\u0000":1}', "BAD_TEXT"),
        (b"[" * 40 + b"]" * 40, "TOO_DEEP"),
        (b"[" * 100_000 + b"]" * 100_000, "TOO_DEEP"),
        (b'{"a":' * 40 + b"1" + b"}" * 40, "TOO_DEEP"),
        (b'"' + b"x" * canonical.MAX_BYTES + b'"', "TOO_LARGE"),
    ],
)
def test_a_document_with_two_readings_is_refused(data, code):
    """R-C4 (agent): a batch that two parties could read differently is never accepted."""
    with pytest.raises(canonical.BadDocument) as refusal:
        canonical.loads(data)
    assert refusal.value.code == code


def test_depth_is_counted_to_the_level():
    assert canonical.loads(b"[" * 3 + b"]" * 3, max_depth=3) == [[[]]]
    with pytest.raises(canonical.BadDocument):
        canonical.loads(b"[" * 4 + b"]" * 4, max_depth=3)


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), 2**53, 2.0**53, {1: 2}, "\ud800", object(), b"bytes"]
)
def test_a_value_without_a_canonical_form_is_refused(value):
    with pytest.raises(canonical.BadDocument):
        canonical.dumps(value)


def test_the_top_level_can_be_required_to_be_an_object():
    assert canonical.loads_object(b"{}") == {}
    with pytest.raises(canonical.BadDocument, match="not a JSON object"):
        canonical.loads_object(b"[]")
