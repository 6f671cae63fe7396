"""What a provider declares about itself: shown as declared, deciding nothing."""

import re
from dataclasses import asdict, dataclass

from fabric.lib.errors import FieldError, InvalidInput
from providers.domain.nodes import Pool

_COUNTRY = re.compile(r"[A-Z]{2}")
_REGION = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


@dataclass(frozen=True)
class Profile:
    """Name, place and kind of a provider's capacity."""

    name: str
    country: str
    region: str
    pool: str
    facility: str

    def as_json(self) -> dict[str, str]:
        """Return the fields as they are stored."""
        return asdict(self)


def read_profile(*, name: str, country: str, region: str, pool: str, facility: str) -> Profile:
    """Return the profile, or raise InvalidInput naming every broken field."""
    profile = Profile(
        name=name.strip(),
        country=country.strip().upper(),
        region=region.strip().lower(),
        pool=pool.strip(),
        facility=facility.strip(),
    )
    pools = ", ".join(Pool)
    rules = (
        ("name", 1 <= len(profile.name) <= 80, "1 to 80 characters"),
        ("country", _COUNTRY.fullmatch(profile.country), "two letters of ISO 3166, such as DE"),
        (
            "region",
            len(profile.region) <= 40 and _REGION.fullmatch(profile.region),
            "letters, digits and hyphens, such as eu-central",
        ),
        ("pool", profile.pool in list(Pool), f"one of {pools}"),
        (
            "facility",
            len(profile.facility) <= 80 and "\x00" not in profile.facility,
            "at most 80 characters",
        ),
    )
    errors = tuple(
        FieldError(field, "not acceptable", accepted) for field, good, accepted in rules if not good
    )
    if errors:
        raise InvalidInput("The profile is not acceptable.", errors=errors)
    return profile
