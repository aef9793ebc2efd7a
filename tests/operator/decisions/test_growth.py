"""Volumes grow where their class lets them, and nothing else of them changes."""

import pytest

from ibrik_operator.decisions.growth import growing, too_small, unsupported
from tests.support.pool_documents import claim

GIB = 2**30


def test_only_claims_that_ask_for_less_grow() -> None:
    claims = [
        claim(0, size="10Gi", capacity="10Gi"),
        claim(1, size="20Gi", capacity="20Gi"),
        claim(2, size="20480Mi", capacity="20Gi"),
        claim(3, size="30Gi", capacity="30Gi"),
        claim(4, size="10Gi", capacity=None),
    ]
    assert too_small(claims, 20 * GIB) == claims[:1]


@pytest.mark.parametrize(
    ("one", "is_growing"),
    [
        (claim(0, size="10Gi", capacity="10Gi"), False),
        (claim(0, size="10Gi", capacity=None), False),
        (claim(0, size="20Gi", capacity="10Gi"), True),
        (claim(0, size="20Gi", capacity="10Gi", conditions=[{"type": "Resizing"}]), True),
        (
            claim(
                0, size="20Gi", capacity="10Gi", conditions=[{"type": "FileSystemResizePending"}]
            ),
            False,
        ),
        (claim(0, size="10Gi", capacity="10737418240"), False),
    ],
)
def test_a_volume_grows_until_it_is_as_large_as_asked(
    one: dict[str, object], is_growing: bool
) -> None:
    found = growing([one])
    assert (found is not None) is is_growing
    if found is not None:
        assert found.reason == "Resizing"
        assert "data-ibrik-default-0 grows from 10Gi to 20Gi" in found.message


def test_a_class_that_does_not_let_grow_is_named_with_the_way_back() -> None:
    found = unsupported("default", "shop", "disks", claim(0, size="10Gi", capacity="10Gi"))
    assert found.is_stalled
    assert "StorageClass 'disks'" in found.message
    assert """patch brokerpools.ibrik.dev default --type merge -p '{"spec":""" in found.message
    assert '"size":"10Gi"' in found.message
