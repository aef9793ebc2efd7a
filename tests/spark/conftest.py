"""What starts Spark lies in `test_spark_*.py`; without Java these files are not collected.

There is nothing they could say.
"""

import shutil

collect_ignore_glob = [] if shutil.which("java") else ["test_spark_*.py"]
