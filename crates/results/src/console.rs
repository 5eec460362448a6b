//! What the user sees while the benchmarks run, all of it on standard error: a bar when it takes
//! longer than two seconds, and what the libraries have to say.

use std::collections::HashSet;
use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

const QUIET: Duration = Duration::from_secs(2);

pub struct Console {
    bar: ProgressBar,
    since: Instant,
    shown: bool,
    said: HashSet<String>,
}

impl Console {
    pub fn new(steps: usize) -> Console {
        let bar = ProgressBar::with_draw_target(Some(steps as u64), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} ({eta} left)");
        bar.set_style(style.expect("the template is a constant"));
        Console {
            bar,
            since: Instant::now(),
            shown: false,
            said: HashSet::new(),
        }
    }

    /// What is going on now.
    pub fn doing(&mut self, what: String) {
        self.bar.set_message(what);
        self.show();
    }

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

    /// A line that came from a library; the same words only once.
    pub fn library_says(&mut self, label: &str, text: &str) {
        let line = format!("[{label}] {text}");
        if !text.trim().is_empty() && self.said.insert(line.clone()) {
            self.bar.suspend(|| eprintln!("{line}"));
        }
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
