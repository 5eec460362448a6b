//! The options of `--every-choice`.

use std::path::PathBuf;

use clap::Args;

// The options of `--every-choice`. (A `///` here would replace the help of the subcommand.)
#[derive(Debug, Args)]
pub(crate) struct EveryOptions {
    /// Alternate the default settings with every protocol, rail policy or algorithm that a setting
    /// can force, and print the regret of each size: the time of the default over that of the best
    /// forced choice (our own library only)
    #[arg(long, conflicts_with_all = ["against", "explain", "percentiles", "trace", "plot"])]
    pub(crate) every_choice: bool,
    /// Keep the figures of every choice in FILE, as JSON lines; figures of the same benchmarks,
    /// ranks and sizes in it are replaced
    #[arg(long, value_name = "FILE", requires = "every_choice")]
    pub(crate) keep: Option<PathBuf>,
    /// Compare with the figures in FILE: a line for each choice that has become slower
    #[arg(long, value_name = "FILE", requires = "every_choice")]
    pub(crate) beside: Option<PathBuf>,
}
