//! The record of a program's computing: one compute trace for each number of ranks, in one file.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use model::compute_trace::ComputeTrace;

/// The compute traces of one program.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The traces as text, with their numbers of ranks.
    pub traces: Vec<(usize, String)>,
}

/// The program and its arguments as one line, as compute traces name it.
pub fn words(program: &[OsString]) -> String {
    let words: Vec<_> = program.iter().map(|word| word.to_string_lossy()).collect();
    words.join(" ").replace(char::is_control, "?")
}

impl Record {
    /// Reads a file. An error if it lacks one of the numbers of ranks, or is of another program.
    pub fn read(file: &Path, program: &[OsString], ranks: &[usize]) -> Result<Record> {
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("--replay {}", file.display()))?;
        let record = Record::parse(&text, &words(program));
        let record = record.and_then(|record| record.choose(ranks));
        record.map_err(|why| anyhow!("--replay {}: {why}", file.display()))
    }

    /// Parses the traces of `program`.
    fn parse(text: &str, program: &str) -> Result<Record, String> {
        let mut traces = Vec::new();
        let mut rest = text;
        let mut before = 0;
        while !rest.trim().is_empty() {
            let end = rest
                .find("\nend\n")
                .map_or(rest.len(), |at| at + "\nend\n".len());
            let (one, others) = rest.split_at(end);
            let in_file = |why: String| match before {
                0 => why,
                lines => format!("after line {lines}: {why}"),
            };
            let trace = ComputeTrace::parse(one).map_err(in_file)?;
            let ranks = trace.ranks();
            trace.check(program, ranks).map_err(in_file)?;
            traces.push((ranks, one.to_owned()));
            before += one.lines().count();
            rest = others;
        }
        match traces.is_empty() {
            true => Err("it is empty".into()),
            false => Ok(Record { traces }),
        }
    }

    /// The traces for these numbers of ranks, in their order.
    fn choose(self, ranks: &[usize]) -> Result<Record, String> {
        let has: Vec<String> = self
            .traces
            .iter()
            .map(|(ranks, _)| ranks.to_string())
            .collect();
        let one = |wanted: &usize| {
            let found = self.traces.iter().find(|(ranks, _)| ranks == wanted);
            found.cloned().ok_or_else(|| {
                format!(
                    "it has no record of {wanted} ranks, but of {}; record again with --record",
                    has.join(", ")
                )
            })
        };
        let traces: Result<Vec<_>, String> = ranks.iter().map(one).collect();
        Ok(Record { traces: traces? })
    }

    /// Writes the file.
    pub fn write(&self, file: &Path) -> Result<()> {
        let text: String = self.traces.iter().map(|(_, text)| text.as_str()).collect();
        std::fs::write(file, text).with_context(|| format!("--record {}", file.display()))
    }

    /// The trace for a number of ranks.
    pub fn trace(&self, ranks: usize) -> Result<&str> {
        match self.traces.iter().find(|(of, _)| *of == ranks) {
            Some((_, text)) => Ok(text),
            None => bail!("there is no record of {ranks} ranks"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(ranks: usize) -> String {
        let mut text = format!(
            "# fishplate: what each rank computed before each of its calls, in nanoseconds\nversion 2\nprogram ./a 1\nranks {ranks}\n"
        );
        for rank in 0..ranks {
            text += &format!("rank {rank} calls 1\nMPI_Finalize 5\n");
        }
        text + "end\n"
    }

    #[test]
    fn a_file_has_one_trace_for_each_number_of_ranks() {
        let text = trace(2) + &trace(4);
        let record = Record::parse(&text, "./a 1").unwrap();
        assert_eq!(record.traces, [(2, trace(2)), (4, trace(4))]);
        let chosen = record.clone().choose(&[4]).unwrap();
        assert_eq!(chosen.trace(4).unwrap(), trace(4));
        let why = record.choose(&[4, 8]).unwrap_err();
        assert!(
            why.starts_with("it has no record of 8 ranks, but of 2, 4"),
            "{why}"
        );
    }

    #[test]
    fn another_program_and_a_damaged_file_are_refused() {
        let why = Record::parse(&trace(2), "./b 1").unwrap_err();
        assert!(why.contains("`./a 1`") && why.contains("`./b 1`"), "{why}");
        let why = Record::parse(&(trace(2) + &trace(4)[..200]), "./a 1").unwrap_err();
        assert!(
            why.starts_with("after line 9: ") && why.contains("cut off"),
            "{why}"
        );
        assert_eq!(Record::parse("\n", "./a 1").unwrap_err(), "it is empty");
    }
}
