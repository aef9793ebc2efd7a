"""A Channel is ready when every pool that serves it has stored it, and its secrets are there."""

from dataclasses import replace

import pytest

from ibrik_api.desired import ApplyResult, Outcome
from ibrik_operator.conditions.channel import ChannelFacts, channel_verdicts
from ibrik_operator.conditions.condition import Violation
from ibrik_operator.conditions.reasons import REASONS, Reason
from ibrik_operator.conditions.serving import Serving
from ibrik_operator.keys import Key

CONFIRMED = Serving(is_known=True, is_confirmed=True, status={})
SILENT = Serving(trouble=Violation(Reason.BROKERS_UNAVAILABLE, "no pods yet"))
REFUSED = Serving(
    refusal=Outcome(
        kind="Channel",
        namespace="shop",
        name="billing",
        result=ApplyResult.REFUSED,
        code="destination-forbidden",
        detail="Private addresses are not allowed.",
    )
)
PENDING = Violation(Reason.CREDENTIALS_PENDING, "please wait")
FINE = ChannelFacts(Key("Channel", "shop", "billing"), None, (CONFIRMED, CONFIRMED))


@pytest.mark.parametrize(
    ("facts", "resolved", "credentials", "stored"),
    [
        (FINE, "True", "True", "True"),
        (replace(FINE, servings=()), "True", "True", "NotUsed"),
        (replace(FINE, servings=(CONFIRMED, SILENT)), "True", "True", "BrokersUnavailable"),
        (replace(FINE, servings=(CONFIRMED, Serving())), "True", "True", "BrokersUnavailable"),
        (replace(FINE, servings=(CONFIRMED, REFUSED)), "SpecRefused", "True", "SpecRefused"),
        (replace(FINE, credentials=PENDING), "True", "CredentialsPending", "True"),
    ],
)
def test_each_aspect_has_its_own_reason(
    facts: ChannelFacts, resolved: str, credentials: str, stored: str
) -> None:
    verdicts = channel_verdicts(facts)
    found = {one.type: one.status if one.status == "True" else one.reason for one in verdicts}
    assert list(found) == [
        "Ready",
        "Reconciling",
        "Stalled",
        "Resolved",
        "CredentialsValid",
        "MetadataStored",
    ]
    assert (found["Resolved"], found["CredentialsValid"], found["MetadataStored"]) == (
        resolved,
        credentials,
        stored,
    )
    assert found["Ready"] == next(
        (one for one in (resolved, credentials, stored) if one != "True"), "True"
    )
    assert all(one.reason in REASONS for one in verdicts)
