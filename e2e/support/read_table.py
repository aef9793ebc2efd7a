"""Runs in a pod with the tables: how many rows one has, and a digest of all that was sent.

Only `deltalake` and Arrow: what somebody would do who has never heard of Ibrik.
"""

import hashlib
import json
import sys

from deltalake import DeltaTable
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem


def main(folder: str) -> None:
    files = SubTreeFileSystem(folder, LocalFileSystem())
    wanted = ["partition", "offset", "value"]
    table = DeltaTable(folder).to_pyarrow_table(columns=wanted, filesystem=files)
    columns = [table.column(name).to_pylist() for name in table.column_names]
    rows = sorted([p, o, value.decode()] for p, o, value in zip(*columns, strict=True))
    digest = hashlib.sha256(json.dumps(rows).encode()).hexdigest()
    print(json.dumps({"rows": len(rows), "digest": digest}))


if __name__ == "__main__":
    main(*sys.argv[1:])
