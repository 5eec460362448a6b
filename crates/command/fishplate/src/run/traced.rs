//! `fishplate run --fabric MACHINE TRACE`: a trace in place of a program.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use replay::{Stage, replay};
use trace::{MAGIC, Trace};

/// A trace that is replayed instead of a program.
pub(super) struct TracedJob {
    trace: Arc<Trace>,
    stage: Stage,
}

/// Reads the trace that the first word of a program names. `None`: it is another file.
pub(super) fn trace_of(program: &launch::Program) -> Result<Option<Arc<Trace>>, String> {
    let path = Path::new(&program.program);
    let mut start = [0; MAGIC.len()];
    let is_trace = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    if is_trace.is_err() || start != *MAGIC {
        return Ok(None);
    }
    let wrong = |why: String| format!("{}: {why}", path.display());
    if !program.arguments.is_empty() {
        return Err(wrong("a trace has no arguments".into()));
    }
    let bytes = std::fs::read(path).map_err(|why| wrong(why.to_string()))?;
    Ok(Some(Arc::new(Trace::read(&bytes).map_err(wrong)?)))
}

impl TracedJob {
    /// Prepares the replay of a trace on a modelled machine, with these settings.
    pub(super) fn new(
        trace: Arc<Trace>,
        machine: &launch::ModelledMachine,
        settings: Vec<(String, String)>,
        defaults: &[(OsString, OsString)],
        profile: Option<Arc<std::os::fd::OwnedFd>>,
    ) -> TracedJob {
        let text = |word: &OsString| word.to_string_lossy().into_owned();
        let defaults = defaults
            .iter()
            .map(|(name, value)| (text(name), text(value)));
        TracedJob {
            trace,
            stage: Stage {
                scene: machine.scene.clone(),
                world: machine.world.clone(),
                profile,
                settings: settings.into_iter().chain(defaults).collect(),
            },
        }
    }

    /// Replays the trace. Returns the exit code of the job.
    pub(super) fn run(self) -> u8 {
        match replay(self.trace, &self.stage) {
            Ok(outcome) => {
                if outcome.other_choices > 0 {
                    eprintln!(
                        "fishplate: {} tests and waits found other requests complete than in the recorded run, and waited \
                         for the recorded ones",
                        outcome.other_choices
                    );
                }
                0
            }
            Err(why) => {
                eprintln!("fishplate: {}", terminal_text::lines(&why));
                1
            }
        }
    }
}
