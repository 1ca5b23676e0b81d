"""What a removable rule is: the hazard that it keeps away, how it is taken out of the source, and the tests that must notice."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Edit:
    """In `file`, `old` (which stands there once) becomes `new`; OFF in it is true while the rule is removed."""
    file: str
    old: str
    new: str


@dataclass(frozen=True)
class Rule:
    name: str  # hazard, or hazard-part where one hazard has several rules
    what: str  # what is gone when it is removed
    edits: list  # none: an edit of another rule has a switch for this one, too
    tests: list = field(default_factory=list)  # (program, filter); not given: hazards_test, the tests named after the hazard

    @property
    def hazard(self):
        return self.name.split("-")[0]

    @property
    def runs(self):
        return self.tests or [("hazards_test", f"*{self.hazard}_*")]
