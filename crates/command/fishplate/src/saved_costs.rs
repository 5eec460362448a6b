//! `fishplate run --save-costs FILE`: the costs that rank 0 has learned, as a file for
//! FISHPLATE_COSTS.

use std::fs::{read_to_string, write};
use std::io::ErrorKind;
use std::path::PathBuf;

use knobs::{Bytes, CopyCosts, CopyPath, CoreDistance, CostTable, KnobValue};
use serde::Deserialize;

/// A file of costs, and its costs before the job.
pub(crate) struct SavedCosts {
    path: PathBuf,
    older: CostTable,
}

/// The part of a rank's explanation that has its costs.
#[derive(Deserialize)]
struct Explanation {
    #[serde(default)]
    learned: Vec<Learned>,
}

#[derive(Deserialize)]
struct Learned {
    from: usize,
    cores: String,
    others_wait: bool,
    ps_per_byte: [Option<u32>; CopyPath::ALL.len()],
}

impl SavedCosts {
    /// Reads the file, if there is one, so that what is wrong with it is reported before the job.
    pub(crate) fn open(path: PathBuf) -> Result<SavedCosts, String> {
        let failed =
            |why: &dyn std::fmt::Display| format!("--save-costs={}: {why}", path.display());
        let older = match read_to_string(&path) {
            Ok(text) => CostTable::parse(&text).map_err(|why| {
                failed(&format_args!(
                    "{why}; costs are added to a file of costs only: name another file, or remove \
                     this one"
                ))
            })?,
            Err(why) if why.kind() == ErrorKind::NotFound => {
                write(&path, "").map_err(|why| failed(&why))?;
                std::fs::remove_file(&path).map_err(|why| failed(&why))?;
                CostTable::default()
            }
            Err(why) => return Err(failed(&why)),
        };
        if let Some(other) = older.processor().filter(|other| *other != processor()) {
            return Err(failed(&format_args!(
                "it has the costs of the processor \"{other}\", and this host has \"{}\": name \
                 another file",
                processor()
            )));
        }
        Ok(SavedCosts { path, older })
    }

    /// Adds the costs of rank 0's explanation to the file.
    pub(crate) fn save(self, explained: Option<&str>) -> Result<(), String> {
        let SavedCosts { path, older } = self;
        let shown = path.display();
        let explained = explained.ok_or_else(|| {
            format!(
                "--save-costs={shown}: rank 0 has reported nothing: it does so in MPI_Finalize of \
                 this library"
            )
        })?;
        let explained: Explanation = serde_json::from_str(explained)
            .map_err(|why| format!("--save-costs={shown}: rank 0's answer is damaged: {why}"))?;
        let learned = explained.learned.into_iter().map(|of| {
            Some(CopyCosts {
                from: Bytes(of.from),
                cores: CoreDistance::parse(&of.cores)?,
                others_wait: of.others_wait,
                ps_per_byte: of.ps_per_byte,
            })
        });
        let learned = learned.collect::<Option<Vec<_>>>();
        let learned =
            learned.ok_or_else(|| format!("--save-costs={shown}: rank 0's answer is damaged"))?;
        let table = CostTable::learned(&processor(), learned);
        if table.is_empty() {
            return Err(format!(
                "--save-costs={shown}: rank 0 has learned no costs, so the file is not written. It \
                 learns from some dozens of messages of more than 128 KiB that it receives from ranks \
                 of its host, with FISHPLATE_COSTS=learn and FISHPLATE_SINGLE_COPY=auto, where \
                 ranks can read each other's memory (`fishplate info`: single copy)"
            ));
        }
        let text = table.over(older).to_string();
        write(&path, text).map_err(|why| format!("--save-costs={shown}: {why}"))
    }
}

/// The name of this host's processor.
fn processor() -> String {
    let cpuinfo = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = knobs::processor_name(&cpuinfo);
    name.unwrap_or(std::env::consts::ARCH).to_string()
}
