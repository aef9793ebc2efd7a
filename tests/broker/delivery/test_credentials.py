"""Secrets by reference: where they are read from, when again, and that no value gets out."""

import os
from pathlib import Path

import pytest

from ibrik_api.kubernetes import credential_key
from ibrik_api.observed import content_fingerprint
from ibrik_api.resources.destination import SecretReference
from ibrik_broker.delivery.credentials import CredentialMissing, Credentials

FILE = SecretReference(file="token")


def refusal(credentials: Credentials, reference: SecretReference = FILE) -> str:
    with pytest.raises(CredentialMissing) as caught:
        credentials.read(reference, "shop")
    return str(caught.value)


def test_a_file_is_read_without_its_line_end_and_again_when_it_changes(tmp_path: Path) -> None:
    credentials = Credentials(tmp_path, {})
    (tmp_path / "token").write_text("first\r\n")
    assert credentials.read(FILE, "shop") == b"first"
    os.utime(tmp_path / "token", ns=(1, 1))
    (tmp_path / "token").write_text("other\n")
    assert credentials.read(FILE, "shop") == b"other"
    (tmp_path / "token").unlink()
    assert (
        refusal(credentials)
        == "the credential file token cannot be read: No such file or directory"
    )


def test_an_unchanged_file_is_not_read_again(tmp_path: Path) -> None:
    credentials = Credentials(tmp_path, {})
    file = tmp_path / "token"
    file.write_text("first")
    credentials.read(FILE, "shop")
    stamp = file.stat()
    with file.open("r+") as opened:
        opened.write("other")
    os.utime(file, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert credentials.read(FILE, "shop") == b"first"


def test_the_links_that_kubernetes_makes_are_followed(tmp_path: Path) -> None:
    for version in ("v1", "v2"):
        (tmp_path / f"..{version}").mkdir()
        (tmp_path / f"..{version}" / "token").write_text(version)
    (tmp_path / "..data").symlink_to("..v1")
    (tmp_path / "token").symlink_to("..data/token")
    credentials = Credentials(tmp_path, {})
    assert credentials.read(FILE, "shop") == b"v1"
    (tmp_path / "..new").symlink_to("..v2")
    (tmp_path / "..new").rename(tmp_path / "..data")
    assert credentials.read(FILE, "shop") == b"v2"


def test_a_folder_that_is_a_link_itself_is_fine(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "token").write_text("x")
    (tmp_path / "linked").symlink_to("real")
    assert Credentials(tmp_path / "linked", {}).read(FILE, "shop") == b"x"


def test_nothing_outside_the_folder_is_read(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("hunter2")
    folder = tmp_path / "credentials"
    folder.mkdir()
    (folder / "token").symlink_to("../outside")
    (folder / "inner").mkdir()
    credentials = Credentials(folder, {})
    assert "inside the folder" in refusal(credentials)
    assert "inside the folder" in refusal(credentials, SecretReference(file="inner"))
    for name in ("../outside", "/etc/passwd", "..", ".hidden"):
        sly = SecretReference.model_construct(file=name, env=None, name=None, key=None)
        assert "is no name of a file" in refusal(credentials, sly)


def test_an_empty_or_huge_file_is_missing(tmp_path: Path) -> None:
    credentials = Credentials(tmp_path, {})
    (tmp_path / "token").write_text("\n")
    assert refusal(credentials) == "the credential file token is empty or not set"
    (tmp_path / "token").write_bytes(bytes(1024 * 1024 + 1))
    assert "is larger than" in refusal(credentials)


def test_a_variable_is_read_from_the_environment() -> None:
    reference = SecretReference(env="IBRIK_SECRET_ERP")
    credentials = Credentials(Path("/nonexistent"), {"IBRIK_SECRET_ERP": "x"})
    assert credentials.read(reference, "shop") == b"x"
    assert (
        refusal(Credentials(Path("/nonexistent"), {}), reference)
        == "the variable IBRIK_SECRET_ERP is empty or not set"
    )


def test_a_kubernetes_secret_is_a_file_named_after_it(tmp_path: Path) -> None:
    (tmp_path / "shop_erp_token").write_text("x")
    reference = SecretReference(name="erp", key="token")
    credentials = Credentials(tmp_path, {})
    assert credentials.read(reference, "shop") == b"x"
    with pytest.raises(CredentialMissing, match="the key token of the Secret other/erp"):
        credentials.read(reference, "other")


def test_names_with_dots_in_them_lead_to_files_of_their_own(tmp_path: Path) -> None:
    (tmp_path / credential_key("a", "b", "c.d")).write_text("one")
    (tmp_path / credential_key("a", "b.c", "d")).write_text("other")
    credentials = Credentials(tmp_path, {})
    assert credentials.read(SecretReference(name="b", key="c.d"), "a") == b"one"
    assert credentials.read(SecretReference(name="b.c", key="d"), "a") == b"other"


def test_a_name_that_no_secret_can_have_does_not_lead_to_the_file_of_another(
    tmp_path: Path,
) -> None:
    (tmp_path / credential_key("a", "b", "c_d")).write_text("not for everybody")
    credentials = Credentials(tmp_path, {})
    with pytest.raises(CredentialMissing, match="no Secret has an underscore in its name"):
        credentials.read(SecretReference(name="b_c", key="d"), "a")


def test_a_fingerprint_shows_a_change_and_not_the_secret(tmp_path: Path) -> None:
    credentials = Credentials(tmp_path, {})
    (tmp_path / "token").write_text("hunter2")
    first = credentials.fingerprints()
    (tmp_path / "token").write_text("hunter34")
    assert credentials.fingerprints()["token"] != first["token"]
    assert first == {"token": "f52fbd32b2b3"}


def test_fingerprints_are_those_of_files_as_kubernetes_mounts_them(tmp_path: Path) -> None:
    for version, value in (("..one", b"old"), ("..two", b"new")):
        (tmp_path / version).mkdir()
        (tmp_path / version / "shop_erp_token").write_bytes(value)
    (tmp_path / "..data").symlink_to("..one")
    (tmp_path / "shop_erp_token").symlink_to("..data/shop_erp_token")
    credentials = Credentials(tmp_path, {})
    assert credentials.fingerprints() == {"shop_erp_token": content_fingerprint(b"old")}
    (tmp_path / "..next").symlink_to("..two")
    (tmp_path / "..next").rename(tmp_path / "..data")
    assert credentials.fingerprints() == {"shop_erp_token": content_fingerprint(b"new")}
    assert Credentials(tmp_path / "missing", {}).fingerprints() == {}
