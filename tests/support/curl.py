"""What the documentation asks of `curl`, for machines without it. Run as a program.

Knows `-s -i -N -X METHOD -H 'Name: value' -d BODY URL`, in any order and joined as curl allows.
"""

import argparse
import http.client
import sys
from urllib.parse import urlsplit


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser()
    for flag in ("-s", "-i", "-N"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("-X", dest="method")
    parser.add_argument("-H", dest="headers", action="append", default=[])
    parser.add_argument("-d", dest="body")
    parser.add_argument("url")
    wished = parser.parse_args(arguments)
    url = urlsplit(wished.url if "://" in wished.url else f"http://{wished.url}")
    assert url.hostname is not None, wished.url
    headers = dict(header.split(": ", 1) for header in wished.headers)
    if wished.body is not None:
        headers.setdefault("Content-Type", "application/x-www-form-urlencoded")
    method = wished.method or ("GET" if wished.body is None else "POST")
    connection = http.client.HTTPConnection(url.hostname, url.port or 80, timeout=30)
    path = url.path + (f"?{url.query}" if url.query else "")
    body = None if wished.body is None else wished.body.encode()
    connection.request(method, path or "/", body, headers)
    response = connection.getresponse()
    if wished.i:
        sys.stdout.write(f"HTTP/1.1 {response.status} {response.reason}\r\n")
        sys.stdout.write("".join(f"{name}: {value}\r\n" for name, value in response.getheaders()))
        sys.stdout.write("\r\n")
        sys.stdout.flush()
    sys.stdout.buffer.write(response.read())
    connection.close()


if __name__ == "__main__":
    main(sys.argv[1:])
