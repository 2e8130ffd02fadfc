#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How every command that writes files ends when something goes wrong outside of it: signals at any moment, standard
output that is closed, unread or full, disks that are full or read-only. Outputs are the old files or the new ones.

usage: cli_endings_test.py PATH-OF-QRANE [Signals|Output|Disks ...]
"""
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

import numpy as np

import cli_support
from cli_support import QRANE, CliCase
from every_command import COMMANDS, write_inputs

FULL = os.environ.get("QRANE_TEST_FULL", "0") != "0"
OLD = b"the old file\n"
JSON = {"tune": ["tune", "--seconds", "1", "--out", "table.json"], "info": ["info"]}  # their numbers differ every time


class Every(CliCase):
    def setUp(self):
        super().setUp()
        (self.dir / "inputs").mkdir()
        has_video = write_inputs(self.dir / "inputs")
        self.commands = {name: what for name, what in COMMANDS.items()
                         if what[0][0] != "info" and (has_video or name != "background")}

    def folder(self, outputs, where=None):
        """A new folder with links to the inputs and old outputs."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=where or self.dir))
        for path in (self.dir / "inputs").iterdir():
            (folder / path.name).symlink_to(path)
        for name in outputs:
            (folder / name).write_bytes(OLD)
        return folder

    def command(self, arguments):
        return [QRANE, *arguments, *([] if arguments[0] in ("analyze", "info") else ["--backend", "cpu"])]

    def run_in(self, folder, arguments, **named):
        return subprocess.run(self.command(arguments), cwd=folder, timeout=120, stderr=subprocess.PIPE, text=True,
                              **{"stdout": subprocess.PIPE, **named})

    def files(self, folder):
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*")
                if path.is_file() and not path.is_symlink()}

    def whole(self, arguments, outputs):
        """The files of a run that nothing disturbs, and its seconds."""
        folder = self.folder(outputs)
        start = time.monotonic()
        done = self.run_in(folder, arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.files(folder), time.monotonic() - start

    def check_old_or_new(self, found, outputs, new, said):
        for name in outputs:
            self.assertIn(found.get(name), (OLD, new[name]), f"{name}: {said}")

    def check_words(self, done, status, words):
        self.assertEqual(done.returncode, status, done.stderr)
        lines = [line for line in done.stderr.splitlines() if not line.startswith("qrane: warning: ")]
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertRegex(lines[0], f"^qrane: .*{words}")


class Signals(Every):
    def stopped(self, folder, arguments, number, seconds):
        """Status and words of a run that gets a signal after so many seconds."""
        run = subprocess.Popen(self.command(arguments), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               text=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        time.sleep(seconds)
        run.send_signal(number)
        _, errors = run.communicate(timeout=60)
        while any(self.works_in(folder, process) for process in pathlib.Path("/proc").glob("[0-9]*")):
            time.sleep(0.01)  # encoders of a killed run end by themselves
        return run.returncode, errors

    def works_in(self, folder, process):
        try:
            return os.readlink(process / "cwd") == str(folder.resolve())
        except OSError:  # it has ended
            return False

    def every_moment(self, number, check):
        moments = 40 if FULL else 4
        for name, (arguments, outputs) in self.commands.items():
            new, seconds = self.whole(arguments, outputs)
            for k in range(moments):
                with self.subTest(command=name, moment=k):
                    folder = self.folder(outputs)
                    status, errors = self.stopped(folder, arguments, number, seconds * (k + 0.5) / moments)
                    self.check_old_or_new(self.files(folder), outputs, new, errors)
                    check(name, folder, new, status, errors)

    def check_stopped(self, number):
        def check(name, folder, new, status, errors):
            self.assertIn(status, (0, 130, -number), errors)
            self.assertNotIn("terminate", errors)
            for path in self.files(folder):
                self.assertTrue(path in new or re.fullmatch(r"out/[a-z]+_\d+-\d+\.mp4", path), path)
        self.every_moment(number, check)

    def test_ctrl_c(self):
        self.check_stopped(signal.SIGINT)

    def test_terminate(self):
        self.check_stopped(signal.SIGTERM)

    def test_kill_and_the_next_run_leaves_nothing_of_it(self):
        def check(name, folder, new, status, errors):
            self.assertIn(status, (0, -signal.SIGKILL))
            done = self.run_in(folder, COMMANDS[name][0])
            self.assertEqual(done.returncode, 0, done.stderr)
            found = self.files(folder)
            self.assertEqual(set(found), set(new))
            for path in COMMANDS[name][1]:
                self.assertEqual(found[path], new[path])
        self.every_moment(signal.SIGKILL, check)

    def test_partial_files_of_others_stay(self):
        arguments, outputs = self.commands["qr"]
        folder = self.folder(outputs)
        mine = ["r.npy.partial-x", "r.npy.partial-", "other.npy.partial-4194304", "r.npy.partial-1.npy"]
        for name in [*mine, "r.npy.partial-4194304"]:
            (folder / name).write_text("mine")
        self.assertEqual(self.run_in(folder, arguments).returncode, 0)
        self.assertEqual(set(self.files(folder)), {*mine, *outputs})


class Output(Every):
    def test_closed_unread_and_full(self):
        for name, (arguments, outputs) in self.commands.items():
            new, _ = self.whole(arguments, outputs)
            line = " ".join(f"'{word}'" for word in self.command(arguments))
            for ending, status in ((">&-", 0), ("| true; exit ${PIPESTATUS[0]}", 0), (">/dev/full", 1)):
                with self.subTest(command=name, ending=ending):
                    folder = self.folder(outputs)
                    done = subprocess.run(["bash", "-c", line + " " + ending], cwd=folder, timeout=60,
                                          stderr=subprocess.PIPE, text=True)
                    if status == 0:
                        self.assertEqual(done.returncode, 0, done.stderr)
                    else:
                        self.check_words(done, 1, "standard output: cannot write")
                    found = self.files(folder)
                    self.assertEqual(set(found), set(new))
                    for path in outputs:
                        self.assertEqual(found[path], new[path])

    def test_json_that_cannot_be_written(self):
        every = {**{name: what[0] for name, what in self.commands.items()}, **JSON}
        for name, arguments in every.items():
            with self.subTest(command=name):
                done = self.run_in(self.folder([]), [*arguments, "--json", "/dev/full"])
                self.check_words(done, 1, "/dev/full: cannot write: No space left")


class Disks(Every):
    def setUp(self):
        super().setUp()
        self.disk = self.dir / "disk"
        self.disk.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", self.disk]
        if subprocess.run(mount, capture_output=True).returncode:
            self.skipTest("file systems cannot be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", self.disk], check=True)

    def fill(self, free):
        """Leaves about so many bytes of the disk."""
        with open(self.disk / "filler", "wb", buffering=0) as filler:
            try:
                while True:
                    filler.write(bytes(4096))
            except OSError:
                filler.truncate(max(filler.tell() - free, 0))

    def test_full(self):
        every = {**self.commands, "tune": (JSON["tune"], [])}
        for name, (arguments, outputs) in every.items():
            new = {} if name == "tune" else self.whole(arguments, outputs)[0]
            for free in (0, 4096):
                with self.subTest(command=name, free=free):
                    folder = self.folder(outputs, self.disk)
                    self.fill(free)
                    done = self.run_in(folder, arguments)
                    (self.disk / "filler").unlink()
                    found = self.files(folder)
                    if free == 0:
                        self.check_words(done, 1, "cannot write.*(No space left|ffmpeg)")
                        self.assertEqual(found, {name: OLD for name in outputs})
                    else:
                        self.assertIn(done.returncode, (0, 1), done.stderr)
                        self.check_old_or_new(found, outputs, new or found, done.stderr)

    def test_read_only(self):
        every = {**self.commands, "tune": (JSON["tune"], [])}
        folders = {name: self.folder(outputs, self.disk) for name, (_, outputs) in every.items()}
        subprocess.run(["mount", "-o", "remount,ro", self.disk], check=True)
        for name, (arguments, outputs) in every.items():
            with self.subTest(command=name):
                done = self.run_in(folders[name], arguments)
                self.check_words(done, 2, "Read-only file system")
                self.assertEqual(self.files(folders[name]), {name: OLD for name in outputs})

    def test_read_only_in_the_middle(self):
        if "background" not in self.commands:
            self.skipTest("no ffmpeg program")
        self.save("inputs/long.npy", self.random.integers(0, 255, (400, 24, 32)).astype(np.uint8))
        folder = self.folder([], self.disk)
        run = subprocess.Popen(self.command(["background", "long.npy", "--out", "out", "--window", "2", "--method",
                                             "alternating", "--tolerance", "1e-30", "--max-iterations", "3000"]),
                               cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(run.kill)
        for line in run.stdout:
            if line.startswith("frames 0-1"):
                break
        remount = ["mount", "-o", "remount,ro", self.disk]
        while subprocess.run(remount, capture_output=True).returncode:  # busy while a file is open
            time.sleep(0.001)
        _, errors = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 2, errors)
        self.assertRegex(errors, "Read-only file system\n$")
        self.assertTrue(list(folder.glob("out/mask*.mp4")))
        for path in folder.glob("out/*.mp4"):
            subprocess.run(["ffmpeg", "-v", "error", "-xerror", "-i", path, "-f", "null", "-"], check=True)


if __name__ == "__main__":
    cli_support.main()
