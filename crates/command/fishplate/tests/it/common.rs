//! Runs the command with simulated MPI programs, and checks that a job leaves nothing behind.
//!
//! Time limits are generous, because these tests share a machine with others: they check that a job
//! ends, not how soon.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The time after which a job is regarded as hanging, and its processes are killed.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const FISHPLATE: &str = env!("CARGO_BIN_EXE_fishplate");

/// The script of a simulated rank, which `python3` runs.
pub(crate) const RANK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/rank.py");

/// A command under test. All its processes carry a mark in their environment, by which tests find
/// them.
pub(crate) struct Job {
    command: Command,
    mark: String,
}

/// `fishplate run` with these arguments.
pub(crate) fn run(arguments: &[&str]) -> Job {
    let mut job = command(FISHPLATE);
    job.command.arg("run").args(arguments);
    job
}

/// `fishplate run` with these options, and ranks that carry out these steps.
pub(crate) fn ranks(options: &[&str], steps: &[&str]) -> Job {
    let mut job = run(options);
    job.command.args(["python3", "-SE", RANK]).args(steps);
    job
}

/// A command that runs any program.
pub(crate) fn command(program: impl AsRef<Path>) -> Job {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let mark = format!("TEST_MARK={}.{count}", std::process::id());
    let (name, value) = mark.split_once('=').unwrap();
    let mut command = Command::new(program.as_ref());
    command
        .env(name, value)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Job { command, mark }
}

impl Job {
    pub(crate) fn arguments(mut self, arguments: &[&str]) -> Self {
        self.command.args(arguments);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn current_dir(mut self, directory: &Path) -> Self {
        self.command.current_dir(directory);
        self
    }

    /// Runs the command and waits for its end.
    pub(crate) fn finish(self) -> Done {
        self.start().finish()
    }

    pub(crate) fn finish_with_input(mut self, input: &str) -> Done {
        self.command.stdin(Stdio::piped());
        let mut running = self.start();
        let mut stdin = running.child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        drop(stdin);
        running.finish()
    }

    pub(crate) fn start(mut self) -> Running {
        let before = shared_files();
        let mut child = self.command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Running {
            child,
            before,
            stdout,
            seen: String::new(),
            mark: self.mark,
        }
    }
}

pub(crate) struct Running {
    pub(crate) child: Child,
    /// The project's files in /dev/shm before the start.
    before: Vec<OsString>,
    stdout: BufReader<std::process::ChildStdout>,
    seen: String,
    mark: String,
}

impl Running {
    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    /// Reads standard output up to a line that contains `part`.
    pub(crate) fn read_until(&mut self, part: &str) -> String {
        loop {
            let mut line = String::new();
            let length = self.stdout.read_line(&mut line).unwrap();
            assert!(
                length > 0,
                "the output ended before {part:?}:\n{}",
                self.seen
            );
            self.seen.push_str(&line);
            if line.contains(part) {
                return line;
            }
        }
    }

    /// The process IDs of ranks that execute the step `pid`.
    pub(crate) fn pids(&mut self, ranks: usize) -> Vec<Pid> {
        let mut pids = vec![Pid::from_raw(0); ranks];
        for _ in 0..ranks {
            let line = self.read_until("pid ");
            let (_, words) = line.split_once("pid ").unwrap();
            let words: Vec<i32> = words
                .split_whitespace()
                .map(|word| word.parse().unwrap())
                .collect();
            pids[words[0] as usize] = Pid::from_raw(words[1]);
        }
        pids
    }

    pub(crate) fn finish(mut self) -> Done {
        let (sender, receiver) = std::sync::mpsc::channel();
        let mut stderr = self.child.stderr.take().unwrap();
        let mark = self.mark.clone();
        let watchdog = std::thread::spawn(move || {
            if receiver.recv_timeout(PATIENCE).is_err() {
                marked(&mark)
                    .into_iter()
                    .for_each(|(pid, _)| kill(pid, Signal::SIGKILL).unwrap_or(()));
                return true;
            }
            false
        });
        let errors = std::thread::spawn(move || {
            let mut text = Vec::new();
            stderr.read_to_end(&mut text).unwrap();
            String::from_utf8_lossy(&text).into_owned()
        });
        let mut rest = Vec::new();
        self.stdout.read_to_end(&mut rest).unwrap();
        let status = self.child.wait().unwrap();
        sender.send(()).ok();
        let stdout = std::mem::take(&mut self.seen) + &String::from_utf8_lossy(&rest);
        let stderr = errors.join().unwrap();
        assert!(
            !watchdog.join().unwrap(),
            "did not end within {PATIENCE:?}:\n{stdout}\n{stderr}"
        );
        Done {
            status,
            stdout,
            stderr,
            before: std::mem::take(&mut self.before),
            mark: std::mem::take(&mut self.mark),
        }
    }
}

/// A command that has ended.
pub(crate) struct Done {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    before: Vec<OsString>,
    mark: String,
}

impl Done {
    /// Checks the exit code, and that nothing of the job is left, which must be true for every job.
    #[track_caller]
    pub(crate) fn code(&self, code: i32) -> &Self {
        assert_eq!(
            self.status.code(),
            Some(code),
            "{}\n{}",
            self.stdout,
            self.stderr
        );
        assert_eq!(marked(&self.mark), [], "left behind");
        let mut files = shared_files();
        files.retain(|file| !self.before.contains(file));
        assert!(files.is_empty(), "left in /dev/shm: {files:?}");
        self
    }

    /// Checks that standard error is one line that contains these parts in this order.
    #[track_caller]
    pub(crate) fn one_line(&self, parts: &[&str]) -> &Self {
        assert_eq!(self.stderr.lines().count(), 1, "{}", self.stderr);
        assert!(self.stderr.starts_with("fishplate: "), "{}", self.stderr);
        self.errors(parts)
    }

    /// Checks that standard error contains these parts in this order.
    #[track_caller]
    pub(crate) fn errors(&self, parts: &[&str]) -> &Self {
        holds(&self.stderr, parts);
        self
    }

    #[track_caller]
    pub(crate) fn silent(&self) -> &Self {
        assert_eq!(self.stderr, "");
        self
    }
}

#[track_caller]
fn holds(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let at = rest.find(part);
        rest = &rest
            [at.unwrap_or_else(|| panic!("{part:?} is missing, or not in its place: {text}"))..]
            [part.len()..];
    }
}

/// The names of the project's files in /dev/shm.
fn shared_files() -> Vec<OsString> {
    let files = std::fs::read_dir("/dev/shm")
        .into_iter()
        .flatten()
        .flatten();
    files
        .map(|file| file.file_name())
        .filter(|name| name.to_string_lossy().contains("fishplate"))
        .collect()
}

/// The processes that carry the mark.
pub(crate) fn marked(mark: &str) -> Vec<(Pid, String)> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let carries = |pid: &i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment
            .split(|&byte| byte == 0)
            .any(|variable| variable == mark.as_bytes())
    };
    let name = |pid| {
        std::fs::read_to_string(format!("/proc/{pid}/cmdline"))
            .unwrap_or_default()
            .replace('\0', " ")
    };
    pids.filter(carries)
        .map(|pid| (Pid::from_raw(pid), name(pid)))
        .collect()
}

/// Waits until `done` returns true, for a limited time.
#[track_caller]
pub(crate) fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < end, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Checks that the processes of a job end soon after its launcher was killed.
pub(crate) fn nothing_left(running: Running) {
    let mark = running.mark.clone();
    let mut child = running.child;
    child.wait().unwrap();
    eventually("the end of all processes", || marked(&mark).is_empty());
}

/// A new folder, which is removed when this value is dropped.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("fishplate-test-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// Creates a file in the folder, with these permissions.
    pub(crate) fn file(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The path of the command in the tree that `make stage` makes, and the example `heat`, compiled
/// with that tree into `folder`.
pub(crate) fn staged_heat(folder: &Folder) -> (String, PathBuf) {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../..");
    let heat = folder.0.join("heat");
    let compiled = Command::new(format!("{root}/build/bin/mpicc"))
        .args(["-O2", "-o"])
        .arg(&heat)
        .args([&format!("{root}/examples/heat.c"), "-lm"])
        .status();
    assert!(compiled.expect("mpicc starts").success());
    (format!("{root}/build/bin/fishplate"), heat)
}

/// The output of a `fishplate` command that starts no job.
pub(crate) fn output(arguments: &[&str]) -> Output {
    Command::new(FISHPLATE)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}
