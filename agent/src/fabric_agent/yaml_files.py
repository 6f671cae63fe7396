"""YAML as people write it, without its traps.

The common loaders turn Norway's `NO` into false and `1:30` into ninety, keep the last of two equal
keys, and unfold a few lines of aliases into gigabytes. Here a plain word is text unless it is a
plain number, `true`, `false` or `null`; keys are unique; aliases, tags and second documents are
refused.
"""

import math
import re
from pathlib import Path
from typing import Any

import yaml

from fabric_agent.problems import ConfigProblem

MAX_BYTES = 64 * 1024
MAX_DEPTH = 12
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_NUMBER = re.compile(r"[-+]?(0|[1-9][0-9]*)\.[0-9]+([eE][-+]?[0-9]+)?")
_NOT_FINITE = {".nan", ".inf", "-.inf", "+.inf", "nan", "inf", "-inf", "infinity", "-infinity"}
_PLAIN_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None, "~": None, "": None}


def load_yaml_file(path: Path) -> dict[str, Any]:
    """Read a file whose top level is a mapping; ConfigProblem names what is refused and where."""
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise ConfigProblem("FILE_TOO_LARGE", f"{path} has {size} bytes; {MAX_BYTES} are read")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigProblem("FILE_UNREADABLE", f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigProblem("NOT_UTF8", f"{path} is not UTF-8 at byte {error.start}") from error
    return load_yaml(text)


def load_yaml(text: str) -> dict[str, Any]:
    """Read one YAML document whose top level is a mapping, strictly."""
    if len(text.encode()) > MAX_BYTES:
        raise ConfigProblem("FILE_TOO_LARGE", f"at most {MAX_BYTES} bytes are read")
    try:
        _check_events(text)
        nodes = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise ConfigProblem("NOT_YAML", f"not YAML: {_one_line(error)}") from error
    if len(nodes) != 1 or not isinstance(nodes[0], yaml.MappingNode):
        raise ConfigProblem("NOT_A_MAPPING", "the file must hold one mapping of fields")
    return _read_mapping(nodes[0], path="")


def _check_events(text: str) -> None:
    """Refuse aliases, foreign tags and depth on the flat stream, before anything is built."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise ConfigProblem("ALIAS", f"line {line}: anchors and aliases are not read")
        tag = getattr(event, "tag", None)
        if tag:
            raise ConfigProblem("TAG", f"line {line}: tags are not read ({tag})")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise ConfigProblem("TOO_DEEP", f"line {line}: deeper than {MAX_DEPTH} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _read(node: yaml.Node, *, path: str) -> Any:
    if isinstance(node, yaml.MappingNode):
        return _read_mapping(node, path=path)
    if isinstance(node, yaml.SequenceNode):
        return [_read(item, path=f"{path}[{place}]") for place, item in enumerate(node.value)]
    text = str(node.value)
    if getattr(node, "style", None) in {"'", '"', "|", ">"}:
        return text
    return _plain(text, path=path, line=node.start_mark.line + 1)


def _read_mapping(node: yaml.MappingNode, *, path: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode) or not key_node.value:
            raise ConfigProblem("BAD_KEY", f"line {line}: a field's name is plain text")
        key = str(key_node.value)
        place = f"{path}.{key}" if path else key
        if key in found:
            raise ConfigProblem("DUPLICATE_KEY", f"line {line}: {place} is given twice")
        found[key] = _read(value_node, path=place)
    return found


def _plain(text: str, *, path: str, line: int) -> Any:
    if text in _PLAIN_WORDS:
        return _PLAIN_WORDS[text]
    if text.lower() in _NOT_FINITE:
        raise ConfigProblem("NOT_A_NUMBER", f"line {line}: {path} is {text}, which is no number")
    if _INTEGER.fullmatch(text):
        if len(text) > 16:
            raise ConfigProblem("NUMBER_TOO_LARGE", f"line {line}: {path} has too many digits")
        return int(text)
    if _NUMBER.fullmatch(text):
        value = float(text)
        if not math.isfinite(value):
            raise ConfigProblem("NUMBER_TOO_LARGE", f"line {line}: {path} is too large")
        return value
    return text


def _one_line(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or type(error).__name__
    return f"{what} at line {mark.line + 1}" if mark else str(what)
