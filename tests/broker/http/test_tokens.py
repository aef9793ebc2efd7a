"""Admin tokens in a file or a folder: which are valid now, and for what."""

from pathlib import Path

import pytest

from ibrik_broker.http.tokens import Scope, TokenFile
from tests.broker.http.rig import Rig, running_doors


def mount(folder: Path, version: str, **tokens: str) -> None:
    """As Kubernetes mounts a Secret: links to ..data/<key>, and ..data to a folder, swapped."""
    made = folder / f"..{version}"
    made.mkdir(parents=True)
    for name, token in tokens.items():
        (made / name).write_text(token)
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"..data/{name}")
    (folder / "..next").symlink_to(made.name)
    (folder / "..next").rename(folder / "..data")


async def status(rig: Rig, token: str) -> int:
    headers = {"Authorization": f"Bearer {token}"}
    path = "/admin/v1/observed"
    return (await rig.call("GET", path, headers=headers, port=rig.admin_port)).status


async def test_a_mounted_secret_rotates_without_a_restart(tmp_path: Path) -> None:
    folder = tmp_path / "admin"
    mount(folder, "1", current="one")
    async with running_doors(tmp_path / "data", token_file=folder) as rig:
        assert [await status(rig, token) for token in ("one", "two", "three")] == [200, 401, 401]
        mount(folder, "2", current="two", previous="one")
        assert [await status(rig, token) for token in ("one", "two", "three")] == [200, 200, 401]
        mount(folder, "3", current="three", previous="two")
        assert [await status(rig, token) for token in ("one", "two", "three")] == [401, 200, 200]


async def test_the_token_of_archive_jobs_opens_no_other_route(tmp_path: Path) -> None:
    folder = tmp_path / "admin"
    mount(folder, "1", current="one", archive="job")
    async with running_doors(tmp_path / "data", token_file=folder) as rig:
        assert [await status(rig, token) for token in ("one", "job")] == [200, 401]


def test_what_is_marked_for_archive_takes_both_kinds_of_tokens(tmp_path: Path) -> None:
    mount(tmp_path, "1", current="one", archive="job")
    tokens = TokenFile(tmp_path)
    assert tokens.accepts(b"job", Scope.ARCHIVE)
    assert tokens.accepts(b"one", Scope.ARCHIVE)
    assert not tokens.accepts(b"job")
    assert not tokens.accepts(b"", Scope.ARCHIVE)


def test_a_folder_without_a_current_token_lets_nobody_in(tmp_path: Path) -> None:
    mount(tmp_path, "1", previous="one", archive="job")
    tokens = TokenFile(tmp_path)
    assert not tokens.accepts(b"one")
    mount(tmp_path, "2", current="two", previous="one")
    assert tokens.accepts(b"one")


@pytest.mark.parametrize("other", ["ca.crt", ".hidden", "token"])
def test_other_files_of_the_folder_are_no_tokens(tmp_path: Path, other: str) -> None:
    mount(tmp_path, "1", **{"current": "one", other: "two"})
    assert not TokenFile(tmp_path).accepts(b"two")
