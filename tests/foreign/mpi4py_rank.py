"""One rank of a run of mpi4py's own suite: runs a module's tests and writes one JSON line per event.

    python -I mpi4py_rank.py TESTS_FOLDER RESULTS_FOLDER MODULE [FILE_OF_TESTS_TO_LEAVE_OUT]

Each rank writes RESULTS_FOLDER/RANK.jsonl, flushed line by line, so that what was done before a
crash is known: {"all": [names]}, then {"start": name} and {"end": name, "state": …, "why": …}.
(-I: this folder holds a file mpi4py.py, which must not be taken for the package.)
"""

import json
import os
import sys
import unittest


class Recorder(unittest.TestResult):
    def __init__(self, write):
        super().__init__()
        self.write = write
        self.state = self.why = None

    def startTest(self, test):
        super().startTest(test)
        self.state, self.why = "pass", ""
        self.write(start=test.id())

    def stopTest(self, test):
        super().stopTest(test)
        self.write(end=test.id(), state=self.state, why=self.why)

    def fail(self, test, error):
        self.state, self.why = "fail", f"{error[0].__name__}: {error[1]}"
        if not isinstance(test, unittest.TestCase):  # a fixture of a class or module
            self.write(end=test.id(), state="fail", why=self.why)

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
            self.write(end=test.id(), state="skip", why=reason)

    def addExpectedFailure(self, test, err):
        self.state = "pass"

    def addUnexpectedSuccess(self, test):
        self.state, self.why = "fail", "marked as an expected failure, but it passed"


def flat(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from flat(item)
        else:
            yield item


def main(tests_folder, results_folder, module, leave_out=None):
    sys.path.insert(0, tests_folder)
    left_out = set()
    if leave_out:
        with open(leave_out) as names:
            left_out = set(names.read().split("\n"))
    from mpi4py import MPI

    # The suite sets the error handler to return codes; so do its own helpers on import.
    rank = MPI.COMM_WORLD.Get_rank()
    with open(os.path.join(results_folder, f"{rank}.jsonl"), "w", buffering=1) as results:
        def write(**event):
            results.write(json.dumps(event) + "\n")

        tests = list(flat(unittest.defaultTestLoader.loadTestsFromName(module)))
        write(all=[test.id() for test in tests])
        chosen = unittest.TestSuite(test for test in tests if test.id() not in left_out)
        chosen.run(Recorder(write))
        write(done=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
