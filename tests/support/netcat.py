"""What `nc -q1 HOST PORT` does, for machines without netcat: standard input out, answers back.

Ends when the other side closes, or one second after the end of standard input. Run as a program.
"""

import socket
import sys
import time

QUIT_AFTER_S = 1.0


def main(arguments: list[str]) -> None:
    option, host, port = arguments
    assert option == "-q1", "the stand-in knows `nc -q1 HOST PORT` only"
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(sys.stdin.buffer.read())
        deadline = time.monotonic() + QUIT_AFTER_S
        while (left_s := deadline - time.monotonic()) > 0:
            connection.settimeout(left_s)
            try:
                received = connection.recv(65_536)
            except TimeoutError:
                return
            if not received:
                return
            sys.stdout.buffer.write(received)
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
