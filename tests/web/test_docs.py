"""The documents say what is there: links resolve, decisions are listed, ids are in the glossary."""

import re
from pathlib import Path

import pytest
from django.apps import apps
from django.conf import settings

from fabric.lib.models import PublicModel

DOCS = settings.BASE_DIR / "docs"
PAGES = [*DOCS.rglob("*.md"), settings.BASE_DIR / "README.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_between_documents_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_decision_is_listed_under_its_own_title() -> None:
    index = (DOCS / "adr" / "index.md").read_text()
    for decision in sorted((DOCS / "adr").glob("[0-9]*.md")):
        title = decision.read_text().splitlines()[0].removeprefix("# ")
        assert f"[{title}]({decision.name})" in index


def test_every_type_of_public_id_that_people_meet_is_in_the_glossary() -> None:
    glossary = (DOCS / "glossary.md").read_text()
    hidden = {"etk", "chk"}  # a token's and a check's own ids are shown to nobody
    models = [model for model in apps.get_models() if issubclass(model, PublicModel)]
    missing = {model.PREFIX for model in models if f"`{model.PREFIX}_…`" not in glossary}
    assert missing <= hidden
