"""Everything that the doctor saw, as one zip to send to whoever helps. No secret values.

Secrets are never fetched. What a person may have written into a variable or a URL all the same is
blotted out.
"""

import dataclasses
import json
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ibrik_cli.doctor.finding import Finding, Seen

BLOT = "(blotted out)"
SENSITIVE = re.compile(r"token|password|passwd|secret|credential|api_?key|uri|authorization", re.I)
URL_PASSWORD = re.compile(r"(\w[\w+.-]*://[^\s/:@\"']*):[^\s/@\"']+@")
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def write_bundle(path: Path, seen: Seen, findings: Sequence[Finding]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, content in files_of(seen, findings).items():
            bundle.writestr(name, content)


def files_of(seen: Seen, findings: Sequence[Finding]) -> dict[str, str]:
    """Name in the zip → content."""
    files = {"findings.json": _json([finding.document() for finding in findings])}
    for field in dataclasses.fields(seen):
        value = getattr(seen, field.name)
        if field.name == "logs":
            for pod, lines in value.items():
                files[f"logs/{pod}.log"] = without_passwords("\n".join(lines) + "\n")
        elif field.name == "brokers":
            files["brokers.json"] = _json([dataclasses.asdict(broker) for broker in value])
        else:
            files[f"{field.name}.json"] = _json(without_secrets(value))
    return files


def without_secrets(value: Any) -> Any:
    """The document with the values of suspicious variables and headers blotted out."""
    if isinstance(value, dict):
        if isinstance(value.get("name"), str) and SENSITIVE.search(value["name"]):
            value = {k: BLOT if k == "value" else v for k, v in value.items()}
        return {
            key: BLOT
            if key == LAST_APPLIED or (isinstance(each, str) and SENSITIVE.fullmatch(key))
            else without_secrets(each)
            for key, each in value.items()
        }
    if isinstance(value, list | tuple):
        return [without_secrets(each) for each in value]
    return value


def without_passwords(text: str) -> str:
    return URL_PASSWORD.sub(rf"\1:{BLOT}@", text)


def _json(value: Any) -> str:
    return without_passwords(json.dumps(value, indent=1, ensure_ascii=False)) + "\n"
