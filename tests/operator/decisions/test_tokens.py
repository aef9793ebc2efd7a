"""The admin token is made once, and again only when a person asks for it."""

from ibrik_api.kubernetes import ROTATE_ADMIN_TOKEN
from ibrik_operator.decisions.tokens import lacks_archive_token, renewed


def secret(done: str | None, **data: str) -> dict[str, object]:
    annotations = {} if done is None else {ROTATE_ADMIN_TOKEN: done}
    return {"kind": "Secret", "metadata": {"annotations": annotations}, "data": data}


def test_it_is_made_when_there_is_none() -> None:
    assert renewed(None, None) is False
    assert renewed(secret(None), None) is False
    assert renewed(secret(None, previous="x"), "monday") is False


def test_it_stays_as_it_is() -> None:
    assert renewed(secret(None, current="x"), None) is None
    assert renewed(secret("monday", current="x"), "monday") is None
    assert renewed(secret("monday", current="x"), None) is None


def test_a_new_value_of_the_annotation_replaces_it() -> None:
    assert renewed(secret(None, current="x"), "monday") is True
    assert renewed(secret("monday", current="x"), "tuesday") is True


def test_a_pool_that_archives_has_a_token_for_its_jobs() -> None:
    archiving: dict[str, object] = {"spec": {"archive": {"target": {}}}}
    assert not lacks_archive_token(secret(None, current="x"), {"spec": {}})
    assert lacks_archive_token(None, archiving)
    assert lacks_archive_token(secret(None, current="x"), archiving)
    assert not lacks_archive_token(secret(None, current="x", archive="y"), archiving)
