//! Progress output on standard error while benchmarks run: a bar after two seconds, a line for each
//! phase if there is no terminal, and the lines that MPI libraries print.

use std::collections::HashSet;
use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::terminal;

/// The time after which the progress bar appears, so that short runs have none.
const QUIET: Duration = Duration::from_secs(2);

/// Progress bar and library output of one run. The bar appears only on a terminal and disappears
/// when this value is dropped.
pub struct Console {
    bar: ProgressBar,
    since: Instant,
    shown: bool,
    quiet: bool,
    said: HashSet<String>,
}

impl Console {
    /// A console for a run of `steps` steps.
    pub fn new(steps: usize) -> Console {
        let bar = ProgressBar::with_draw_target(Some(steps as u64), ProgressDrawTarget::hidden());
        bar.set_style(style(true));
        Console {
            bar,
            since: Instant::now(),
            shown: false,
            quiet: false,
            said: HashSet::new(),
        }
    }

    /// A console for a run of `steps` steps that omits the lines of libraries: in an experiment
    /// they would name files and settings that the user has not chosen.
    pub fn without_libraries(steps: usize) -> Console {
        let mut console = Console::new(steps);
        console.quiet = true;
        console
    }

    /// A console that shows nothing, for one of several runs that are made at the same time.
    pub fn hidden() -> Console {
        let mut console = Console::without_libraries(0);
        // `shown` prevents the bar from leaving its hidden target.
        console.shown = true;
        console
    }

    /// Sets the text next to the progress bar.
    pub fn doing(&mut self, activity: String) {
        self.bar.set_message(activity);
        self.show();
    }

    /// Begins a phase of `steps` steps; `None`: their number is unknown. Without a terminal a line
    /// with `remark` is printed.
    pub fn phase(&mut self, what: &str, steps: Option<usize>, remark: &str) {
        self.begin(what, steps);
        self.say_without_bar(&format!("{what}: {remark}"));
    }

    /// Begins a phase like [`phase`](Console::phase), but prints no line.
    pub fn phase_without_line(&mut self, what: &str, steps: Option<usize>) {
        self.begin(what, steps);
    }

    fn begin(&mut self, what: &str, steps: Option<usize>) {
        self.bar.reset();
        match steps {
            Some(steps) => self.bar.set_length(steps as u64),
            None => self.bar.unset_length(),
        }
        self.bar.set_style(style(steps.is_some()));
        self.doing(what.to_owned());
    }

    /// Prints a line if standard error is no terminal, so that no bar is shown.
    pub fn say_without_bar(&mut self, line: &str) {
        if !stderr().is_terminal() {
            self.say(line);
        }
    }

    /// Prints a line about the run.
    pub fn say(&mut self, line: &str) {
        let line = terminal::fitted(&format!("fishplate: {line}"));
        self.bar.suspend(|| eprintln!("{line}"));
    }

    /// Prints the output of a program on standard error.
    pub fn print(&mut self, text: &str) {
        self.bar.suspend(|| eprint!("{text}"));
    }

    /// Advances the progress bar by one step.
    pub fn step(&mut self) {
        self.bar.inc(1);
        self.show();
    }

    fn show(&mut self) {
        if !self.shown && self.since.elapsed() > QUIET && stderr().is_terminal() {
            self.shown = true;
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    /// Prints a line of output of the library `label`. A repeated line is printed only once.
    pub fn library_says(&mut self, label: &str, text: &str) {
        let line = format!("[{label}] {text}");
        if !self.quiet && !text.trim().is_empty() && self.said.insert(line.clone()) {
            self.bar.suspend(|| eprintln!("{line}"));
        }
    }
}

/// The style of the bar, for a known or an unknown number of steps.
fn style(has_total: bool) -> ProgressStyle {
    let template = match has_total {
        true => "{bar:30} {pos}/{len} {msg} ({eta} left)",
        false => "{spinner} {pos} {msg} (for {elapsed})",
    };
    ProgressStyle::with_template(template).expect("the templates are constants")
}

impl Drop for Console {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
