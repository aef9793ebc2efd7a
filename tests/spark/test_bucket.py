"""What the refusals of an object store mean, and what delta-rs is told. Nothing is asked."""

import pytest

from ibrik_spark.bucket import Bucket
from ibrik_spark.errors import ExitCode, WrongTable

ENVIRONMENT = {"AWS_ENDPOINT_URL": "http://minio:9000", "AWS_SECRET_ACCESS_KEY": "hidden"}
REFUSALS = [
    ("403 Forbidden <Error><Code>InvalidAccessKeyId</Code></Error>", ExitCode.CONFIGURATION),
    ("403 Forbidden <Error><Code>SignatureDoesNotMatch</Code></Error>", ExitCode.CONFIGURATION),
    ("AWS Error ACCESS_DENIED during ListObjectsV2 operation", ExitCode.CONFIGURATION),
    ("AWS Error NO_SUCH_BUCKET during CreateMultipartUpload", ExitCode.CONFIGURATION),
    ("400 Bad Request <Error><Code>ExpiredToken</Code></Error>", ExitCode.RETRY),
    ("503 <?xml version='1.0'?><Error><Code>SlowDown</Code></Error>", ExitCode.RETRY),
    ("Connection refused (os error 111)", ExitCode.RETRY),
]


@pytest.mark.parametrize(("words", "code"), REFUSALS)
def test_a_refusal_says_who_can_help(words: str, code: ExitCode) -> None:
    failure = Bucket("s3://lake/t", ENVIRONMENT).failure("read", words)
    assert failure.exit_code == code
    assert str(failure).startswith("cannot read the table s3://lake/t: ")


def test_the_documents_of_a_store_are_not_shown() -> None:
    said = (
        "Generic S3 error <?xml version='1.0'?><Error><Code>InternalError</Code>"
        "<StringToSign>AWS4 AKIA1</StringToSign></Error>"
    )
    failure = str(Bucket("s3://lake/t", ENVIRONMENT).failure("read", said))
    assert "Generic S3 error InternalError; check that the store answers" in failure
    assert "AKIA1" not in failure


@pytest.mark.parametrize(
    ("endpoint", "is_plain"),
    [("http://minio:9000", "true"), ("https://minio", "false"), ("", "false")],
)
def test_only_an_endpoint_that_says_so_is_spoken_to_in_the_clear(
    endpoint: str, is_plain: str
) -> None:
    options = Bucket("s3://lake/t", {"AWS_ENDPOINT_URL": endpoint}).options
    assert options["AWS_ALLOW_HTTP"] == is_plain
    assert ("AWS_ENDPOINT_URL" in options) == bool(endpoint)


def test_a_target_with_credentials_is_refused_and_not_repeated() -> None:
    with pytest.raises(WrongTable, match="the target holds credentials") as refusal:
        Bucket("s3://AKIA1:hidden@lake/t", {})
    assert "hidden" not in str(refusal.value)


@pytest.mark.parametrize("location", ["gs://lake/t", "s3:///t", "https://lake/t"])
def test_other_stores_are_refused(location: str) -> None:
    with pytest.raises(WrongTable, match="a target is a folder, or s3://bucket/path"):
        Bucket(location, {})
