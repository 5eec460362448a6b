//! `fishplate run --fabric`: the modelled machine that a job runs on, and what is kept of it when it is over.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use model::IntraHost;
use model::compute_trace::ComputeTrace;
use model::config::{Compute, MachineConfig};
use model::trace::{self, Record};

#[derive(Args)]
#[command(next_help_heading = "Modelled machines")]
// Flattened into a struct of the same name, and two groups cannot have one.
#[group(skip)]
pub struct Arguments {
    /// Run on a modelled machine, in virtual time: a name from `fishplate fabric list`, or a file
    #[arg(long, value_name = "NAME|FILE")]
    fabric: Option<String>,

    /// How ranks of one of its hosts reach each other
    #[arg(long, value_enum, value_name = "WAY", default_value_t = Way::Memory, requires = "fabric")]
    intra_host: Way,

    /// What all that looks random there follows from
    #[arg(long, value_name = "NUMBER", default_value_t = 1, requires = "fabric")]
    seed: u64,

    /// What goes wrong there: a plan in TOML (see docs/modelled.md)
    #[arg(long, value_name = "FILE", requires = "fabric")]
    faults: Option<String>,

    /// How long the program's own computing takes there: `none`, `measured[:SCALE]` (SCALE times as long as here), `record
    /// FILE` (measured, and kept), `replay FILE` (as it was kept)
    #[arg(long, value_name = "HOW", default_value = "none", requires = "fabric")]
    compute: How,

    /// Write what ranks, buses and links did, for ui.perfetto.dev
    #[arg(long, value_name = "FILE", requires = "fabric")]
    trace: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Way {
    /// By its memory: a processor copies
    Memory,
    /// By its HCA, which turns the packets round
    Hca,
}

impl From<Way> for IntraHost {
    fn from(way: Way) -> IntraHost {
        match way {
            Way::Memory => IntraHost::Memory,
            Way::Hca => IntraHost::Hca,
        }
    }
}

#[derive(Clone)]
enum How {
    None,
    /// In thousandths.
    Measured(u64),
    Record(PathBuf),
    Replay(PathBuf),
}

impl FromStr for How {
    type Err = String;

    fn from_str(text: &str) -> Result<How, String> {
        let (word, rest) = match text.split_once(':') {
            Some((word, rest)) => (word, Some(rest)),
            None => (text, None),
        };
        match (word, rest) {
            ("none", None) => Ok(How::None),
            ("measured", None) => Ok(How::Measured(1000)),
            ("measured", Some(scale)) => match scale.parse::<f64>() {
                Ok(number) if (0.001..=1e6).contains(&number) => {
                    Ok(How::Measured((number * 1000.0).round() as u64))
                }
                _ => Err(format!("{scale} is no scale; valid are 0.001 to 1000000")),
            },
            ("record", Some(file)) if !file.is_empty() => Ok(How::Record(file.into())),
            ("replay", Some(file)) if !file.is_empty() => Ok(How::Replay(file.into())),
            ("record" | "replay", _) => Err(format!("{word} needs a file: {word} FILE")),
            _ => Err("valid are none, measured[:SCALE], record FILE and replay FILE".into()),
        }
    }
}

/// A job's machine, and where goes what is kept of it.
#[derive(Default)]
pub struct Stage {
    pub launched: Option<launch::Stage>,
    trace: Option<Output>,
    record: Option<(Output, String)>,
    ranks: usize,
}

impl Arguments {
    /// Does the job run on a modelled machine?
    pub fn is_wanted(&self) -> bool {
        self.fabric.is_some()
    }

    /// Whatever can be wrong before the job starts is told here.
    pub fn stage(
        &self,
        ranks: usize,
        per_host: usize,
        program: &OsStr,
        arguments: &[impl AsRef<OsStr>],
    ) -> Result<Stage, String> {
        let Some(word) = &self.fabric else {
            return Ok(Stage::default());
        };
        if per_host == 0 {
            return Err("--ppn 0: a host needs at least one rank".into());
        }
        let system = crate::fabric::system(word)?;
        let mut scene = MachineConfig::new(&system, ranks, per_host, self.seed)
            .map_err(|why| format!("--fabric {word}: {why}"))?;
        if let Some(file) = &self.faults {
            scene.faults = crate::faults::read(file)?;
        }
        scene.intra_host = self.intra_host.into();
        let words = std::iter::once(program).chain(arguments.iter().map(AsRef::as_ref));
        let words: Vec<_> = words.map(OsStr::to_string_lossy).collect();
        let program = words.join(" ").replace(char::is_control, "?");
        let (mut computed, mut record) = (None, None);
        scene.compute = match &self.compute {
            How::None => Compute::Ignored,
            How::Measured(scale) => {
                eprintln!(
                    "fishplate: --compute measured: what the program computes takes as long as it happens to take here, so \
                     times differ from run to run"
                );
                Compute::Measured(*scale)
            }
            How::Record(file) => {
                record = Some((Output::create("--compute record", file)?, program));
                Compute::Recorded
            }
            How::Replay(file) => {
                computed = Some(replayed(file, &program, ranks)?.pack());
                Compute::Replayed
            }
        };
        let trace = self.trace.as_deref();
        let trace = trace
            .map(|file| Output::create("--trace", file))
            .transpose()?;
        scene.traced = trace.is_some();
        let world = sim::memory::Memory::create()
            .map_err(|why| format!("the memory of virtual time cannot be had: {why}"))?;
        Ok(Stage {
            launched: Some(launch::Stage {
                scene: scene.encode(),
                world: Arc::new(world),
                computed,
            }),
            trace,
            record,
            ranks,
        })
    }
}

fn replayed(file: &Path, program: &str, ranks: usize) -> Result<ComputeTrace, String> {
    let wrong = |why: String| format!("--compute replay {}: {why}", file.display());
    let text = std::fs::read_to_string(file).map_err(|why| wrong(why.to_string()))?;
    let computing = ComputeTrace::parse(&text).map_err(wrong)?;
    computing.check(program, ranks).map_err(wrong)?;
    Ok(computing)
}

impl Stage {
    /// The job is over: writes what is to be kept of it.
    pub fn finish(self) -> Result<(), String> {
        let Some(stage) = self.launched else {
            return Ok(());
        };
        let world = Arc::try_unwrap(stage.world).or_else(|world| world.try_clone());
        let world = world.map_err(|why: io::Error| format!("the world is gone: {why}"))?;
        let world = File::from(world);
        let mut problems = Vec::new();
        if let Some(output) = self.trace {
            problems.extend(output.fill(|to| write_trace(&world, to)).err());
        }
        if let Some((output, program)) = self.record {
            let write = |to: &mut dyn Write| {
                let kept = ComputeTrace::kept(&world, program, self.ranks);
                to.write_all(kept.map_err(io::Error::other)?.text().as_bytes())?;
                Ok(None)
            };
            problems.extend(output.fill(write).err());
        }
        match problems.is_empty() {
            true => Ok(()),
            false => Err(problems.join("; ")),
        }
    }
}

/// What is to be said of it, if anything.
fn write_trace(world: &File, to: &mut dyn Write) -> io::Result<Option<String>> {
    let record = Record::read(world)?;
    record.write(to)?;
    Ok((record.lost > 0).then(|| {
        format!(
            "it holds the first {} events, up to {:.3} ms of virtual time, and {} more did not fit: trace a shorter run",
            trace::MOST,
            record.end() as f64 * 1e-9,
            record.lost
        )
    }))
}

/// A file that is opened before the job and written after it.
struct Output {
    option: &'static str,
    path: PathBuf,
    file: File,
}

impl Output {
    fn create(option: &'static str, path: &Path) -> Result<Output, String> {
        let file =
            File::create(path).map_err(|why| format!("{option} {}: {why}", path.display()))?;
        Ok(Output {
            option,
            path: path.into(),
            file,
        })
    }

    fn fill(
        self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<Option<String>>,
    ) -> Result<(), String> {
        let mut to = BufWriter::new(&self.file);
        let outcome = write(&mut to).and_then(|words| to.flush().map(|()| words));
        let wrong = |what: &dyn std::fmt::Display| {
            format!("{} {}: {what}", self.option, self.path.display())
        };
        match outcome {
            Ok(Some(words)) => {
                eprintln!("fishplate: {}", wrong(&words));
                Ok(())
            }
            Ok(None) => Ok(()),
            Err(why) => {
                // Half of it says nothing. What is no file, such as a device, stays.
                if self.path.is_file() {
                    let _ = std::fs::remove_file(&self.path);
                }
                Err(wrong(&why))
            }
        }
    }
}
