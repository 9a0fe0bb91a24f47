#!/usr/bin/env python3
"""Every test: what needs no server of the matrix once, each integration test with every server, and those against Java
Redisson. Modules that no server changes run with one of them (WITH_ONE_SERVER), and of what is repeated each server has a
part. Prints the output of each program of tests when it has ended, and at the end how long each took, and how much of the
processors. With REDELAY_PROGRAMS=6, six of them run at the same time. `make test` installs what is needed, and then
runs this.

  tests/run.py [redis-6.2 valkey-9.1 ...]   the servers beside the one on PATH
  tests/run.py --only queues [...]          only the programs of these names, with these servers
  tests/run.py --each [...]                 what no server changes, too, with each of these servers

Goes on after a failure, and fails at the end: it says then once more which tests have failed, and why. `.ci/run` prints
that ($SUMMARY) as the last of all.

Up to three tests that fail are run again when the machine does nothing else. One that passes three times in a row is no
reason to fail: the machine was held up, or the test has met something rare. It is reported as FAILED ONCE, and is a defect.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CORES = os.cpu_count() or 2
# At the same time, and in each of them. Most tests wait most of the time.
PROGRAMS = int(os.environ.get("REDELAY_PROGRAMS", 1))
THREADS = int(os.environ.get("RUST_TEST_THREADS", (4 if PROGRAMS == 1 else 2) * CORES))
# The same cases each time. `cargo test` alone draws others each time.
os.environ.setdefault("PROPTEST_RNG_SEED", "1")
# A program that hangs must not hang all.
MOST_SECONDS = 1800
# What is said again at the end of a test that has failed.
MOST_LINES, MOST_BYTES = 6, 1000
# So many tests are run again, and so often.
MOST_AGAIN, TIMES_AGAIN = 3, 3
# Where servers keep their files, if there is room. Sentinels sync their configuration while they start and fail over: on the disk
# of a machine that builds something, that takes seconds.
IN_MEMORY, LEAST_ROOM = "/dev/shm", 4 << 30
# Always with all packages, or their dependencies would be built once more with other features.
ALL = ["--workspace", "--all-features"]
# Programs that tests start, as tests/support/src/peer.rs builds them. With an example, they have the dependencies of tests.
STARTED = ["--example", "offer_take", "--bin", "redelay", "--bin", "redelay-peer"]

# These run with a cluster of one server, too. What more servers change is in tests of their own.
ON_A_CLUSTER = ["queues", "bad_data", "patterns"]
# Without these modules and tests: scripts that are called without a client, long lists, counts, and clusters of their own.
NOT_ON_A_CLUSTER = {
    "queues": [
        "long_lists", "long_payloads", "message_costs", "reads", "rebuilt_lists", "scale", "transfer_script",
        "inspector::the_queues_of_a_cluster", "inspector::what_happens_in_a_cluster_is_heard_once",
        "overdue::queues_in_many_slots_are_all_looked_at", "overdue::a_silent_master_delays_no_look_at_others",
        "partial_failures",
    ],
}
# Modules about the client or the command, whichever server answers: what the servers themselves do is in `scripts`, and in the
# modules that are not here. They run with one server each, by turns; the first of a program with the one on PATH, which has TLS.
# With --each, they run with each server (`make soak`).
WITH_ONE_SERVER = {
    "cli": [
        "offline", "top", "schemas", "prometheus", "names", "answers", "connecting", "exporting", "failures", "pumping", "watching",
    ],
    "connections": ["tls", "bad_settings", "credentials", "connection_errors", "silent_links", "timeouts"],
    "faults": [
        "early_polls", "many_takers", "give_back", "runtimes", "shutdown", "signals", "slow_links", "stop_taking", "processes",
        "lost_replies", "offered_once", "leases", "deliveries", "dying", "dropped_futures", "under_load", "receivers",
        "other_leases", "receiver_calls", "schedules", "roles", "clusters::partitions", "clusters::confirmations",
    ],
    "queues": [
        "announced", "handlers", "held_races", "leftover_notes", "lone_callers", "lone_runs", "long_payloads", "message_costs",
        "offer_batches", "overdue", "partial_failures", "partitions", "pumps", "reads",
        "rebuilt_lists::lists_of_many_bytes_are_no_reason_to_move_next_to_nothing", "receiver_costs", "retries", "scale",
        "schedules", "send", "services", "traces", "transfer_script::due_entries_at_the_end_of_a_long_list_are_found_there",
        "transfer_script::long_payloads_and_short_budgets_are_no_reason_to_move_next_to_nothing", "waiting_receivers", "workers",
    ],
}
# What takes long begins early. Of the others, the order does not matter.
LONG = [
    "faults", "cli", "cluster queues", "queues", "compat", "checked", "cluster bad_data", "connections", "codecs", "bad_data",
    "memory", "smoke",
]


class Program:
    def __init__(self, kind, name, folder, path):
        self.kind, self.name, self.folder, self.path = kind, name, folder, path

    def without(self, tests):
        """The command that runs all but these modules and tests. They must exist, or a new name would bring them back."""
        command = [self.path]
        for name in tests:
            path = os.path.join(self.folder, "tests", self.name, *name.split("::"))
            is_module = os.path.exists(f"{path}.rs")
            if not is_module:
                module, test = os.path.split(path)
                with open(f"{module}.rs") as file:
                    assert f"fn {test}" in file.read(), f"{self.name} has no {name}"
            command += ["--skip", f"{name}::" if is_module else name]
        return command

    def is_for_each_server(self):
        """It talks to a server of the matrix. `compat` and `docs` run once, and so do the tests of other packages."""
        is_own = self.folder == ROOT and self.name not in ("compat", "docs")
        return self.kind == "test" and (is_own or self.name in ("cli", "scripts"))


class Job:
    def __init__(self, name, command, folder=ROOT, rank=len(LONG), **environment):
        self.name, self.command, self.folder, self.rank = name, command, folder, rank
        self.environment = environment
        self.waited = self.used = 0.0
        self.failed = None
        self.passed = 0
        # Why, by test.
        self.reasons = {}


def build():
    command = ["cargo", "test", *ALL, "--no-run", "--message-format=json-render-diagnostics"]
    built = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if built.returncode or subprocess.run(["cargo", "build", *ALL, *STARTED], cwd=ROOT).returncode:
        sys.exit("nothing is tested")
    for line in built.stdout.splitlines():
        message = json.loads(line)
        if message["reason"] == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
            target, folder = message["target"], os.path.dirname(message["manifest_path"])
            yield Program(target["kind"][0], target["name"], folder, message["executable"])


def jobs(programs, others, is_each):
    def job(name, program, without=(), **environment):
        is_long = [program.kind == "test" and long in (name, program.name) for long in LONG]
        rank = is_long.index(True) if any(is_long) else len(LONG)
        command = program.without(without)
        threads = THREADS
        if program.name == "compat":
            # Six processes for each test, half of them in Java.
            threads = (threads + 1) // 2
        if program.name == "cli":
            # Commands that look again and again, a second apart.
            threads *= 4
        if program.name == "checked":
            # Each checks with all cores, and prints how many states it has visited.
            command, threads = [*command, "--nocapture"], 1
        environment = {"RUST_TEST_THREADS": str(threads), "CARGO_MANIFEST_DIR": program.folder, **environment}
        return Job(name, command, program.folder, rank, **environment)

    servers = ["PATH", *others]
    for program in programs:
        if program.kind != "test":
            yield job(f"unit tests of {program.name}", program)
        elif program.is_for_each_server():
            # Each server has a part of what is repeated: seeded plans, and counts of the same thing.
            alone = [] if is_each else WITH_ONE_SERVER.get(program.name, [])
            for part, server in enumerate(servers, 1):
                others_have = [name for turn, name in enumerate(alone) if turn % len(servers) != part - 1]
                environment = {"REDELAY_PART": f"{part}/{len(servers)}"}
                if server != "PATH":
                    environment["REDELAY_SERVER"] = server
                yield job(f"{server} {program.name}", program, others_have, **environment)
        else:
            yield job(program.name, program)
        if program.kind == "test" and program.name in ON_A_CLUSTER:
            part = f"1/{len(servers)}"
            without = NOT_ON_A_CLUSTER.get(program.name, [])
            yield job(f"cluster {program.name}", program, without, REDELAY_CLUSTER="1", REDELAY_PART=part)
    yield Job("documentation", ["cargo", "test", *ALL, "--doc"])


def check_that_each_test_runs(all_jobs):
    """What one server leaves out, another must have: a name that is skipped may be a part of other names, too."""
    def tests(command, folder):
        listed = subprocess.check_output([*command, "--list"], cwd=folder, text=True).splitlines()
        return {line for line in listed if line.endswith(": test")}

    for path, folder in {(job.command[0], job.folder) for job in all_jobs if "--skip" in job.command}:
        run = set().union(*(tests(job.command, folder) for job in all_jobs if job.command[0] == path))
        left_out = tests([path], folder) - run
        assert not left_out, f"no server runs these: {sorted(left_out)}"


def folder_of_servers():
    has_room = os.access(IN_MEMORY, os.W_OK) and shutil.disk_usage(IN_MEMORY).free >= LEAST_ROOM
    return tempfile.mkdtemp(prefix="redelay-", dir=IN_MEMORY if has_room and "TMPDIR" not in os.environ else None)


running, printing = set(), threading.Lock()


def run(job):
    with tempfile.TemporaryFile() as output:
        begun = time.monotonic()
        process = subprocess.Popen(
            job.command, cwd=job.folder, env={**os.environ, **job.environment}, stdin=subprocess.DEVNULL,
            stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
        )
        running.add(process.pid)
        limit = threading.Timer(MOST_SECONDS, os.killpg, [process.pid, signal.SIGKILL])
        limit.start()
        # Unlike `wait`, it says what the program and its servers have used.
        _, status, used = os.wait4(process.pid, 0)
        limit.cancel()
        running.discard(process.pid)
        process.returncode = os.waitstatus_to_exitcode(status)
        job.waited, job.used = time.monotonic() - begun, used.ru_utime + used.ru_stime
        job.failed = process.returncode != 0
        with printing:
            print(f"::: {job.name}: {' '.join(job.command)}", flush=True)
            output.seek(0)
            printed = output.read()
            sys.stdout.buffer.write(printed)
            printed = printed.decode(errors="replace")
            job.passed = sum(map(int, re.findall(r"^test result: .* (\d+) passed", printed, flags=re.MULTILINE)))
            if job.failed:
                job.reasons = dict(reasons(printed))
            print(f"::: {job.name} took {line_of(job)}", flush=True)


def reasons(printed):
    """Why each test of a program has failed: what it has printed (`---- name stdout ----`, and lines up to the next), from the
    first panic on, without backtraces. Other panics often follow from the first, and sometimes one of them is the cause."""
    _, *failed = re.split(r"^---- (.+?) (?:stdout )?----$", printed, flags=re.MULTILINE)
    for name, text in zip(failed[::2], failed[1::2]):
        text = re.sub(r"^stack backtrace:\n(?:\s.*\n)*(?:note: .*\n)*", "", text.split("\nfailures:\n")[0], flags=re.MULTILINE)
        lines = [line for line in text.splitlines() if line.strip()]
        panics = [at for at, line in enumerate(lines) if "panicked at" in line] or [0]
        ends = [*panics[1:], len(lines)]
        yield name, f"{name}: " + "\n  ".join(
            line[:MOST_BYTES] for begin, end in zip(panics, ends) for line in lines[begin:end][:MOST_LINES]
        )[:4 * MOST_BYTES]
    if not failed or "   Doc-tests " in printed:
        yield None, "\n  ".join(printed.strip().splitlines()[-MOST_LINES:])[-MOST_BYTES:]


def run_again(failed):
    """Runs the tests that have failed by themselves. Returns what is to be said of those that pass now."""
    tests = [test for job in failed for test in job.reasons]
    if len(tests) > MOST_AGAIN or None in tests:
        return []
    once = []
    for job in failed:
        for _ in range(TIMES_AGAIN):
            again = Job(f"{job.name}, again", [*job.command, "--exact", *job.reasons], job.folder, **job.environment)
            run(again)
            if again.failed or again.passed != len(job.reasons):
                break
        else:
            job.failed = False
            once += [f"FAILED ONCE, passed {TIMES_AGAIN} times: {job.name}: {reason}" for reason in job.reasons.values()]
    return once


def line_of(job):
    result = {True: " FAILED", False: "", None: " not run"}[job.failed]
    return f"{job.waited:5.0f} s, {job.used:5.0f} s of a processor{result}"


def main(arguments):
    is_each = arguments[:1] == ["--each"]
    arguments = arguments[is_each:]
    if any(argument.startswith("-") and argument != "--only" for argument in arguments):
        sys.exit(__doc__)
    only = []
    if arguments[:1] == ["--only"]:
        only, arguments = arguments[1].split(","), arguments[2:]
    others = []
    for server in arguments:
        if os.path.isdir(os.path.join(ROOT, "target/servers", server)):
            others.append(server)
        else:
            print(f"skipped: there is no {server} for this machine")
    begun = time.monotonic()
    all_jobs = sorted(jobs(build(), others, is_each), key=lambda job: job.rank)
    check_that_each_test_runs(all_jobs)
    all_jobs = [job for job in all_jobs if not only or job.name.split()[-1] in only]
    print(f"::: build took {time.monotonic() - begun:.0f} s; {len(all_jobs)} programs follow", flush=True)
    folder = folder_of_servers()
    for job in all_jobs:
        job.environment["TMPDIR"] = folder
    try:
        with ThreadPoolExecutor(PROGRAMS) as pool:
            try:
                list(pool.map(run, all_jobs))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                for pid in list(running):
                    os.killpg(pid, signal.SIGKILL)
                raise
        once = run_again([job for job in all_jobs if job.failed])
    finally:
        # A server that a test has left may still write.
        shutil.rmtree(folder, ignore_errors=True)
    for job in all_jobs:
        print(f"{line_of(job)}  {job.name}")
    print(f"all tests: {time.monotonic() - begun:.0f} s, {sum(job.used for job in all_jobs):.0f} s of a processor")
    failed = [job for job in all_jobs if job.failed]
    summary = "\n".join([*once, *(f"FAILED: {job.name}: {reason}" for job in failed for reason in job.reasons.values())])
    if os.environ.get("SUMMARY"):
        with open(os.environ["SUMMARY"], "a") as file:
            file.write(summary + "\n" if summary else "")
    if failed:
        sys.exit(f"{summary}\nfailed: " + ", ".join(job.name for job in failed))
    print(summary)


if __name__ == "__main__":
    main(sys.argv[1:])
