#!/usr/bin/env python3
"""Builds and checks what is shipped of the command `redelay`: `make ship`.

    scripts/with-server.sh scripts/check-cli.py

* The steps of its Dockerfile, by hand: there need not be a Docker. They build the static program. In a folder with
  nothing but what the Dockerfile copies, it lists a queue of the server that REDIS_URL names.
* The Debian package with the same program: installed into an empty root folder, where it does the same, and removed.

Both need root, for chroot and dpkg: by sudo, if it asks for no password, or else in a user namespace.
"""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
DOCKERFILE = REPOSITORY / "crates/redelay-cli/Dockerfile"
# An entry of Redisson with the payload "hello" in Kryo, due in 2100.
ENTRY = bytes.fromhex("08106890aa3e21912506000000000000000368656c6cef")
DUE = b"4102444800000"
PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def fill():
    """Writes the entry as Redisson does."""
    url = urllib.parse.urlsplit(os.environ["REDIS_URL"])
    commands = [
        [b"ZADD", b"redisson_delay_queue_timeout:{shipped}", DUE, ENTRY],
        [b"RPUSH", b"redisson_delay_queue:{shipped}", ENTRY],
    ]
    with socket.create_connection((url.hostname, url.port or 6379)) as connection:
        for words in commands:
            words = b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
            connection.sendall(b"*%d\r\n%s" % (4 if b"ZADD" in words else 3, words))
            reply = connection.recv(100)
            assert reply == b":1\r\n", reply


def build_by_hand(root):
    """Does what the Dockerfile says: the first stage here, the second one in this folder. Returns its user and program."""
    stages, here, user, program = 0, None, None, None
    for line in DOCKERFILE.read_text().splitlines():
        word, _, rest = line.partition(" ")
        if not line or word == "#":
            continue
        if word == "FROM":
            stages += 1
            assert stages == 1 or rest == "scratch", line
        elif word == "WORKDIR":
            here = rest
        elif word == "COPY" and stages == 1:
            assert rest == ". .", line
        elif word == "RUN" and stages == 1:
            subprocess.run(rest, shell=True, check=True, cwd=REPOSITORY, stdout=sys.stderr)
        elif word == "COPY":
            stage, source, target = rest.split()
            assert stage == "--from=build", line
            source = source.replace(f"{here}/", f"{REPOSITORY}/", 1) if source.startswith(f"{here}/") else source
            target = root / target.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
        elif word == "USER":
            user = rest
        elif word == "ENTRYPOINT":
            program = json.loads(rest)
        else:
            sys.exit(f"{DOCKERFILE}: what does `{line}` mean?")
    return user, program


def as_root():
    """What to put in front of a command."""
    if os.getuid() == 0:
        return []
    if shutil.which("sudo") and subprocess.run(["sudo", "-n", "true"], capture_output=True).returncode == 0:
        return ["sudo", "-n"]
    return ["unshare", "--map-root-user"]


def run(root, user, *words):
    """Runs a program in a root folder, with nothing of this machine but its network."""
    # In a user namespace, there are no other users.
    others = [f"--userspec={user}"] if user and "unshare" not in as_root() else []
    environment = ["env", "-i", f"REDIS_URL={os.environ['REDIS_URL']}", PATH]
    command = [*as_root(), *environment, "chroot", *others, root, *words]
    ran = subprocess.run(command, capture_output=True, text=True, cwd="/")
    assert (ran.returncode, ran.stderr) == (0, ""), ran
    return ran.stdout


def lists_a_queue(root, user, program):
    # The machine may be busy.
    shown = run(root, user, *program, "--timeout", "60s", "ls")
    assert "1 queue, found" in shown and "\nshipped " in shown, shown
    item = json.loads(run(root, user, *program, "--timeout", "60s", "list", "shipped", "--json"))
    assert (item["queue"], item["codec"], item["value"]) == ("shipped", "kryo5", "hello"), item
    help = run(root, user, *program, "--help")
    assert "\n  top " in help, help


def files(root):
    return {str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir()}


def check_package(package, root):
    admin = root / "var/lib/dpkg"
    for folder in ("info", "updates", "triggers"):
        (admin / folder).mkdir(parents=True)
    (admin / "status").touch()

    def dpkg(*words):
        command = [*as_root(), "env", PATH, "dpkg", f"--root={root}", "--log=/dev/null", *words]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    dpkg("--install", package)
    installed = {file for file in files(root) if not file.startswith("var/lib/dpkg/")}
    for file in (
        "usr/bin/redelay",
        "usr/share/man/man1/redelay.1.gz",
        "usr/share/man/man1/redelay-top.1.gz",
        "usr/share/bash-completion/completions/redelay",
        "usr/share/zsh/vendor-completions/_redelay",
        "usr/share/fish/vendor_completions.d/redelay.fish",
        "usr/share/doc/redelay/copyright",
    ):
        assert file in installed, f"{file} is not among {installed}"
    lists_a_queue(root, None, ["/usr/bin/redelay"])
    dpkg("--purge", "redelay")
    left = {file for file in files(root) if not file.startswith("var/lib/dpkg/")}
    assert not left, left
    # They belong to root.
    subprocess.run([*as_root(), "rm", "-rf", root], check=True)


def main():
    begun = time.monotonic()

    def done(what):
        nonlocal begun
        print(f"{time.monotonic() - begun:6.1f} s  {what}")
        begun = time.monotonic()

    with tempfile.TemporaryDirectory() as folder:
        fill()
        root = pathlib.Path(folder) / "image"
        user, program = build_by_hand(root)
        done(f"the steps of the Dockerfile: {', '.join(sorted(files(root)))}")
        # It may be read by the other user.
        os.chmod(folder, 0o755)
        lists_a_queue(root, user, program)
        done("the program of the Dockerfile lists a queue")
        package = subprocess.run(
            ["scripts/deb.sh"], cwd=REPOSITORY, check=True, stdout=subprocess.PIPE, text=True
        ).stdout.strip()
        done(f"{pathlib.Path(package).name}, {os.path.getsize(package) / 1e6:.1f} MB")
        check_package(package, pathlib.Path(folder) / "root")
        done("the package was installed, has listed a queue, and was removed")


main()
