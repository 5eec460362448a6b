"""Jobs inside the allocation of a batch system: recorded environments, and stand-ins for the systems' commands, which start a
program as `as-host` does. Slurm and Grid Engine themselves are in tests/launchers."""

import os
import signal
import time
from pathlib import Path

from harness import Problem
from hosts import HERE, agents, expect
from watched import Job

# The stand-ins: each takes the arguments of the command that it plays.
STAND_INS = {
    "srun": """for word; do
  case $word in --nodelist=*) name=${word#--nodelist=};; --*) ;; *) break;; esac
  [ "$word" = --unbuffered ] && unbuffered=yes
  shift
done
[ "$unbuffered" = yes ] || { echo 'srun: without --unbuffered' >&2; exit 1; }
[ -z "$SLURM_NTASKS_PER_NODE$SLURM_LABELIO" ] || { echo 'srun: options in the environment' >&2; exit 1; }
exec AS_HOST "$name" "$@" """,
    "blaunch": 'exec AS_HOST "$@"',
    # A shell on the host reads the words, as with ssh.
    "qrsh": '[ "$1 $2" = "-inherit -V" ] || exit 1\nname=$3\nshift 3\nexec AS_HOST "$name" sh -c "$*"',
    "ssh": 'while [ "$1" = -o ]; do shift 2; done\nname=$1\nshift\nexec AS_HOST "$name" sh -c "$*"',
    "flux": """case "$1 $2" in
  'resource R') echo '{"version":1,"execution":{"R_lite":[{"rank":"0-1","children":{"core":"0-1"}}],"nodelist":["n[1-2]"]}}';;
  'exec --rank=0') shift 2; exec AS_HOST n1 "$@";;
  'exec --rank=1') shift 2; exec AS_HOST n2 "$@";;
  *) exit 1;;
esac""",
    # Without -i a command has no input, as with kubectl.
    "kubectl": """[ "$1" = exec ] || exit 1
shift
if [ "$1" = -i ]; then shift; else exec < /dev/null; fi
name=$1
shift 2
exec AS_HOST "$name" "$@" """,
}
KUBEXEC = "#!/bin/sh\nset -x\nPOD_NAME=$1\nshift\n{folder}/kubectl exec ${{POD_NAME}} -- /bin/sh -c \"$*\"\n"
SHOW = ["sh", "-c", 'echo "$FISHPLATE_RANK $(hostname)"']
SLURM = {"SLURM_JOB_ID": "17", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_TASKS_PER_NODE": "2(x2)", "SLURM_NTASKS_PER_NODE": "2",
         "SLURM_LABELIO": "1"}


def stand_ins(world) -> Path:
    folder = world.work / "systems"
    folder.mkdir(exist_ok=True)
    for name, text in STAND_INS.items():
        file = folder / name
        file.write_text("#!/bin/sh\n" + text.replace("AS_HOST", str(HERE / "as-host")) + "\n")
        file.chmod(0o755)
    (folder / "nodes").write_text("n1\nn1\nn2\nn2\n")
    (folder / "pe").write_text("n1 2 all.q@n1 UNDEFINED\nn2 2 all.q@n2 UNDEFINED\n")
    (folder / "slots").write_text("n1 slots=2\nn2 slots=2\n")
    (folder / "colons").write_text("n1:2\nn2:2\n")
    script = folder / "kubexec.sh"
    script.write_text(KUBEXEC.format(folder=folder))
    script.chmod(0o755)
    return folder


def job(world, env: dict, *words, path: bool = True) -> Job:
    folder = stand_ins(world)
    env = {name: value.format(folder=folder) for name, value in env.items()}
    if path:
        env["PATH"] = f"{folder}:{os.environ['PATH']}"
    return Job(world.work, [world.mpiexec, *words], env=env)


def on_two_hosts(system: str, env: dict, noise: bool = False):
    def test(world):
        with job(world, env, *SHOW) as running:
            if noise:
                if (code := running.end(10)) != 0 or sorted(running.out.splitlines()) != ["0 n1", "1 n1", "2 n2", "3 n2"]:
                    raise Problem(f"{code}: {running.out!r} {running.err!r}")
            else:
                expect(running, 0, ["0 n1", "1 n1", "2 n2", "3 n2"])
    return f"allocation: {system}", test


def fewer_ranks(world):
    with job(world, SLURM, "-n", 3, *SHOW) as running:
        expect(running, 0, ["0 n1", "1 n1", "2 n2"])
    with job(world, SLURM, "--ppn", 1, *SHOW) as running:
        expect(running, 0, ["0 n1", "1 n2"])


def hosts_of_the_user(world):
    with job(world, SLURM, "--hosts", "n2", *SHOW) as running:
        expect(running, 0, ["0 n2", "1 n2"])


def own_command(world):
    """The user's command counts, not that of the system."""
    with job(world, SLURM, "--launch-with", f"{HERE / 'as-host'} {{host}}", *SHOW, path=False) as running:
        expect(running, 0, ["0 n1", "1 n1", "2 n2", "3 n2"])


def left_aside(world):
    with job(world, SLURM, "--allocation", "none", *SHOW) as running:
        expect(running, 0, [f"0 {os.uname().nodename}"])
    with job(world, SLURM, "-rmk", "none", *SHOW) as running:
        expect(running, 0, [f"0 {os.uname().nodename}"])


def this_machine_alone(world):
    """One host that is this one needs neither agent nor command."""
    env = SLURM | {"SLURM_JOB_NODELIST": os.uname().nodename, "SLURM_TASKS_PER_NODE": "3"}
    with job(world, env, "sh", "-c", "echo $FISHPLATE_SIZE", path=False) as running:
        expect(running, 0, ["3"] * 3)


def refused(what: str, env: dict, words: list, *patterns: str):
    def test(world):
        with job(world, env, *words, "true", path=False) as running:
            if running.end(10) == 0:
                raise Problem("exit status 0")
            running.check_one_line(*patterns)
    return f"allocation: {what}", test


def killed_step(world):
    """A step that dies ends the job in one line."""
    with job(world, SLURM, "sh", "-c", "echo ready; exec sleep 1000") as running:
        running.wait_for("4 ranks were ready", lambda: running.out.count("ready") == 4)
        running.kill(3)
        if (code := running.end(5)) != 137:
            raise Problem(f"exit status {code}, not 137")
        running.check_one_line(r"rank 3 \(pid \d+, sh on n2\) was killed by SIGKILL")


def many_hosts(world):
    """More agents than start at once, some of which answer late."""
    hosts = ",".join(f"h{number}" for number in range(70))
    slow = "sh -c 'case $1 in h?) sleep 0.3;; esac; shift; exec \"$@\"' slow {host}"
    words = [world.mpiexec, "-n", 70, "--hosts", hosts, "--launch-with", slow, "sh", "-c", "echo $FISHPLATE_RANK"]
    with Job(world.work, words) as running:
        expect(running, 0, [str(rank) for rank in range(70)], seconds=60)


def ended_among_many(world):
    """The end comes while most agents have not been started."""
    hosts = ",".join(f"h{number}" for number in range(70))
    words = [world.mpiexec, "-n", 70, "--hosts", hosts, "--launch-with", "sh -c 'sleep 1000' {host}", "true"]
    with Job(world.work, words) as running:
        running.wait_for("agents were started", lambda: len(running.members()) > 32)
        if (count := len(running.members())) > 70:
            raise Problem(f"{count} processes, and 32 commands with a child each are the most")
        os.kill(running.process.pid, signal.SIGTERM)
        expect(running, 143, seconds=10)


def late_order(world):
    """The order and the end of the connection in one piece: the ranks end with the launcher."""
    words = f"env -u FISHPLATE_JOB python3 {HERE / 'late_order.py'} {{host}}"
    command = [world.mpiexec, "-n", 1, "--hosts", "a", "--launch-with", words, "sleep", 1000]
    with Job(world.work, command) as running:
        running.wait_for("the agent waits", lambda: agents(running))
        # The order is on its way, and the agent reads nothing.
        time.sleep(0.3)
        os.kill(running.process.pid, signal.SIGKILL)
        running.end()
        running.check_gone()


def tests() -> list:
    return [
        on_two_hosts("Slurm's srun", SLURM),
        on_two_hosts("a file of PBS, and ssh", {"PBS_NODEFILE": "{folder}/nodes", "PBS_JOBID": "1"}),
        on_two_hosts("LSF's blaunch", {"LSB_MCPU_HOSTS": "n1 2 n2 2", "LSB_JOBID": "1"}),
        on_two_hosts("Grid Engine's qrsh", {"PE_HOSTFILE": "{folder}/pe", "JOB_ID": "1"}),
        on_two_hosts("flux exec", {"FLUX_URI": "local:///run/flux"}),
        on_two_hosts("an operator's hostfile and shell",
                     {"OMPI_MCA_orte_default_hostfile": "{folder}/slots", "OMPI_MCA_plm_rsh_agent": "{folder}/kubexec.sh"}, noise=True),
        on_two_hosts("an operator's hostfile and ssh",
                     {"HYDRA_HOST_FILE": "{folder}/colons", "HYDRA_LAUNCH_EXTRA_ARGS": "-o ConnectionAttempts=10"}),
        ("allocation: fewer ranks than places", fewer_ranks),
        ("allocation: hosts of the user", hosts_of_the_user),
        ("allocation: the user's command", own_command),
        ("allocation: left aside", left_aside),
        ("allocation: this machine alone", this_machine_alone),
        refused("too many ranks", SLURM, ["-n", 5], r"Slurm job 17: 5 ranks, and places for 4 \(n1:2,n2:2\)", "--oversubscribe"),
        refused("another host", SLURM, ["--hosts", "b"], "b does not belong to Slurm job 17, which has n1:2,n2:2", "--allocation none"),
        refused("damaged", SLURM | {"SLURM_JOB_NODELIST": "n[1"}, [], r"Slurm job 17: SLURM_JOB_NODELIST: `n\[1`"),
        refused("no command of the system", SLURM | {"PATH": "/usr/nowhere"}, [], "host n1: cannot start srun: .*--launch-with"),
        ("allocation: a rank is killed", killed_step),
        ("hosts: 70, of which 32 start at once", many_hosts),
        ("hosts: the end comes before most have started", ended_among_many),
        ("hosts: order and end in one piece", late_order),
    ]
