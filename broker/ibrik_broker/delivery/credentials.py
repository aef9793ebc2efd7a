"""Secrets that channels refer to: from files of one folder, or from the environment.

The one place that reads them. A value never leaves in an error, a log line or a database; people
see whether it is there and the beginning of its digest.
"""

import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ibrik_api.kubernetes import credential_key
from ibrik_api.observed import content_fingerprint
from ibrik_api.resources.destination import Destination, SecretReference

SECRET_BYTES_MAX = 1024 * 1024
"""As much as Kubernetes puts into one Secret."""
FILES_MAX = 10_000


class CredentialMissing(Exception):
    """A reference leads to no secret; the text names the reference, never a value."""


class _Read(NamedTuple):
    stamp: tuple[int, int, int]
    value: bytes


class Credentials:
    """The secrets of this broker."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self._folder = folder
        self._environ = environ
        self._files: dict[str, _Read] = {}

    def read(self, reference: SecretReference, namespace: str) -> bytes:
        """The secret without the line ends after it. Raises CredentialMissing.

        Touches the disk: call it from a thread.
        """
        if reference.env is not None:
            value = self._environ.get(reference.env, "").encode()
        else:
            value = self._read_file(_file_of(reference, namespace), _shown(reference, namespace))
        value = value.rstrip(b"\r\n")
        if not value:
            raise CredentialMissing(f"{_shown(reference, namespace)} is empty or not set")
        return value

    def fault(self, destination: Destination, namespace: str) -> str | None:
        """What is wrong with the secrets that a destination refers to; None: all are there.

        Touches the disk: call it from a thread.
        """
        users = (destination.auth.bearer, destination.auth.basic, destination.signing)
        references = [user.secret_ref for user in users if user is not None]
        if destination.tls.ca_secret_ref is not None:
            references.append(destination.tls.ca_secret_ref)
        try:
            for reference in references:
                self.read(reference, namespace)
        except CredentialMissing as missing:
            return str(missing)
        return None

    def fingerprints(self) -> dict[str, str]:
        """Every file of the folder by name, with its fingerprint; those that can be read.

        Touches the disk: call it from a thread.
        """
        try:
            names = sorted(path.name for path in self._folder.iterdir())
        except OSError:
            return {}
        found = {}
        for name in [name for name in names if not name.startswith(".")][:FILES_MAX]:
            with suppress(CredentialMissing):
                found[name] = content_fingerprint(self._read_file(name, name))
        return found

    def _read_file(self, name: str, shown: str) -> bytes:
        try:
            folder = self._folder.resolve(strict=True)
            # Kubernetes makes each file a link to ..data/<file>, and ..data a link to a folder.
            path = (folder / name).resolve(strict=True)
            status = path.stat()
            if not path.is_relative_to(folder) or not stat.S_ISREG(status.st_mode):
                raise CredentialMissing(f"{shown} is no file inside the folder of credentials")
            if status.st_size > SECRET_BYTES_MAX:
                raise CredentialMissing(f"{shown} is larger than {SECRET_BYTES_MAX:,} bytes")
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
            known = self._files.get(name)
            if known is None or known.stamp != stamp:
                known = self._files[name] = _Read(stamp, path.read_bytes())
        except OSError as error:
            self._files.pop(name, None)
            raise CredentialMissing(f"{shown} cannot be read: {error.strerror}") from error
        return known.value


def _file_of(reference: SecretReference, namespace: str) -> str:
    """The file's name in the folder; names of the model hold no slash."""
    if reference.file is not None:
        name = reference.file
    else:
        secret = str(reference.name)
        if "_" in secret:  # It would be a border in the file's name.
            shown = _shown(reference, namespace)
            raise CredentialMissing(f"{shown} cannot be: no Secret has an underscore in its name")
        name = credential_key(namespace, secret, str(reference.key))
    if "/" in name or name.startswith("."):
        raise CredentialMissing(f"{_shown(reference, namespace)} is no name of a file")
    return name


def _shown(reference: SecretReference, namespace: str) -> str:
    if reference.env is not None:
        return f"the variable {reference.env}"
    if reference.file is not None:
        return f"the credential file {reference.file}"
    return f"the key {reference.key} of the Secret {namespace}/{reference.name}"
