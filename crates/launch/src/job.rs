//! The life of a job: one loop that watches the ranks until nothing of them is left.

use std::collections::VecDeque;
use std::io::Write;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{WaitOptions, wait};

use crate::output::{Sink, Stream, Target};
use crate::rank::Rank;
use crate::signals::{Received, Signals};
use crate::stuck::Stuck;
use crate::verdict::{Cause, Verdict};
use crate::{Error, Options, describe, limits, processes, start};

/// How long ranks have to say what they wait for before the job is ended.
const LAST_WORDS: Duration = Duration::from_millis(150);
/// How long they have where nothing is urgent.
const REPORT: Duration = Duration::from_millis(300);
/// Between a signal that asks a rank to end and a stronger one.
const GRACE: Duration = Duration::from_millis(300);
/// Between looks for processes that appeared while others were killed.
const AGAIN: Duration = Duration::from_millis(20);
/// A process that SIGKILL does not end within this time waits in the system, for a device or a file server.
const HOPELESS: Duration = Duration::from_secs(10);

/// Runs the job. Returns the exit code: that of the first rank that failed, 128 and the signal's number if a signal
/// ended it, 124 after the timeout.
///
/// The calling thread has to outlive the job, because the ranks die with the thread that started them; and the process
/// must have no other children, because all are waited for.
pub fn run(options: &Options) -> Result<u8, Error> {
    let descriptors = limits::make_room(options.ranks, options.tag_output)?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(Error::system("become the reaper of orphans"))?;
    let signals = Signals::take()?;
    let (ranks, outcome) = start::start(options, descriptors, signals.before());
    let mut job = Job::new(options, ranks, signals);
    if outcome.is_err() {
        job.end(&[Signal::SIGKILL]);
    }
    job.watch()?;
    outcome?;
    Ok(job.verdict.map_or(0, |verdict| verdict.cause.exit_code()))
}

struct Job<'a> {
    options: &'a Options,
    ranks: Vec<Rank>,
    signals: Signals,
    stdout: Sink,
    stderr: Sink,
    /// The first failure.
    verdict: Option<Verdict>,
    inquiry: Option<Inquiry>,
    /// The signals still to be sent to end the job, and when; none while it runs.
    ending: Option<VecDeque<(Instant, Signal)>>,
    hopeless: Option<Instant>,
    /// The ranks that share the launcher's process group have had this signal from the terminal.
    had: Option<Signal>,
    timeout: Option<Instant>,
    stuck: Option<Stuck>,
    /// No process of the job is left.
    childless: bool,
}

/// Ranks have been asked what they wait for.
struct Inquiry {
    purpose: Purpose,
    until: Instant,
}

enum Purpose {
    /// The line about this failure, and then the end by these signals.
    End(Verdict, &'static [Signal]),
    /// A report that somebody asked for.
    Report,
    /// Is the job stuck?
    Stuck,
}

impl<'a> Job<'a> {
    fn new(options: &'a Options, ranks: Vec<Rank>, signals: Signals) -> Self {
        let now = Instant::now();
        let patience = options.report_stuck.filter(|time| !time.is_zero());
        Job {
            options,
            stuck: patience.map(|patience| Stuck::new(patience, ranks.len(), now)),
            ranks,
            signals,
            stdout: Sink::new(Target::Stdout),
            stderr: Sink::new(Target::Stderr),
            verdict: None,
            inquiry: None,
            ending: None,
            hopeless: None,
            had: None,
            timeout: options.timeout.and_then(|time| now.checked_add(time)),
            childless: false,
        }
    }

    fn watch(&mut self) -> Result<(), Error> {
        while !self.is_over() {
            let ready = self.sleep()?;
            // Signals before deaths: a rank that the terminal's Ctrl-C killed has not failed by itself.
            self.take_signals();
            self.listen(&ready);
            self.reap();
            self.move_output(&ready);
            self.look_at_the_clock();
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        let given_up = self.hopeless.is_some_and(|time| Instant::now() >= time);
        if given_up && !self.childless {
            say(
                "a process of the job does not end: it waits in the system, for a device or a file server",
            );
        }
        let quiet = self
            .ranks
            .iter()
            .all(|rank| rank.streams.iter().all(|stream| stream.reader().is_none()))
            && self.stdout.is_empty()
            && self.stderr.is_empty();
        given_up || (self.childless && (quiet || self.ending_is_due()))
    }

    /// Whoever does not read the output holds up the end of a failed job for no longer than its ranks do.
    fn ending_is_due(&self) -> bool {
        self.ending.as_ref().is_some_and(VecDeque::is_empty)
    }

    /// Waits for something to do, at most until the clock says that there is. Returns the ranks that have something.
    fn sleep(&self) -> Result<Vec<usize>, Error> {
        let mut owners = Vec::new();
        let mut wanted = Vec::new();
        for rank in &self.ranks {
            wanted.extend(
                [&rank.control, &rank.program]
                    .into_iter()
                    .flatten()
                    .map(AsFd::as_fd),
            );
            let streams = rank
                .streams
                .iter()
                .filter(|stream| !self.sink(stream.target).is_full());
            wanted.extend(streams.filter_map(Stream::reader));
            owners.resize(wanted.len(), rank.number);
        }
        wanted.push(self.signals.as_fd());
        let mut wanted: Vec<PollFd<'_>> = wanted
            .into_iter()
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        let sinks = [&self.stdout, &self.stderr]
            .into_iter()
            .filter(|sink| !sink.is_empty());
        wanted.extend(sinks.map(|sink| PollFd::new(sink, PollFlags::OUT)));
        let time = self
            .next_deadline()
            .map(|time| time.saturating_duration_since(Instant::now()));
        let time = time.map(|time| Timespec {
            tv_sec: time.as_secs() as i64,
            tv_nsec: time.subsec_nanos().into(),
        });
        match poll(&mut wanted, time.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(Error::system("wait for the ranks")(errno)),
        }
        let ready = owners
            .iter()
            .zip(&wanted)
            .filter(|(_, fd)| !fd.revents().is_empty());
        let mut ready: Vec<usize> = ready.map(|(&owner, _)| owner).collect();
        ready.dedup();
        Ok(ready)
    }

    fn sink(&self, target: Target) -> &Sink {
        match target {
            Target::Stdout => &self.stdout,
            Target::Stderr => &self.stderr,
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let idle = self.inquiry.is_none() && self.ending.is_none();
        let deadlines = [
            self.inquiry.as_ref().map(|inquiry| inquiry.until),
            self.ending
                .as_ref()
                .and_then(|steps| Some(steps.front()?.0)),
            self.hopeless,
            self.timeout.filter(|_| self.ending.is_none()),
            self.stuck.as_ref().filter(|_| idle).map(|stuck| stuck.next),
        ];
        deadlines.into_iter().flatten().min()
    }
}

/// Signals.
impl Job<'_> {
    fn take_signals(&mut self) {
        while let Some(received) = self.signals.read() {
            match received.signal {
                Signal::SIGINT | Signal::SIGTERM | Signal::SIGHUP => self.interrupt(received),
                Signal::SIGUSR1 | Signal::SIGUSR2 => {
                    self.pass_on(received.signal, received.from_terminal)
                }
                Signal::SIGQUIT => self.inquire(Purpose::Report, REPORT),
                Signal::SIGTSTP => self.stop(received.from_terminal),
                Signal::SIGCONT => self.pass_on(Signal::SIGCONT, received.from_terminal),
                _ => {}
            }
        }
    }

    /// The first time, ranks may say what they wait for and clean up. Whoever asks twice means it.
    fn interrupt(&mut self, received: Received) {
        if self.is_ending() {
            self.end(&[Signal::SIGKILL]);
            return;
        }
        self.had = Some(received.signal).filter(|_| received.from_terminal);
        let steps: &'static [Signal] = match received.signal {
            Signal::SIGINT => &[Signal::SIGINT, Signal::SIGTERM, Signal::SIGKILL],
            Signal::SIGHUP => &[Signal::SIGHUP, Signal::SIGTERM, Signal::SIGKILL],
            _ => &[Signal::SIGTERM, Signal::SIGKILL],
        };
        self.fail(
            Verdict {
                rank: None,
                cause: Cause::Interrupt(received.signal),
            },
            steps,
        );
    }

    /// Stops with the ranks, and goes on with them.
    fn stop(&mut self, from_terminal: bool) {
        self.pass_on(Signal::SIGTSTP, from_terminal);
        processes::to_process(rustix::process::getpid(), Signal::SIGSTOP);
        self.pass_on(Signal::SIGCONT, false);
    }

    /// To all ranks, and what they started. A rank that shares the launcher's process group may have it already.
    fn pass_on(&self, signal: Signal, had: bool) {
        for rank in self.ranks.iter().filter(|rank| rank.is_running()) {
            match rank.own_group {
                true => processes::to_group(rank.pid, signal),
                false if had => {}
                false => processes::to_process(rank.pid, signal),
            }
        }
    }
}

/// What ranks say, and how they end.
impl Job<'_> {
    fn listen(&mut self, ready: &[usize]) {
        for &number in ready {
            let rank = &mut self.ranks[number];
            let gone = rank.program.as_ref().is_some_and(is_readable);
            // What a process said just before it ended counts more than its end, so this comes after looking.
            let cause = rank
                .listen()
                .or_else(|| if gone { rank.program_ended() } else { None });
            if let Some(cause) = cause {
                self.rank_failed(number, cause);
            }
        }
        self.miss_early_leavers();
    }

    fn reap(&mut self) {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if let Some(number) = self
                        .ranks
                        .iter()
                        .position(|rank| rank.pid == pid && rank.is_running())
                    {
                        self.rank_ended(number, status);
                    }
                }
                Ok(None) => break,
                Err(Errno::INTR) => {}
                Err(_) => {
                    self.childless = true;
                    return;
                }
            }
        }
        // What ranks left running after they ended, ends too.
        if self.ending.is_none() && self.ranks.iter().all(|rank| !rank.is_running()) {
            self.end(&[Signal::SIGTERM, Signal::SIGKILL]);
        }
    }

    fn rank_ended(&mut self, number: usize, status: rustix::process::WaitStatus) {
        let said = self.ranks[number].listen();
        let others_in_mpi = self
            .ranks
            .iter()
            .any(|rank| rank.number != number && rank.init.is_some());
        let cause = self.ranks[number].ended(status, others_in_mpi);
        if let Some(cause) = said.or(cause) {
            self.rank_failed(number, cause);
        }
    }

    /// A rank that left before others showed that this is an MPI job, which waits for it in vain.
    fn miss_early_leavers(&mut self) {
        if self.is_ending() || !self.ranks.iter().any(Rank::is_in_mpi) {
            return;
        }
        let left = |rank: &&Rank| !rank.is_running() && rank.init.is_none();
        if let Some(number) = self.ranks.iter().find(left).map(|rank| rank.number) {
            self.rank_failed(number, Cause::NoInit);
        }
    }

    /// Only the first failure counts. Nobody depends on a rank that is past MPI_Finalize, so then the job goes on.
    fn rank_failed(&mut self, number: usize, cause: Cause) {
        if self.is_ending() {
            return;
        }
        let verdict = Verdict {
            rank: Some(number),
            cause,
        };
        let alone = self
            .ranks
            .iter()
            .all(|rank| rank.number == number || !rank.is_running());
        let left_properly = self.ranks[number].finalized && verdict.cause.is_end_of_a_process();
        if left_properly && !alone {
            say(&self.line(&verdict, false));
            self.verdict.get_or_insert(verdict);
        } else {
            self.fail(verdict, &[Signal::SIGTERM, Signal::SIGKILL]);
        }
    }
}

/// The end.
impl Job<'_> {
    fn is_ending(&self) -> bool {
        let last_words = matches!(
            &self.inquiry,
            Some(Inquiry {
                purpose: Purpose::End(..),
                ..
            })
        );
        self.ending.is_some() || last_words
    }

    /// Ends the job for this reason by these signals, once ranks have had the time to say what they wait for.
    fn fail(&mut self, verdict: Verdict, steps: &'static [Signal]) {
        // What they had said before is the state at which the job failed.
        self.ranks
            .iter_mut()
            .filter(|rank| rank.is_running())
            .for_each(|rank| drop(rank.listen()));
        let time = if self.ranks.iter().any(Rank::is_in_mpi) {
            LAST_WORDS
        } else {
            Duration::ZERO
        };
        self.inquire(Purpose::End(verdict, steps), time);
    }

    /// Sends these signals, one after the other, until nothing is left.
    fn end(&mut self, steps: &[Signal]) {
        let now = Instant::now();
        let times = (0..).map(|step| now + GRACE * step);
        self.ending = Some(times.zip(steps.iter().copied()).collect());
        self.hopeless = Some(now + GRACE * steps.len() as u32 + HOPELESS);
        self.inquiry = None;
        self.take_steps();
    }

    fn take_steps(&mut self) {
        let now = Instant::now();
        while let Some(&(time, signal)) = self.ending.as_ref().and_then(|steps| steps.front()) {
            if time > now {
                break;
            }
            self.take_step(signal);
            let Some(steps) = &mut self.ending else { break };
            steps.pop_front();
            if signal == Signal::SIGKILL && !self.childless {
                steps.push_back((now + AGAIN, signal));
            }
        }
    }

    fn take_step(&self, signal: Signal) {
        self.pass_on(signal, self.had == Some(signal));
        // A stopped process takes a signal only when it goes on.
        self.pass_on(Signal::SIGCONT, false);
        let orphans = processes::children()
            .into_iter()
            .filter(|&pid| self.ranks.iter().all(|rank| rank.pid != pid));
        orphans.for_each(|pid| processes::to_process(pid, signal));
    }

    /// The one line about the end.
    fn line(&self, verdict: &Verdict, with_others: bool) -> String {
        let who = verdict.rank.map_or(String::new(), |number| {
            let host = rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned();
            let pid = self.ranks[number].pid.as_raw_nonzero();
            format!(
                "rank {number} (pid {pid}, {} on {host}) ",
                self.options.program.to_string_lossy()
            )
        });
        let others = describe::in_a_line(&self.ranks, verdict.rank).filter(|_| with_others);
        let others = others.map_or(String::new(), |others| format!("; {others}"));
        format!("{who}{}{others}", verdict.cause.text())
    }
}

/// Questions and the clock.
impl Job<'_> {
    fn inquire(&mut self, purpose: Purpose, time: Duration) {
        if self.is_ending() {
            return;
        }
        self.ranks
            .iter_mut()
            .filter(|rank| rank.is_running() && !rank.finalized)
            .for_each(Rank::ask);
        self.inquiry = Some(Inquiry {
            purpose,
            until: Instant::now() + time,
        });
    }

    fn look_at_the_clock(&mut self) {
        let now = Instant::now();
        self.take_steps();
        if self.timeout.is_some_and(|time| now >= time) && !self.is_ending() {
            self.timeout = None;
            let time = self.options.timeout.unwrap_or_default();
            let verdict = Verdict {
                rank: None,
                cause: Cause::Timeout(time),
            };
            self.fail(verdict, &[Signal::SIGTERM, Signal::SIGKILL]);
        }
        if self
            .inquiry
            .as_ref()
            .is_some_and(|inquiry| now >= inquiry.until)
            || self.all_answered()
        {
            self.conclude(now);
        }
        if self.inquiry.is_none()
            && self.ending.is_none()
            && self.stuck.as_ref().is_some_and(|s| now >= s.next)
        {
            self.inquire(Purpose::Stuck, REPORT);
        }
    }

    fn all_answered(&self) -> bool {
        let open = |rank: &Rank| rank.is_running() && !rank.finalized && rank.answer.is_none();
        !self.ranks.iter().any(open)
    }

    fn conclude(&mut self, now: Instant) {
        let Some(inquiry) = self.inquiry.take() else {
            return;
        };
        match inquiry.purpose {
            Purpose::End(verdict, steps) => {
                let others = self.ranks.iter().any(Rank::is_running);
                say(&self.line(&verdict, others));
                self.verdict.get_or_insert(verdict);
                self.end(steps);
            }
            Purpose::Report => self.report("what the ranks wait for:"),
            Purpose::Stuck => {
                let time = self
                    .stuck
                    .as_mut()
                    .and_then(|stuck| stuck.judge(&self.ranks, now));
                if let Some(time) = time {
                    self.report(&format!(
                        "no rank made progress for {:.1} s:",
                        time.as_secs_f64()
                    ));
                }
            }
        }
    }

    fn report(&self, title: &str) {
        let mut text = title.to_string();
        for line in describe::in_lines(&self.ranks) {
            text.push_str(&format!("\n  {line}"));
        }
        say(&text);
    }

    fn move_output(&mut self, ready: &[usize]) {
        for &number in ready {
            for stream in &mut self.ranks[number].streams {
                let sink = match stream.target {
                    Target::Stdout => &mut self.stdout,
                    Target::Stderr => &mut self.stderr,
                };
                if sink.is_closed() {
                    stream.close(sink);
                } else if !sink.is_full() {
                    stream.pull(sink);
                }
            }
        }
        self.stdout.flush();
        self.stderr.flush();
    }
}

fn is_readable(descriptor: &std::os::fd::OwnedFd) -> bool {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut [PollFd::new(descriptor, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
}

/// In one write, so that the lines of ranks do not come between.
fn say(text: &str) {
    let _ = std::io::stderr().write_all(format!("fishplate: {text}\n").as_bytes());
}
