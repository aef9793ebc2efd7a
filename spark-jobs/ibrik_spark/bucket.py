"""A table in an object store behind `s3://`, and what its refusals mean for a run.

Who it is for and who may open it stand in the environment, as every tool of S3 reads it. A commit
is a conditional put, which the store refuses to the second of two runs; files have names that
nobody else has. What the store has answered is there for good.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import BinaryIO, cast
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow.fs import (
    AwsStandardS3RetryStrategy,
    FileInfo,
    FileSelector,
    FileSystem,
    FileType,
    S3FileSystem,
    SubTreeFileSystem,
)

from .errors import JobError, TableFailed, WrongTable
from .store import Store

REGION = "us-east-1"
TRIES = 4  # of a request, within `PATIENCE_S`
PATIENCE_S = 60
CONNECT_S = 10

MISSING = re.compile(r"NoSuchBucket|NO_SUCH_BUCKET")
EXPIRED = re.compile(r"ExpiredToken|TokenRefreshRequired|RequestExpired|EXPIRED_TOKEN")
REFUSED = re.compile(
    r"AccessDenied|ACCESS_DENIED|InvalidAccessKeyId|INVALID_ACCESS_KEY_ID|SignatureDoesNotMatch"
    r"|SIGNATURE_DOES_NOT_MATCH|InvalidToken|AuthorizationHeaderMalformed|lacked the necessary"
)
_DOCUMENT = re.compile(r"<\?xml.*|<Error>.*", re.DOTALL)
_CODE = re.compile(r"<Code>(\w+)</Code>")


class Bucket(Store):
    """The place of one table in a bucket."""

    def __init__(self, location: str, environment: Mapping[str, str] = os.environ) -> None:
        parts = urlsplit(location)
        if parts.username or parts.password or parts.query:
            raise WrongTable(
                "the target holds credentials: give them as AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY in the environment, and only s3://bucket/path as the target"
            )
        if parts.scheme != "s3" or not parts.netloc:
            raise WrongTable(f"{location}: a target is a folder, or s3://bucket/path")
        self.location = location
        self._bucket = parts.netloc
        self._root = f"{parts.netloc}{parts.path.rstrip('/')}"
        self._endpoint = _first(environment, "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
        self._region = _first(environment, "AWS_REGION", "AWS_DEFAULT_REGION") or REGION
        self._files = S3FileSystem(
            region=self._region,
            endpoint_override=self._endpoint or None,
            connect_timeout=CONNECT_S,
            request_timeout=PATIENCE_S,
            retry_strategy=AwsStandardS3RetryStrategy(max_attempts=TRIES),
        )

    @property
    def options(self) -> dict[str, str]:
        """Said each time, so that no variable of the environment makes a commit unfenced."""
        endpoint = {"AWS_ENDPOINT_URL": self._endpoint} if self._endpoint else {}
        is_plain = (self._endpoint or "").startswith("http://")
        return {
            "AWS_CONDITIONAL_PUT": "etag",
            "AWS_S3_ALLOW_UNSAFE_RENAME": "false",
            "AWS_ALLOW_HTTP": "true" if is_plain else "false",
            "AWS_REGION": self._region,
            "max_retries": str(TRIES),
            "retry_timeout": f"{PATIENCE_S}s",
            "connect_timeout": f"{CONNECT_S}s",
            **endpoint,
        }

    @property
    def filesystem(self) -> FileSystem:
        return SubTreeFileSystem(self._root, self._files)

    def make(self) -> None:
        """A bucket has no folders, and is made by who pays for it."""

    def is_in_use(self) -> bool:
        return any(entry.base_name != "_delta_log" for entry in self._listed())

    def folders(self) -> list[str]:
        listed = self._listed()
        return sorted(entry.base_name for entry in listed if entry.type is FileType.Directory)

    def _listed(self) -> list[FileInfo]:
        with self._failing("list"):
            selector = FileSelector(self._root, allow_not_found=True)
            found: list[FileInfo] = self._files.get_file_info(selector)
            return found

    @contextmanager
    def create(self, path: str) -> Iterator[BinaryIO]:
        with self._failing(f"write {path} to"), self._open_new(path) as file:
            yield cast("BinaryIO", file)

    def _open_new(self, path: str) -> pa.NativeFile:
        return self._files.open_output_stream(f"{self._root}/{path}", compression=None)

    def read(self, path: str) -> pa.NativeFile:
        with self._failing(f"read {path} of"):
            return self._files.open_input_file(f"{self._root}/{path}")

    def size_bytes(self, path: str) -> int:
        with self._failing(f"read {path} of"):
            size = self._files.get_file_info(f"{self._root}/{path}").size
        if size is None:
            raise TableFailed(f"{self.location}/{path} is not there after it was written")
        return int(size)

    def delete(self, path: str) -> None:
        with self._failing(f"delete {path} of"), suppress(FileNotFoundError):
            self._files.delete_file(f"{self._root}/{path}")

    def flush_log(self) -> None:
        """A store answers when it has it."""

    def failure(self, what: str, said: str) -> JobError:
        """By the code of the refusal. The rest of what a store says may name keys and requests."""
        begin = f"cannot {what} the table {self.location}: "
        if MISSING.search(said):
            return WrongTable(
                f"{begin}there is no bucket {self._bucket}; make it, or correct the target and "
                "AWS_ENDPOINT_URL"
            )
        if EXPIRED.search(said):
            return TableFailed(
                f"{begin}the credential has expired; renew what gives AWS_SESSION_TOKEN. The next "
                "run that has a valid one goes on from here"
            )
        if REFUSED.search(said):
            return WrongTable(
                f"{begin}the store refuses the credential; check AWS_ACCESS_KEY_ID, "
                "AWS_SECRET_ACCESS_KEY and AWS_REGION, and that it may list, read, write and "
                f"delete in {self._bucket}"
            )
        code = _CODE.search(said)
        text = _DOCUMENT.sub(code.group(1) if code else "", said).strip()
        return TableFailed(
            f"{begin}{text[:300]}; check that the store answers at "
            f"{self._endpoint or 'its usual address'}. The next run goes on from here"
        )

    @contextmanager
    def _failing(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self.failure(what, str(error)) from error


def _first(environment: Mapping[str, str], *names: str) -> str:
    return next((environment[name] for name in names if environment.get(name)), "")
