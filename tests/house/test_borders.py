"""The borders between apps, seen from the models and from the repository itself."""

import re
import subprocess

from django.apps import apps

from deploy.local.venv import ROOT

# From bottom to top; two apps on one step never point at each other.
STEPS = {
    "journal": 0,
    "accounts": 1,
    "providers": 2,
    "listings": 3,
    "billing": 3,
    "leases": 4,
    "workloads": 5,
}
_REGISTRY_HOST = re.compile(r"pypi\.org|pythonhosted\.org|registry\.npmjs|deb\.debian|file://")
_FOLDER_OF_A_MACHINE = re.compile(r"(?<![\w.])/(?:work|farm|root|home|opt)/[a-z]")


def _tracked(*patterns: str) -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", *patterns], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [name for name in listed.stdout.split("\0") if name]


def test_no_foreign_key_points_up() -> None:
    """R-A12 (api): what is below knows nothing of what stands on it."""
    wrong = []
    for model in apps.get_models(include_auto_created=True):
        here = STEPS.get(model._meta.app_label)
        for field in model._meta.get_fields():
            target = field.related_model if field.concrete and field.is_relation else None
            if here is None or target is None or isinstance(target, str):
                continue
            there = STEPS.get(target._meta.app_label, -1)
            if there > here or (there == here and target._meta.app_label != model._meta.app_label):
                wrong.append(f"{model._meta.label}.{field.name} → {target._meta.label}")
    assert wrong == []


def test_the_walk_sees_the_relations_it_judges() -> None:
    """A walk that found nothing would also find nothing wrong."""
    from leases.models import Lease

    related = {
        target._meta.label
        for target in (field.related_model for field in Lease._meta.get_fields() if field.concrete)
        if target is not None and not isinstance(target, str)
    }
    assert {"billing.Agreement", "providers.Node", "listings.Revision"} <= related


def test_locks_carry_hashes_and_no_addresses() -> None:
    for name in ("uv", "runtime", "dev"):
        text = (ROOT / "requirements" / f"{name}.txt").read_text()
        requirements = re.findall(r"^[a-z0-9].*(?:\n    .*)*", text, flags=re.MULTILINE)
        assert requirements
        assert [line for line in requirements if "--hash=sha256:" not in line] == []
        assert "://" not in text
        assert "--index-url" not in text


def test_no_file_names_a_package_registry_or_a_folder_of_one_machine() -> None:
    wrong = []
    for name in _tracked():
        path = ROOT / name
        if name == "tests/house/test_borders.py" or not path.is_file():
            continue
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        wrong += [
            f"{name}: {found.group()}"
            for pattern in (_REGISTRY_HOST, _FOLDER_OF_A_MACHINE)
            for found in pattern.finditer(text)
        ]
    assert wrong == []
