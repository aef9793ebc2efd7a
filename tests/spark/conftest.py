"""Files of tests whose program is not there are not collected: there is nothing they could say.

What starts Spark lies in `test_spark_*.py` and needs Java; `test_s3*.py` need the store that
`make test` installs.
"""

import shutil

from tests.support.s3 import PYTHON

collect_ignore_glob = []
if shutil.which("java") is None:
    collect_ignore_glob.append("test_spark_*.py")
if not PYTHON.exists():
    collect_ignore_glob.append("test_s3*.py")
