"""The words of the product for states and verdicts, each with the icon and colour it carries."""

# key → (class that names the colour, icon, word)
_WORDS: dict[str, tuple[str, str, str]] = {
    "match": ("met", "met", "Met"),
    "better": ("met", "met", "Met"),
    "met": ("met", "met", "Met"),
    "passed": ("met", "met", "Passed"),
    "accepted": ("met", "met", "Accepted"),
    "running": ("met", "met", "Running"),
    "active": ("met", "met", "Running"),
    "available": ("met", "met", "Available"),
    "admitted": ("met", "met", "Admitted"),
    "alive": ("met", "met", "Alive"),
    "published": ("met", "met", "Published"),
    "settled": ("met", "met", "Settled"),
    "earned": ("met", "met", "Earned"),
    "paid": ("met", "met", "Paid"),
    "open": ("unknown", "wait", "Open"),
    "short": ("short", "short", "Short"),
    "readings_differ": ("short", "short", "Readings differ"),
    "draining": ("short", "short", "Draining"),
    "disputed": ("short", "scale", "In dispute"),
    "interrupted": ("short", "short", "Interrupted"),
    "parked": ("short", "wait", "Parked"),
    "late": ("short", "wait", "Late"),
    "different": ("missed", "missed", "Different"),
    "missed": ("missed", "missed", "Missed"),
    "failed": ("missed", "missed", "Failed"),
    "refused": ("missed", "missed", "Refused"),
    "held_back": ("missed", "missed", "Held back"),
    "fenced": ("missed", "missed", "Fenced"),
    "held": ("missed", "missed", "Held"),
    "silent": ("missed", "missed", "Silent"),
    "not_measured": ("unknown", "unknown", "Not measured"),
    "not_observed": ("unknown", "unknown", "Not observed"),
    "cannot_judge": ("unknown", "unknown", "Cannot judge"),
    "unknown": ("unknown", "unknown", "Unknown"),
    "withdrawn": ("unknown", "unknown", "Withdrawn"),
    "retired": ("unknown", "unknown", "Retired"),
    "ended": ("unknown", "met", "Ended"),
    "expired": ("unknown", "wait", "Expired"),
    "waiting": ("unknown", "wait", "Waiting"),
    "pending": ("unknown", "wait", "Open to dispute"),
    "created": ("unknown", "wait", "Waiting for payment"),
    "checking": ("unknown", "wait", "Checking"),
    "enrolled": ("unknown", "wait", "Enrolled"),
    "proving": ("unknown", "wait", "Proving"),
    "provisioning": ("unknown", "wait", "Starting"),
    "ending": ("unknown", "wait", "Ending"),
    "ruled": ("met", "scale", "Ruled"),
    "data_centre": ("met", "chip", "Data centre"),
    "professional": ("met", "chip", "Professional"),
    "community": ("met", "chip", "Community"),
    "issued": ("unknown", "wait", "Issued"),
    "started": ("unknown", "wait", "Started"),
    "committed": ("unknown", "wait", "Committed"),
    "answered": ("unknown", "wait", "Answered"),
}


def look_of(key: str) -> tuple[str, str, str]:
    """Return colour class, icon and word of a state or verdict; an unlisted one reads as itself."""
    key = key.strip().lower().replace("-", "_").replace(" ", "_")
    if key in _WORDS:
        return _WORDS[key]
    return ("unknown", "unknown", key.replace("_", " ").capitalize() or "Unknown")
