"""YAML as people write it: its traps are refused by name, plain words stay words."""

import pytest

from fabric_agent.problems import ConfigProblem
from fabric_agent.yaml_files import load_yaml, load_yaml_file


def test_plain_yaml_is_read_as_it_is_written():
    """R-A11 (agent): a listing file is read as it is written."""
    text = """
    title: Quiet rack
    country: NO
    ratio: 1:30
    port: 010
    when: 2026-12-01
    price: {amount_micros: 2400000, per_quantity: 3600}
    interruptible: false
    share: 0.5
    nothing: ~
    quoted: "12"
    list: [1, two]
    """
    assert load_yaml(text) == {
        "title": "Quiet rack",
        "country": "NO",
        "ratio": "1:30",
        "port": "010",
        "when": "2026-12-01",
        "price": {"amount_micros": 2_400_000, "per_quantity": 3600},
        "interruptible": False,
        "share": 0.5,
        "nothing": None,
        "quoted": "12",
        "list": [1, "two"],
    }


BOMB = "a: &a [x,x]\n" + "".join(
    f"{name}: &{name} [*{before},*{before}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a: 1\na: 2", "DUPLICATE_KEY"),
        ("p: {a: 1, a: 2}", "DUPLICATE_KEY"),
        (BOMB, "ALIAS"),
        ("a: &x 1", "ALIAS"),
        ("a: .nan", "NOT_A_NUMBER"),
        ("a: NaN", "NOT_A_NUMBER"),
        ("a: -.inf", "NOT_A_NUMBER"),
        ("a: 1.0e999", "NUMBER_TOO_LARGE"),
        ("a: " + "9" * 30, "NUMBER_TOO_LARGE"),
        ("a: !!python/object/apply:os.system [x]", "TAG"),
        ("a: !!python/name:os.system ''", "TAG"),
        ("- 1", "NOT_A_MAPPING"),
        ("", "NOT_A_MAPPING"),
        ("a: 1\n---\nb: 2", "NOT_A_MAPPING"),
        ("a: [1", "NOT_YAML"),
        ("a: \x00", "NOT_YAML"),
        ("? [1]\n: 2", "BAD_KEY"),
        ("a: " + "[" * 20 + "]" * 20, "TOO_DEEP"),
        ("a: " + "[" * 30_000, "TOO_DEEP"),
        ("{a: " * 15_000, "TOO_DEEP"),
        ("a: " + "x" * 70_000, "FILE_TOO_LARGE"),
    ],
)
def test_what_hides_a_second_meaning_is_refused(text, code):
    """R-A11 (agent): duplicate keys, aliases, tags and numbers that are none are refused."""
    with pytest.raises(ConfigProblem) as refusal:
        load_yaml(text)
    assert refusal.value.code == code


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(ConfigProblem, match="No such file"):
        load_yaml_file(tmp_path / "missing.yaml")
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"a: \xff")
    with pytest.raises(ConfigProblem, match="UTF-8"):
        load_yaml_file(path)
    path.write_bytes(b"#" * 70_000)
    with pytest.raises(ConfigProblem, match="70000 bytes"):
        load_yaml_file(path)
