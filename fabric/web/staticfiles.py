"""How static files are stored: hashed names, compressed beside themselves."""

from whitenoise.storage import CompressedManifestStaticFilesStorage


class StaticStorage(CompressedManifestStaticFilesStorage):
    """WhiteNoise's storage, without following source maps.

    The packages we carry unmodified name maps that we do not ship; looking for them would stop
    `collectstatic`, and no browser asks for one unless its tools are open.
    """

    patterns = tuple(
        (
            suffix,
            tuple(
                rule
                for rule in rules
                if "sourceMappingURL" not in (rule if isinstance(rule, str) else rule[0])
            ),
        )
        for suffix, rules in CompressedManifestStaticFilesStorage.patterns
    )
