"""One rank of a run of mpi4py's own suite: runs a module's tests and writes one JSON line per event.

    PYTHONPATH=TESTS python -P rank.py RESULTS_FOLDER MODULE PLAN

Each rank writes RESULTS_FOLDER/RANK.jsonl, flushed line by line, so that what was done before a
crash is known. PLAN is a JSON file with the names `done`, to leave out, and `alone`, the one name to
run or null. The events are {"all": [names]}, then {"start": name} and {"end": name, "state": …, "why": …}.
A module that cannot be loaded counts as one test, MODULE.load.
(-P: the tests import no module of this folder. PYTHONPATH, not sys.path, names the tests, because some of them start other processes that import them.)
"""

import json
import os
import sys
import threading
import traceback
import unittest

UNSUPPORTED = "MPI_ERR_UNSUPPORTED_OPERATION"


def told(kind, value, trace):
    """An exception as one line, with the method of mpi4py that the library has no procedure for."""
    text = f"{kind.__name__}: {value}"
    if UNSUPPORTED in text:
        inside = [frame.name for frame in traceback.extract_tb(trace) if frame.name.startswith("mpi4py.MPI.")]
        text += f" in {inside[-1].removeprefix('mpi4py.MPI.')}" if inside else ""
    return text


class Recorder(unittest.TestResult):
    def __init__(self, write):
        super().__init__()
        self.write = write
        self.test = self.state = self.why = None
        threading.excepthook = self.thread_died

    def thread_died(self, died):
        """Tests whose helper thread died of what is not supported would wait for it for ever."""
        why = told(died.exc_type, died.exc_value, died.exc_traceback)
        if UNSUPPORTED not in why:
            threading.__excepthook__(died)
            return
        self.write(end=self.test, state="fail", why=why)
        os._exit(1)

    def startTest(self, test):
        super().startTest(test)
        self.test = test.id()
        self.state, self.why = "pass", ""
        self.write(start=test.id())

    def stopTest(self, test):
        super().stopTest(test)
        self.write(end=test.id(), state=self.state, why=self.why)

    def fail(self, test, error):
        self.state, self.why = "fail", told(*error)
        if not isinstance(test, unittest.TestCase):  # a fixture of a class or module
            self.write(end=fixture(test), state="fail", why=self.why)

    def addError(self, test, err):
        self.fail(test, err)

    def addFailure(self, test, err):
        self.fail(test, err)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.fail(test, err)

    def addSkip(self, test, reason):
        if isinstance(test, unittest.TestCase):
            self.state, self.why = "skip", reason
        else:
            self.write(end=fixture(test), state="skip", why=reason)

    def addExpectedFailure(self, test, err):
        self.state = "pass"

    def addUnexpectedSuccess(self, test):
        self.state, self.why = "fail", "marked as an expected failure, but it passed"


def fixture(holder):
    """`setUpClass (module.Class)` as module.Class.setUpClass."""
    kind, _, owner = holder.id().partition(" (")
    return f"{owner.rstrip(')')}.{kind}"


def flat(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from flat(item)
        else:
            yield item


def main(results_folder, module, plan_file):
    with open(plan_file) as file:
        plan = json.load(file)
    done, alone = set(plan["done"]), plan["alone"]
    from mpi4py import MPI

    rank = MPI.COMM_WORLD.Get_rank()
    with open(os.path.join(results_folder, f"{rank}.jsonl"), "w", buffering=1) as results:
        def write(**event):
            results.write(json.dumps(event) + "\n")

        try:
            tests = list(flat(unittest.defaultTestLoader.loadTestsFromName(module)))
        except Exception:
            write(all=[f"{module}.load"])
            write(end=f"{module}.load", state="fail", why=told(*sys.exc_info()))
            write(done=True)
            return
        write(all=[test.id() for test in tests])
        chosen = unittest.TestSuite(test for test in tests
                                    if (test.id() == alone if alone else test.id() not in done))
        chosen.run(Recorder(write))
        write(done=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
