//! The launcher's connection to the agent of a host: the command that reaches the host, and the
//! state of the protocol with the agent.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};
use pmi::Hosts;
use rustix::io::Errno;
use rustix::process::{Pid, getpid, getppid};
use secret::Secret;

use super::frame::{LONGEST, output_window};
use super::link::FrameLink;
use super::order::StartOrder;
use super::session::Session;
use crate::guard::JobMark;
use crate::process_exit::ProcessExit;
use crate::verdict::exit_text;
use crate::{Error, Inherited, Input, JobHost, Options, mpir, processes};

/// The longest time until an agent answers.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The most agents that have been started and have not answered yet.
pub(crate) const AT_ONCE: usize = 32;

/// The most bytes of text from the command that reaches a host, kept until its agent answers.
const TEXT_LIMIT: usize = 8 << 10;

/// The prefixes of environment variables that are settings. Settings are passed to every host in
/// addition to the variables that the user names. Some of MVAPICH's are aliases of ours.
const SETTINGS: [&str; 2] = ["FISHPLATE_", "MV2_"];

/// The agent of one host, as the launcher sees it.
pub(crate) struct Agent {
    /// The command that was started to reach the agent, as text.
    pub command: String,
    /// The part of the command that reaches the host, such as `ssh HOST`, as text.
    words: String,
    pub pid: Pid,
    pub link: FrameLink,
    stderr: Option<File>,
    /// Text from the command's standard error, or from its standard output before the agent
    /// answered.
    text: Vec<u8>,
    /// The start order, to be sent once the agent has answered.
    order: Option<StartOrder>,
    /// The time at which the command that starts the agent was started.
    pub since: Instant,
    /// True if the agent has answered.
    pub has_answered: bool,
    /// The state of the protocol between launcher and agent.
    pub session: Session,
    /// The exit of the command, once it has ended.
    pub exit: Option<ProcessExit>,
    /// The time at which the agent's output stream ended.
    pub ended: Option<Instant>,
    /// True if a piece of the agent's profile could not be stored.
    pub has_bad_profile: bool,
    /// For each output stream: true if the agent has been notified that the launcher's stream is
    /// closed.
    pub knows_closed: [bool; 2],
}

/// Starts agents, one after the other, on the hosts that have none yet.
pub(crate) struct AgentStarter {
    /// The path of this executable.
    own: PathBuf,
    hosts: Hosts,
    mark: JobMark,
    secret: Secret,
    signals: SigSet,
    /// The index of the next host that gets an agent.
    next: usize,
    /// The world rank of the first rank on that host.
    first: usize,
}

impl AgentStarter {
    pub(crate) fn new(
        options: &Options,
        mark: &JobMark,
        secret: &Secret,
        signals: SigSet,
    ) -> Result<Self, Error> {
        let own = std::env::current_exe().map_err(|why| Error::System {
            what: "find this command's own path",
            why,
        })?;
        let counts: Vec<usize> = options.hosts.iter().map(|host| host.ranks).collect();
        Ok(AgentStarter {
            own,
            hosts: Hosts::blocks(&counts),
            mark: mark.clone(),
            secret: secret.clone(),
            signals,
            next: 0,
            first: 0,
        })
    }

    /// Starts the command of the next host. `None` if there is no further host.
    pub(crate) fn start_next(&mut self, options: &Options) -> Option<Result<Agent, Error>> {
        let host = options.hosts.get(self.next)?;
        let ranks = self.first..self.first + host.ranks;
        let order = order(options, &self.secret, &self.hosts, ranks);
        self.next += 1;
        self.first += host.ranks;
        Some(start_command(
            host,
            &self.own,
            order,
            &self.mark,
            self.signals,
        ))
    }
}

/// True if this variable is a setting, and not one that a launcher sets.
fn is_setting(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    SETTINGS.iter().any(|prefix| name.starts_with(prefix))
        && pmi::CONTRACT.iter().all(|row| row.env != name)
}

fn order(options: &Options, secret: &Secret, hosts: &Hosts, own: Range<usize>) -> StartOrder {
    // As on one host, ranks start in the launcher's working directory.
    let here = std::env::current_dir().ok();
    let mut programs = options.programs.clone();
    for program in &mut programs {
        program.directory = match (program.directory.take(), &here) {
            (Some(directory), Some(here)) => Some(here.join(directory)),
            (directory, here) => directory.or(here.clone()),
        };
        let passed = std::env::vars_os().filter(|(name, _)| match program.inherited {
            Inherited::All => is_setting(name),
            Inherited::Only(_) => program.inherited.has(name),
        });
        let passed = passed.chain(options.variables.iter().cloned());
        program.variables = passed.chain(program.variables.drain(..)).collect();
    }
    StartOrder {
        programs,
        output: options.output.clone(),
        input: match options.input {
            Input::Rank(rank) => Some(rank),
            Input::All | Input::None => None,
        },
        one_core_each: options.one_core_each,
        allow_other_mpi: options.allow_other_mpi,
        verbose: options.verbose,
        held: mpir::is_being_debugged(),
        first: own.start,
        count: own.len(),
        hosts: hosts.to_string(),
        ranks: hosts.ranks(),
        explain: options.explain,
        binding: options.binding.clone(),
        counts: options.profile.is_some(),
        secret: secret.clone(),
        window: output_window(options.hosts.len()),
        // Under a debugger the launcher may be stopped, and then sends nothing.
        patience: match mpir::is_being_debugged() {
            true => Duration::ZERO,
            false => options.heartbeat,
        },
    }
}

fn start_command(
    host: &JobHost,
    own: &Path,
    order: StartOrder,
    mark: &JobMark,
    signals: SigSet,
) -> Result<Agent, Error> {
    let words: Vec<&OsStr> = host.command.iter().map(OsString::as_os_str).collect();
    let shown = |words: &[&OsStr]| {
        let words: Vec<String> = words
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        words.join(" ")
    };
    let all: Vec<&OsStr> = words
        .iter()
        .copied()
        .chain([own.as_os_str(), OsStr::new(super::serve::NAME)])
        .collect();
    let mut command = Command::new(all[0]);
    command.args(&all[1..]).env(pmi::JOB, mark.value());
    for name in host.unset {
        command.env_remove(name);
    }
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Ctrl-C on the terminal must reach only the launcher, which orders the agents.
        .process_group(0);
    let launcher = getpid();
    // SAFETY: between fork and exec this makes only system calls.
    unsafe {
        command.pre_exec(move || {
            rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))?;
            if getppid() != Some(launcher) {
                return Err(Errno::SRCH.into());
            }
            signals.thread_set_mask()?;
            Ok(())
        });
    }
    let failed = |why: io::Error| Error::Host {
        host: host.name.clone(),
        program: all[0].to_string_lossy().into_owned(),
        why,
    };
    let mut child = command.spawn().map_err(failed)?;
    let pid = Pid::from_child(&child);
    let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(stdin), Some(stdout), Some(stderr)) = streams else {
        return Err(failed(Errno::BADF.into()));
    };
    let link = FrameLink::new(OwnedFd::from(stdout), OwnedFd::from(stdin), LONGEST);
    let link = link.map_err(failed)?;
    let stderr = OwnedFd::from(stderr);
    rustix::io::ioctl_fionbio(&stderr, true).map_err(|errno| failed(errno.into()))?;
    let now = Instant::now();
    let ranks = order.first..order.first + order.count;
    Ok(Agent {
        session: Session::new(ranks, order.window, order.patience, now),
        command: shown(&all),
        words: shown(&words),
        pid,
        link,
        stderr: Some(stderr.into()),
        text: Vec::new(),
        order: Some(order),
        since: now,
        has_answered: false,
        exit: None,
        ended: None,
        has_bad_profile: false,
        knows_closed: [false; 2],
    })
}

impl Agent {
    /// The standard error of the agent's command, while it is open.
    pub(crate) fn stderr(&self) -> Option<&File> {
        self.stderr.as_ref()
    }

    /// Reads available text from the standard error of the agent's command.
    pub(crate) fn pull_text(&mut self) {
        let mut bytes = [0; TEXT_LIMIT];
        let Some(stderr) = &mut self.stderr else {
            return;
        };
        match stderr.read(&mut bytes) {
            Ok(0) => self.stderr = None,
            Ok(length) => self.keep(&bytes[..length]),
            Err(why)
                if matches!(
                    why.kind(),
                    io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock
                ) => {}
            Err(_) => self.stderr = None,
        }
    }

    /// Keeps text of the command. Until the agent answers, only the last part is kept.
    fn keep(&mut self, text: &[u8]) {
        self.text.extend_from_slice(text);
        if !self.has_answered && self.text.len() > TEXT_LIMIT {
            let surplus = self.text.len() - TEXT_LIMIT / 2;
            self.text.drain(..surplus);
        }
    }

    /// Takes the text to show to the user. It is empty until the agent has answered.
    pub(crate) fn take_text(&mut self) -> String {
        match self.has_answered {
            true => terminal_text::lines(&String::from_utf8_lossy(&std::mem::take(&mut self.text))),
            false => String::new(),
        }
    }

    /// Searches the first lines of the command's standard output for the agent's answer, and then
    /// sends the start order. An error if the agent has another version.
    pub(crate) fn connect(&mut self) -> Result<(), String> {
        while let Some(line) = self.link.next_line().filter(|_| !self.has_answered) {
            if line == super::frame::HELLO {
                self.has_answered = true;
                self.session.begin(Instant::now());
                if let Some(order) = self.order.take() {
                    self.link
                        .post(&super::frame::ToAgent::Start(Box::new(order)));
                }
                return Ok(());
            }
            if line.starts_with("fishplate agent ") {
                return Err(format!(
                    "`{}` is `{line}`, and this is `{}`: install the same version on all hosts",
                    self.command,
                    super::frame::HELLO
                ));
            }
            self.keep(format!("{line}\n").as_bytes());
        }
        if !self.has_answered {
            let rest = self.link.take_rest();
            self.keep(&rest);
        }
        Ok(())
    }

    /// Sends a signal to the process group of the agent's command.
    pub(crate) fn kill(&self, signal: Signal) {
        processes::to_group(self.pid, signal);
    }

    /// The reason why the agent was lost, with advice for the user.
    pub(crate) fn obituary(&self) -> String {
        let how = match self.exit {
            Some(ProcessExit::Code(code)) => format!("ended with code {code}"),
            Some(exit) => exit_text(exit),
            None => "closed the connection".into(),
        };
        let command = &self.command;
        if self.has_answered {
            return format!("its agent is gone: `{command}` {how}");
        }
        let advice = match self.exit {
            Some(ProcessExit::Code(126 | 127)) => {
                "fishplate has to be at the same path on every host, as this one is here".into()
            }
            _ if self.words.is_empty() => String::new(),
            _ => format!(
                "`{} true` has to work from here, without asking for anything",
                self.words
            ),
        };
        let text = terminal_text::lines(&String::from_utf8_lossy(&self.text));
        let lines: Vec<&str> = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        let said = if lines.is_empty() {
            String::new()
        } else {
            format!(": {}", lines.join("; "))
        };
        let advice = if advice.is_empty() {
            advice
        } else {
            format!(" ({advice})")
        };
        format!("`{command}` {how} before its agent answered{said}{advice}")
    }

    /// The exit code of the job if the loss of this agent ends it.
    pub(crate) fn exit_code(&self) -> u8 {
        match self.exit {
            Some(ProcessExit::Code(code @ 1..=255)) => code as u8,
            Some(ProcessExit::Signal(signal)) => 128u8.wrapping_add(signal as u8),
            _ => 1,
        }
    }
}
