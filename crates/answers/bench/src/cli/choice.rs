//! Options of all benchmarks: the libraries to measure, and the form of the results.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use results::arguments::{ANY, POSITIVE, decimal, whole_number};

use crate::library::{Fabrics, Library, LibraryChoice};

/// The number of measuring rounds of each benchmark, unless the user chooses another.
pub(crate) const ROUNDS: usize = 5;

// The libraries to measure. (A `///` here would replace the help of the subcommand.)
#[derive(Debug, Args)]
pub(crate) struct ChoiceOptions {
    /// Library to measure [default: ../lib/libmpi_abi.so.1, relative to this command]
    #[arg(long, value_name = "PATH")]
    pub(crate) library: Option<PathBuf>,
    /// Libraries to compare with; all libraries run alternately
    #[arg(long, value_name = "PATH,…", value_delimiter = ',')]
    pub(crate) against: Vec<PathBuf>,
    /// Launcher of a library, if not the one installed with it: COMMAND for the measured library,
    /// LIBRARY=COMMAND for any; `{ranks}` stands for the number of ranks
    #[arg(long, value_name = "[LIBRARY=]COMMAND")]
    pub(crate) launcher: Vec<String>,
    /// Run on modelled machines, in virtual time: names from `fishplate fabric list`, or files
    #[arg(long, value_name = "NAME|FILE,…", value_delimiter = ',', conflicts_with_all = ["library", "against", "launcher"])]
    pub(crate) fabric: Vec<String>,
    /// Predict this library on a modelled machine that names another MPI library, too
    #[arg(long, requires = "fabric")]
    pub(crate) own: bool,
    /// Ranks on each host of a modelled machine
    #[arg(long, value_name = "COUNT", default_value_t = 1, requires = "fabric",
        value_parser = |word: &str| whole_number::<usize>(word, ANY))]
    pub(crate) ppn: usize,
    /// Seed for everything random in the model
    #[arg(long, value_name = "NUMBER", default_value_t = 1, requires = "fabric",
        value_parser = |word: &str| whole_number::<u64>(word, ANY))]
    pub(crate) seed: u64,
    /// Hosts of the modelled machine on which the nodes lie, as of `fishplate run --placement`:
    /// `packed`, `spread`, `random[:SEED]`, or their numbers, such as `0,4,8-11` [default: packed]
    #[arg(long, value_name = "RULE|HOSTS", requires = "fabric")]
    pub(crate) placement: Option<String>,
    /// Write a trace of the modelled machine's ranks, buses and links: FILE.json for
    /// ui.perfetto.dev, FILE.svg or FILE.png as a picture
    #[arg(long, value_name = "FILE", requires = "fabric")]
    pub(crate) trace: Option<PathBuf>,
    /// Number of rounds (modelled machines need only one: results are exact) [default: 5, and 15
    /// with --every-choice]
    #[arg(long, value_parser = |word: &str| whole_number::<u64>(word, POSITIVE))]
    pub(crate) rounds: Option<u64>,
    /// Abort a run after this many seconds without output
    #[arg(long, default_value_t = 120.0, value_name = "SECONDS", value_parser = decimal)]
    pub(crate) timeout: f64,
}

impl ChoiceOptions {
    /// The libraries to measure. `command` is the path of this executable.
    pub(crate) fn libraries(&self, command: &Path) -> Result<Vec<Library>> {
        if self.modelled() {
            let fabrics = Fabrics {
                names: self.fabric.clone(),
                predict: match self.own {
                    true => "own",
                    false => "named",
                },
                ppn: self.ppn,
                seed: self.seed,
                placement: self.placement.clone(),
                trace: self.trace.clone(),
            };
            return fabrics.libraries(command);
        }
        let (subject, against) = (self.library.clone(), self.against.clone());
        let choice = LibraryChoice {
            subject,
            against,
            launchers: self.launcher.clone(),
        };
        choice.libraries(command)
    }

    pub(crate) fn modelled(&self) -> bool {
        !self.fabric.is_empty()
    }

    /// The number of rounds: the user's, or else `usual`. In virtual time it is 1, since all rounds
    /// would be equal.
    pub(crate) fn rounds(&self, usual: usize) -> usize {
        match self.rounds {
            _ if self.modelled() => 1,
            Some(rounds) => rounds as usize,
            None => usual,
        }
    }

    pub(crate) fn timeout(&self) -> Result<Duration> {
        match Duration::try_from_secs_f64(self.timeout) {
            Ok(timeout) if timeout > Duration::ZERO => Ok(timeout),
            _ => bail!("--timeout {}: valid are seconds above 0", self.timeout),
        }
    }
}

// The form of the results.
#[derive(Debug, Args)]
pub(crate) struct OutputOptions {
    /// Print one JSON object per line instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    /// Draw a plot, as FILE.svg or FILE.png
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
}
