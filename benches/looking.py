#!/usr/bin/env python3
"""What looking costs a server: `make bench-looking`. A server of its own gets a queue with a million entries, a thousand
small ones, and 100,000 other keys. For each command, prints how many calls it makes, the longest of them, and the server's
time as a share of one core; for `top` and the exporter, of a minute.

  benches/looking.py target/release/redelay [SECONDS]
"""
import os
import pathlib
import pty
import re
import socket
import subprocess
import sys
import tempfile
import termios
import time
import urllib.request

FILL = (pathlib.Path(__file__).parent.parent / "crates/redelay-cli/tests/cli/fill.lua").read_text()
KEYS = "for n = ARGV[1], ARGV[1] + 9999 do redis.call('SET', 'other:' .. n, n) end"
# Those of this script, which are not counted.
OWN = {"info", "config|resetstat", "config|set", "slowlog|get", "slowlog|reset", "slowlog|len"}


class Server:
    def __init__(self, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        words = ["--port", str(self.port), "--save", "", "--slowlog-max-len", "1000000", "--dir", folder]
        self.process = subprocess.Popen(["redis-server", *words], stdout=subprocess.DEVNULL)
        self.url = f"redis://127.0.0.1:{self.port}"
        for _ in range(1000):
            try:
                self.stream = socket.create_connection(("127.0.0.1", self.port))
                break
            except OSError:
                time.sleep(0.01)
        self.replies = self.stream.makefile("rb")

    def ask(self, *words):
        words = [str(word).encode() for word in words]
        self.stream.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
        return self.reply()

    def reply(self):
        line = self.replies.readline()[:-2]
        kind, rest = line[:1], line[1:]
        if kind == b"-":
            sys.exit(rest.decode())
        if kind == b"$":
            return None if rest == b"-1" else self.replies.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return [self.reply() for _ in range(int(rest))]
        return int(rest) if kind == b":" else rest

    def fill(self):
        for first in range(0, 100_000, 10_000):
            self.ask("EVAL", KEYS, 0, first)
        for queue in range(1_000):
            self.ask("EVAL", FILL, 1, f"queue-{queue}", 1, 3)
        for first in range(1, 1_000_000, 50_000):
            self.ask("EVAL", FILL, 1, "long", first, first + 49_999)

    def begin(self):
        self.ask("CONFIG", "SET", "slowlog-log-slower-than", 0)
        self.ask("SLOWLOG", "RESET")
        self.ask("CONFIG", "RESETSTAT")
        self.begun = time.monotonic()

    def end(self, what):
        seconds = time.monotonic() - self.begun
        self.ask("CONFIG", "SET", "slowlog-log-slower-than", -1)
        stats = self.ask("INFO", "commandstats").decode()
        calls = micros = 0
        for name, number, usec in re.findall(r"cmdstat_(\S+):calls=(\d+),usec=(\d+)", stats):
            if name not in OWN:
                calls, micros = calls + int(number), micros + int(usec)
        log = self.ask("SLOWLOG", "GET", -1)
        longest = max(((micros, words[0].decode()) for _, _, micros, words, *_ in log if is_looking(words)), default=(0, "none"))
        share = micros / 1e6 / seconds
        print(f"{what:32} {calls:8,} calls  {micros / 1e3:8.1f} ms of the server in {seconds:5.1f} s ({share:6.2%} of a core)  "
              f"longest {longest[0] / 1e3:.2f} ms ({longest[1]})", flush=True)


def is_looking(words):
    return words[0].upper() not in (b"CONFIG", b"SLOWLOG", b"INFO")


def in_a_terminal(words, environment, seconds):
    process, terminal = pty.fork()
    if process == 0:
        termios.tcsetwinsize(0, (50, 200))
        os.execve(words[0], words, {**environment, "TERM": "xterm"})
    os.set_blocking(terminal, False)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            os.read(terminal, 65536)
        except BlockingIOError:
            time.sleep(0.05)
    os.write(terminal, b"q")
    os.set_blocking(terminal, True)
    try:
        while os.read(terminal, 65536):
            pass
    except OSError:
        pass
    os.waitpid(process, 0)


def scrapes(program, environment, seconds):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = "127.0.0.1:%d" % free.getsockname()[1]
    exporter = subprocess.Popen([program, "exporter", "--listen", address], env=environment, stdout=subprocess.DEVNULL)
    until, count = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(f"http://{address}/metrics") as page:
                page.read()
            count += 1
            time.sleep(min(15, seconds / 4))
        except OSError:
            time.sleep(0.05)
    exporter.terminate()
    exporter.wait()
    return count


def main(program, seconds=60):
    program = os.path.abspath(program)
    with tempfile.TemporaryDirectory() as folder:
        server = Server(folder)
        try:
            server.fill()
            environment = {**os.environ, "REDIS_URL": server.url}
            for words in (["ls"], ["show", "long"], ["list", "long", "--limit", "1000"], ["due", "long"], ["doctor"]):
                server.begin()
                subprocess.run([program, "--timeout", "1m", *words], env=environment, stdout=subprocess.DEVNULL)
                server.end(f"redelay {' '.join(words)}")
            server.begin()
            in_a_terminal([program, "top"], environment, seconds)
            server.end(f"redelay top, {seconds} s")
            server.begin()
            count = scrapes(program, environment, seconds)
            server.end(f"redelay exporter, {count} scrapes")
        finally:
            server.process.terminate()
            server.process.wait()


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
