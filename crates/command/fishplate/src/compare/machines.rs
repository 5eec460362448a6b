//! The machines of a comparison, from the command line: systems, hosts for all of them, changed
//! values, and speeds of processors.
//!
//! Invariant: an invalid word is an error before any run, and the error names the option.

use ::compare::Machine;
use ::compare::check::RecordedOn;
use ::compare::machine::Change;
use clap::Args;
use fabric::Oversubscription;
use fabric::catalogue::HostParts;

use crate::fabric::ValueChange;

#[derive(Args)]
pub(super) struct MachineArguments {
    /// Machines: names from `fishplate fabric list system`, or files; the first is that of the
    /// recording, and others are compared with it
    #[arg(
        long,
        value_name = "NAME|FILE,...",
        value_delimiter = ',',
        required = true
    )]
    fabrics: Vec<String>,

    /// Machine on which the traces were recorded (`fishplate record`): it replays them first, and
    /// the answer says how well that fits the recorded times. A name, or the file of `fishplate
    /// fabric calibrate`
    #[arg(long, value_name = "NAME|FILE")]
    recorded_on: Option<String>,

    /// Put all machines into these hosts, with their bus, their costs of an MPI library and their
    /// kernel, but not the speed of their processors in computing (--speed): a name from `fishplate
    /// fabric list host`, or a system or its file, whose hosts are meant
    #[arg(long, visible_alias = "fabric-host", value_name = "NAME|FILE")]
    host: Option<String>,

    /// Change one value by its keys in `fabric show`: `hca.send=120ns`, or `edr=hca.send=120ns` for
    /// one machine. May be repeated
    #[arg(long, value_name = "[NAME=]KEY=VALUE", value_parser = setting)]
    set: Vec<OfMachine<ValueChange>>,

    /// Speed of a machine's processors in computing, over this computer's: 1.5 for half as fast
    /// again. Without NAME for all machines; may be repeated
    #[arg(long, value_name = "[NAME=]FACTOR", value_parser = speed)]
    speed: Vec<OfMachine<f64>>,
}

/// The value of an option, for one machine or for all machines.
#[derive(Clone)]
struct OfMachine<T> {
    /// The machine that the value is for. `None`: all machines.
    machine: Option<String>,
    value: T,
}

impl<T> OfMachine<T> {
    fn is_of(&self, word: &str) -> bool {
        self.machine.as_ref().is_none_or(|name| name == word)
    }
}

/// The machine that an option names, in its own hosts or in those of another.
fn built(option: &str, word: &str, hosts: Option<&HostParts>) -> Result<Machine, String> {
    let sheet = crate::fabric::sheet(word, hosts);
    let sheet = sheet.map_err(|why| format!("{option}: {why}"))?;
    Machine::new(word, sheet).map_err(|why| format!("{option}: {why}"))
}

fn speed(word: &str) -> Result<OfMachine<f64>, String> {
    let (machine, number) = match word.rsplit_once('=') {
        Some((machine, number)) => (Some(machine.to_owned()), number),
        None => (None, word),
    };
    match number.parse::<f64>() {
        Ok(value) if (0.01..=100.0).contains(&value) => Ok(OfMachine { machine, value }),
        _ => Err(format!(
            "'{number}' is not a speed; valid are 0.01 to 100, and MACHINE=0.01 to MACHINE=100"
        )),
    }
}

fn setting(word: &str) -> Result<OfMachine<ValueChange>, String> {
    let mut parts = word.rsplitn(3, '=');
    let (Some(value), Some(key)) = (parts.next(), parts.next()) else {
        return Err("valid are KEY=VALUE, such as hca.send=120ns, and MACHINE=KEY=VALUE".into());
    };
    Ok(OfMachine {
        machine: parts.next().map(str::to_owned),
        value: ValueChange {
            path: key.to_owned(),
            value: value.to_owned(),
        },
    })
}

impl MachineArguments {
    /// The machines of the comparison, with this number of hosts for each link up of a leaf switch
    /// in place of their own, if it is given.
    pub(super) fn machines(&self, ratio: Option<Oversubscription>) -> Result<Vec<Machine>, String> {
        self.check_names()?;
        let host = self.host.as_deref();
        let hosts = host.map(|word| crate::fabric::hosts("--host", word));
        let hosts = hosts.transpose()?;
        let mut machines: Vec<Machine> = Vec::new();
        for word in &self.fabrics {
            if machines.iter().any(|machine| machine.word == *word) {
                return Err(format!("--fabrics: {word} is named twice"));
            }
            let machine = built("--fabrics", word, hosts.as_ref())?;
            let machine = match host {
                Some(host) => machine.in_hosts(host),
                None => machine,
            };
            let mut changes = self.changes(word);
            let machine = machine.with_changes(changes.clone());
            let mut machine = machine.map_err(|why| format!("--set: {why}"))?;
            if let Some(ratio) = ratio {
                changes.push(Change {
                    path: "oversubscription".into(),
                    value: ratio.to_string(),
                });
                let narrowed = machine.with_changes(changes);
                machine = narrowed.map_err(|why| format!("--oversubscription: {why}"))?;
            }
            // If the user gives several speeds for a machine, the last one is used.
            let speed = self.speed.iter().rev().find(|speed| speed.is_of(word));
            machines.push(match speed {
                Some(speed) => machine.with_speed(speed.value),
                None => machine,
            });
        }
        Ok(machines)
    }

    /// The machine on which the traces were recorded, if it is named. Its hosts, and the speed of
    /// its processors, are those of the recording.
    pub(super) fn recorded_on(&self) -> Result<Option<RecordedOn>, String> {
        let word = self.recorded_on.as_deref();
        let machine = word.map(|word| built("--recorded-on", word, None));
        Ok(machine.transpose()?.map(RecordedOn))
    }

    /// The changes of a machine's values, in the order of the command line.
    fn changes(&self, word: &str) -> Vec<Change> {
        let own = self.set.iter().filter(|set| set.is_of(word));
        own.map(|set| Change {
            path: set.value.path.clone(),
            value: set.value.value.clone(),
        })
        .collect()
    }

    /// Reports an error if an option is for a machine that is not compared.
    fn check_names(&self) -> Result<(), String> {
        let speeds = self.speed.iter().map(|one| ("--speed", &one.machine));
        let sets = self.set.iter().map(|one| ("--set", &one.machine));
        for (option, name) in speeds.chain(sets) {
            if let Some(name) = name.as_ref().filter(|name| !self.fabrics.contains(name)) {
                return Err(format!(
                    "{option} {name}: it is none of the machines of --fabrics"
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        machines: MachineArguments,
    }

    fn machines(words: &str) -> Result<Vec<Machine>, String> {
        let words = std::iter::once("compare").chain(words.split(' '));
        let parsed = Words::try_parse_from(words).map_err(|why| why.to_string())?;
        parsed.machines.machines(None)
    }

    #[test]
    fn all_machines_are_put_into_one_host() {
        let found = machines("--fabrics qdr,edr,2xqdr --host Haswell").unwrap();
        assert!(found.iter().all(|machine| machine.has_hosts_of(&found[1])));
        assert!(
            found
                .iter()
                .all(|machine| machine.host.as_deref() == Some("Haswell"))
        );
        // The hosts of a named system; then hosts without the option.
        let by_system = machines("--fabrics qdr,edr --host edr").unwrap();
        assert!(by_system[0].has_hosts_of(&by_system[1]));
        let own = machines("--fabrics qdr,edr").unwrap();
        assert!(!own[0].has_hosts_of(&own[1]));
    }

    #[test]
    fn values_change_on_all_machines_or_on_one() {
        let value = |machine: &Machine, path: &str| {
            let values = machine.sheet.values();
            let value = values.iter().find(|value| value.path == path).unwrap();
            value.raw.to_string()
        };
        let words =
            "--fabrics qdr,edr --set cable.length=3m --set edr=hca.send=1us --set edr=hca.send=2us";
        let found = machines(words).unwrap();
        let of = |path: &str| [0, 1].map(|at| value(&found[at], path));
        assert_eq!(of("cable.length"), ["\"3m\"", "\"3m\""]);
        assert_eq!(of("hca.send"), ["\"130 ns\"", "\"2us\""]);
        // Values are changed after the hosts are chosen.
        let found = machines("--fabrics qdr --host haswell --set host.poll=1us").unwrap();
        assert_eq!(value(&found[0], "host.poll"), "\"1us\"");
    }

    #[test]
    fn wrong_words_are_refused_before_any_run() {
        for (words, says) in [
            (
                "--fabrics qdr --host haswel",
                "--host haswel: there is no host named haswel; did you mean haswell?",
            ),
            (
                "--fabrics qdr,mpich2-2003 --host haswell",
                "--fabrics: mpich2-2003 cannot have haswell hosts: ",
            ),
            ("--fabrics qdr --set hca.sned=1us", "did you mean send?"),
            (
                "--fabrics qdr,2x-unequal --set rails.1.lanes=8",
                "--set: qdr: ",
            ),
            (
                "--fabrics qdr --set hca.send=fast",
                "--set: qdr: hca.connectx-2.send: \"fast\" is not valid",
            ),
            ("--fabrics qdr --set hca.send", "valid are KEY=VALUE"),
            (
                "--fabrics qdr --set edr=hca.send=1us",
                "--set edr: it is none of the machines of --fabrics",
            ),
            (
                "--fabrics qdr --speed edr=2",
                "--speed edr: it is none of the machines of --fabrics",
            ),
            ("--fabrics qdr --speed fast", "is not a speed"),
            ("--fabrics qdr,qdr", "qdr is named twice"),
        ] {
            let why = machines(words).map(drop).unwrap_err();
            assert!(why.contains(says), "{words}: {why}");
        }
    }
}
