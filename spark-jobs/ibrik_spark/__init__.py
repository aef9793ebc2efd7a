"""The data jobs' reader: a broker's volume and its sealed segments, as Arrow record batches.

No Spark here. Of the other packages only `ibrik_log` is known, which judges every frame.
"""
