//! Compute traces: the time that ranks compute between their MPI calls, as a file. For every call
//! of every rank it has the call's name and the nanoseconds before it. A run with a trace is
//! deterministic.
//!
//! Invariant: a file is used only if its version, program, number of ranks and each
//! call's name match.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::run_log::computed;

const TITLE: &str = "# fishplate: what each rank computed before each of its calls, in nanoseconds";
const VERSION: &str = "version 1";
const END: &str = "end";

/// A compute trace.
#[derive(Clone, Debug, PartialEq)]
pub struct ComputeTrace {
    /// The program and its arguments.
    pub program: String,
    /// For each rank, one line for each call: its name and nanoseconds.
    ranks: Vec<String>,
}

impl ComputeTrace {
    /// The trace that the ranks of a world have recorded in its file. An error gives the reason why
    /// it is unusable.
    pub fn kept(world: &File, program: String, ranks: usize) -> Result<ComputeTrace, String> {
        let calls = computed(world).map_err(|why| why.to_string())?;
        if calls.lost > 0 {
            return Err(format!(
                "{} calls and more are too many to be kept; {} are missing",
                calls.entries.len(),
                calls.lost
            ));
        }
        let mut lines = vec![String::new(); ranks];
        for call in calls.entries {
            let lines = lines.get_mut(call.rank as usize);
            let lines = lines.ok_or("it has been written over")?;
            lines.push_str(&format!("{} {}\n", call.name, call.nanos));
        }
        Ok(ComputeTrace {
            program,
            ranks: lines,
        })
    }

    /// The contents of the file.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{TITLE}\n{VERSION}\nprogram {}\nranks {}\n",
            self.program,
            self.ranks.len()
        );
        for (rank, lines) in self.ranks.iter().enumerate() {
            let calls = lines.lines().count();
            text.push_str(&format!("rank {rank} calls {calls}\n{lines}"));
        }
        text + END + "\n"
    }

    /// Reads the contents of a file. An error names the line and the expected contents.
    pub fn parse(text: &str) -> Result<ComputeTrace, String> {
        let mut lines = text.lines().enumerate();
        let mut next = |wanted: &str| match lines.next() {
            Some((at, line)) => Ok((at + 1, line)),
            None => Err(format!(
                "it ends where {wanted} should be: it has been cut off"
            )),
        };
        let wrong = |at: usize, wanted: &str, line: &str| {
            Err(format!(
                "line {at}: wanted is {wanted}, and there is `{line}`"
            ))
        };
        for wanted in [TITLE, VERSION] {
            let (at, line) = next(wanted)?;
            if line != wanted {
                return wrong(at, &format!("`{wanted}`"), line);
            }
        }
        let (at, line) = next("the program")?;
        let Some(program) = line.strip_prefix("program ") else {
            return wrong(at, "`program` and its words", line);
        };
        let (at, line) = next("the number of ranks")?;
        let Some(size) = number(line, "ranks ") else {
            return wrong(at, "`ranks` and their number", line);
        };
        let mut ranks = Vec::new();
        for rank in 0..size {
            let wanted = format!("rank {rank} calls ");
            let (at, line) = next(&format!("`{wanted}` and their number"))?;
            let Some(calls) = number(line, &wanted) else {
                return wrong(at, &format!("`{wanted}` and their number"), line);
            };
            let mut own = String::new();
            for call in 0..calls {
                let (at, line) = next(&format!("call {} of rank {rank}", call + 1))?;
                if split(line).is_none() {
                    return wrong(at, "a call's name and nanoseconds", line);
                }
                own.push_str(line);
                own.push('\n');
            }
            ranks.push(own);
        }
        match next(&format!("`{END}`"))? {
            (_, END) => Ok(ComputeTrace {
                program: program.into(),
                ranks,
            }),
            (at, line) => wrong(at, &format!("`{END}`"), line),
        }
    }

    /// Checks that the trace is of this program and number of ranks. An error names those of the
    /// trace.
    pub fn check(&self, program: &str, ranks: usize) -> Result<(), String> {
        if self.ranks.len() != ranks {
            let kept = self.ranks.len();
            return Err(format!("it is of {kept} ranks, and this job has {ranks}"));
        }
        if self.program != program {
            let kept = &self.program;
            return Err(format!("it is of `{kept}`, and this is `{program}`"));
        }
        Ok(())
    }

    /// The form that ranks read: the offsets of the ranks' parts, then the parts. Each rank reads
    /// its own.
    pub fn pack(&self) -> Vec<u8> {
        let mut place = (self.ranks.len() as u64 + 1) * 8;
        let mut bytes = place.to_ne_bytes().to_vec();
        for lines in &self.ranks {
            place += lines.len() as u64;
            bytes.extend(place.to_ne_bytes());
        }
        bytes.extend(self.ranks.iter().flat_map(|lines| lines.bytes()));
        bytes
    }
}

fn number(line: &str, before: &str) -> Option<usize> {
    line.strip_prefix(before)?.parse().ok()
}

/// Splits a line into a call's name and nanoseconds.
fn split(line: &str) -> Option<(&str, u64)> {
    let (name, nanos) = line.split_once(' ')?;
    Some((name, nanos.parse().ok()?))
}

/// One rank's part of a trace, which gives its calls in order.
pub struct Replay {
    lines: String,
    at: usize,
    calls: u64,
}

impl Replay {
    /// Reads the part of `rank`.
    pub fn open(packed: &File, rank: usize) -> io::Result<Replay> {
        let mut ends = [0; 16];
        packed.read_exact_at(&mut ends, rank as u64 * 8)?;
        let (words, _) = ends.as_chunks::<8>();
        let [from, to] = [0, 1].map(|at| u64::from_ne_bytes(words[at]));
        if from > to || to > packed.metadata()?.len() {
            return Err(io::Error::other(format!("it has no part for rank {rank}")));
        }
        let mut lines = vec![0; (to - from) as usize];
        packed.read_exact_at(&mut lines, from)?;
        let lines = String::from_utf8(lines).map_err(io::Error::other)?;
        Ok(Replay {
            lines,
            at: 0,
            calls: 0,
        })
    }

    /// The computing time before this call, in nanoseconds. An error names the recorded call if it
    /// is another.
    pub fn next(&mut self, call: &str) -> Result<u64, String> {
        self.calls += 1;
        let number = self.calls;
        let rest = &self.lines[self.at..];
        let line = rest.lines().next().unwrap_or_default();
        match split(line) {
            Some((name, nanos)) if name == call => {
                self.at += line.len() + 1;
                Ok(nanos)
            }
            Some((name, _)) => Err(format!(
                "its call {number} is {call}, and {name} was recorded there"
            )),
            None => Err(format!(
                "its call {number} is {call}, and {} calls were recorded",
                number - 1
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn computing() -> ComputeTrace {
        ComputeTrace {
            program: "./pi 7".into(),
            ranks: vec!["MPI_Send 12\nMPI_Recv 0\n".into(), String::new()],
        }
    }

    #[test]
    fn a_file_comes_back_as_it_was_and_no_beginning_of_it_does() {
        let text = computing().text();
        assert_eq!(ComputeTrace::parse(&text), Ok(computing()));
        for lines in 0..text.lines().count() {
            let cut: String = text.split_inclusive('\n').take(lines).collect();
            let why = ComputeTrace::parse(&cut).unwrap_err();
            assert!(why.contains("cut off"), "{why}");
        }
        let why = ComputeTrace::parse(&text.replace(" 12", "")).unwrap_err();
        assert!(
            why.contains("line 6: wanted is a call's name and nanoseconds"),
            "{why}"
        );
    }

    #[test]
    fn what_does_not_fit_is_named() {
        assert_eq!(computing().check("./pi 7", 2), Ok(()));
        assert!(
            computing()
                .check("./pi 8", 2)
                .unwrap_err()
                .contains("`./pi 8`")
        );
        assert!(
            computing()
                .check("./pi 7", 3)
                .unwrap_err()
                .contains("this job has 3")
        );
    }

    #[test]
    fn calls_are_taken_in_order_and_others_refused() {
        use std::os::fd::FromRawFd;
        // SAFETY: a new descriptor with no other owner.
        let file = unsafe { File::from_raw_fd(libc::memfd_create(c"packed".as_ptr(), 0)) };
        file.write_all_at(&computing().pack(), 0).unwrap();
        let mut replay = Replay::open(&file, 0).unwrap();
        assert_eq!(replay.next("MPI_Send"), Ok(12));
        assert!(
            replay
                .next("MPI_Bcast")
                .unwrap_err()
                .contains("MPI_Recv was recorded")
        );
        let mut replay = Replay::open(&file, 1).unwrap();
        assert!(
            replay
                .next("MPI_Send")
                .unwrap_err()
                .contains("0 calls were recorded")
        );
        assert!(Replay::open(&file, 2).is_err());
    }
}
