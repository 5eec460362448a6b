//! Progress output on standard error while benchmarks run: a bar once they have taken two seconds,
//! and the lines that MPI libraries print.

use std::collections::HashSet;
use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Time without a progress bar, so that short runs show none.
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
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} ({eta} left)");
        bar.set_style(style.expect("the template is a constant"));
        Console {
            bar,
            since: Instant::now(),
            shown: false,
            quiet: false,
            said: HashSet::new(),
        }
    }

    /// A console for a run of `steps` steps that leaves out the lines of libraries: those of an
    /// experiment name files and settings that its user has not chosen.
    pub fn without_libraries(steps: usize) -> Console {
        let mut console = Console::new(steps);
        console.quiet = true;
        console
    }

    /// Sets the text beside the bar.
    pub fn doing(&mut self, activity: String) {
        self.bar.set_message(activity);
        self.show();
    }

    /// Announces further steps.
    pub fn expect(&mut self, steps: usize) {
        self.bar.inc_length(steps as u64);
    }

    /// Prints lines of a program on standard error.
    pub fn print(&mut self, text: &str) {
        self.bar.suspend(|| eprint!("{text}"));
    }

    /// Advances the bar by one step.
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

impl Drop for Console {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
