"""The CustomResourceDefinitions as YAML files, for `crds/`: a comment on top, then the document."""

from typing import Any

import yaml

from ibrik_api.definitions import KINDS, custom_resource_definition

NOTICE = "# Written by docs/generate.py from crds/ibrik_api. Do not edit; run: make generate\n"


class _Plain(yaml.SafeDumper):
    """Every part is written out, and lists stand under their name with an indent."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def pages() -> dict[str, str]:
    return {
        f"{kind.plural}.yaml": NOTICE + as_yaml(custom_resource_definition(kind)) for kind in KINDS
    }


def as_yaml(document: dict[str, Any]) -> str:
    return yaml.dump(document, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=100)
