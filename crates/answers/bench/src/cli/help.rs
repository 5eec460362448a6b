//! The help of each benchmark: an example, and only the options that apply to it. All benchmarks
//! accept the same options, and refuse those that do not apply with a reason.

use clap::Command;

use crate::benchmark::{Benchmark, Family};
use crate::file_access::FileAccess;
use crate::form::Form;
use crate::operation::Collective;
use crate::window_access::OneSided;

/// The options that only modelled machines have.
const MODELLED: [&str; 5] = ["fabric", "own", "ppn", "seed", "trace"];
/// The options that belong to `--every-choice`.
const EVERY: [&str; 3] = ["every_choice", "keep", "beside"];
/// The options that only benchmarks with repeated iterations have.
const REPEATED: [&str; 4] = ["iterations", "seconds", "warmup", "percentiles"];

/// Adds examples to the help of all subcommands, and hides the options that they refuse.
pub(super) fn tailored(mut command: Command) -> Command {
    let names = command
        .get_subcommands()
        .map(|sub| sub.get_name().to_owned());
    let names: Vec<String> = names.collect();
    for name in names {
        command = command.mut_subcommand(&name, |sub| {
            let hidden = hidden(&name);
            let sub = sub.mut_args(|arg| match hidden.contains(&arg.get_id().as_str()) {
                true => arg.hide(true),
                false => arg,
            });
            let lines = examples(&name).into_iter();
            let lines = lines.map(|words| format!("\n  fishplate bench {name}{words}"));
            sub.after_help(format!("Example:{}", lines.collect::<String>()))
        });
    }
    command
}

/// The benchmark of a subcommand. `None`: `limits` or `table`.
fn benchmark(name: &str) -> Option<Benchmark> {
    let single = [
        Benchmark::Latency,
        Benchmark::Bw,
        Benchmark::Bibw,
        Benchmark::MbwMr,
        Benchmark::Init,
        Benchmark::FirstTouch,
        Benchmark::Sweep,
        Benchmark::Sort,
    ];
    let found = single.into_iter().find(|one| one.name() == name);
    let access = || OneSided::ALL.into_iter().find(|one| one.name() == name);
    let found = found.or_else(|| access().map(Benchmark::OneSided));
    let file = || FileAccess::ALL.into_iter().find(|one| one.name() == name);
    let found = found.or_else(|| file().map(Benchmark::File));
    found.or_else(|| Collective::named(name).map(Benchmark::Collective))
}

/// The options that a benchmark refuses.
fn hidden(name: &str) -> Vec<&'static str> {
    let Some(benchmark) = benchmark(name) else {
        // `table` measures this machine, and no modelled one.
        return MODELLED.to_vec();
    };
    let mut all = Vec::new();
    if benchmark.family() != Family::Bandwidth {
        all.push("window_size");
    }
    if !benchmark.takes_skew() {
        all.push("skew");
    }
    if matches!(benchmark, Benchmark::OneSided(_)) {
        all.push("validation");
    }
    if !benchmark.sized() {
        all.extend(["message_size", "validation"]);
    }
    match benchmark.family() {
        Family::Start => {
            all.extend(REPEATED);
            all.extend(MODELLED);
            all.extend(EVERY);
            all.push("explain");
        }
        Family::File => {
            all.extend(MODELLED);
            all.extend(EVERY);
            all.push("explain");
        }
        Family::FirstTouch => {
            all.extend(REPEATED);
            all.extend(MODELLED);
            all.extend(EVERY);
        }
        _ => {}
    }
    if let Benchmark::Collective(collective) = benchmark {
        if !collective.operation.of_neighbours() {
            all.push("topology");
        }
        match collective.form {
            Form::Blocking => {}
            Form::Nonblocking => all.push("form"),
            Form::Persistent => all.extend(["form", "test_calls"]),
        }
    }
    all
}

/// The arguments of the examples, after the name of a subcommand.
fn examples(name: &str) -> Vec<&'static str> {
    match benchmark(name) {
        None if name == "limits" => vec!["", " --rounds 1 --json"],
        None => vec![" --against /opt/mpich/lib/libmpi_abi.so.1 --check"],
        Some(Benchmark::Init) => vec![" -n 2,8", " -n 8 --rounds 20"],
        Some(Benchmark::FirstTouch) => vec!["", " -m 4K:64K --messages 10,100"],
        Some(Benchmark::Latency) => vec![
            " -m 1:4K",
            " -m 8:8 -z 50,99",
            " --fabric qdr,fdr --plot latency.svg",
            " --against /opt/mpich/lib/libmpi_abi.so.1",
            " -m 8:4M --every-choice --keep choices.jsonl",
        ],
        Some(Benchmark::OneSided(access)) if access.is_stream() => {
            vec![" -m 8:4M", " -m 8:1M -W 16 --fabric edr"]
        }
        Some(Benchmark::OneSided(access)) if access.sized() => vec![
            " -m 8:8",
            " -m 8:64K --against /opt/mpich/lib/libmpi_abi.so.1",
        ],
        Some(Benchmark::OneSided(_)) => vec!["", " --fabric qdr"],
        Some(Benchmark::File(_)) => vec![
            " -n 2,4 -m 64:4K",
            " -m 64:4K --against /opt/mpich/lib/libmpi_abi.so.1",
        ],
        Some(Benchmark::MbwMr) => vec![" -n 4 -m 8:8", " -n 8 -W 128 --fabric qdr --ppn 4"],
        Some(Benchmark::Bibw) => vec![
            " -m 4K:4M",
            " -m 1M:1M -W 2 --fabric fdr,2xqdr --skew 0,2,10",
        ],
        Some(found) if found.family() == Family::Bandwidth => {
            vec![" -m 4K:4M", " -m 1M:1M -W 16 --fabric qdr,2xqdr"]
        }
        Some(Benchmark::Collective(found)) if found.operation.of_neighbours() => {
            vec![" -n 4 -m 8:1K --topology graph"]
        }
        Some(found) if found.sized() => vec![
            " -n 2,4 -m 8:64K",
            " -n 16 --fabric qdr --ppn 2",
            " -n 4 -m 8:64K --fabric qdr --every-choice",
        ],
        Some(_) => vec![" -n 2,4", " -n 16 --fabric qdr --ppn 2"],
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args, Parser};

    use super::*;
    use crate::cli::BenchArguments;

    #[derive(Parser)]
    struct Whole {
        #[command(flatten)]
        arguments: BenchArguments,
    }

    fn defined() -> Command {
        BenchArguments::augment_args(Command::new("bench"))
    }

    #[test]
    fn every_example_is_accepted() {
        for sub in defined().get_subcommands() {
            let name = sub.get_name();
            let all = examples(name);
            assert!(!all.is_empty());
            for words in all {
                let line = format!("bench {name}{words}");
                let whole = Whole::try_parse_from(line.split(' '));
                let whole = whole.unwrap_or_else(|error| panic!("{line}: {error}"));
                let cases = whole.arguments.what.cases();
                assert!(cases.is_ok(), "{line}: {:#}", cases.err().unwrap());
            }
        }
    }

    #[test]
    fn help_lists_the_options_that_mean_something() {
        let shows = |name: &str, option: &str| {
            let mut command = defined();
            let sub = command.find_subcommand_mut(name).expect("a benchmark");
            let help = sub.render_long_help().to_string();
            assert!(help.contains("Example:\n  fishplate bench "), "{help}");
            help.contains(option)
        };
        assert!(shows("bw", "--beside") && !shows("init", "--beside"));
        assert!(shows("bw", "--window-size") && !shows("latency", "--window-size"));
        assert!(shows("bibw", "--skew") && shows("sweep", "--skew") && !shows("bw", "--skew"));
        assert!(shows("bcast", "--message-size") && !shows("barrier", "--message-size"));
        assert!(!shows("init", "--iterations") && !shows("init", "--fabric"));
        assert!(!shows("table", "--fabric") && shows("table", "--against"));
        assert!(shows("neighbor-alltoall", "--topology") && !shows("bcast", "--topology"));
    }
}
