"""The data jobs: what a broker has sealed on its volume, read into tables.

The reader (`volume`, `segments`) knows of the other packages only `ibrik_log`, which judges every
frame. Tables are behind `table`, their files behind `store`, the broker behind `broker`, Spark
behind `work`.
"""
