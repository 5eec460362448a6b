//! The score of HPL on Dahu: runs of 2018-10 by a skeleton that the fast way replays, with the
//! rate of each socket and with the mean rate of all. The rates are of 2019-04. No value comes
//! from a run of HPL.

mod hpl;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use anyhow::{Context, Result, anyhow, ensure};
use fabric::{Bytes, Costs, System};
use model::config::MachineConfig;
use results::Console;
use results::stats::{digits, max, median, round_to};
use results::table::{aligned, significant};
use serde::Deserialize;
use serde_json::json;

use super::congestion::calls::{self, Calls};
use super::congestion::machines::Systems;
use hpl::{Hpl, Pivots, Steps, Work};

/// The times of runs, and the rates of the 64 sockets.
const RUNS: &str = include_str!("../../../data/dahu-hpl.csv");
const SOCKETS: &str = include_str!("../../../data/dahu-sockets.csv");
/// The order of the largest matrix that is scored without being named.
const LARGEST: u64 = 150_000;
/// The ranks of a node, one a core.
const CORES: usize = 32;
/// The ranks of a socket.
const SOCKET: usize = 16;
/// The width of a panel in all runs.
const WIDTH: u64 = 128;
/// The bytes of a copy whose time gives the rate of copies.
const COPIED: u64 = 1 << 20;

#[derive(Clone, Debug, Deserialize)]
struct Run {
    #[serde(rename = "N")]
    order: u64,
    seconds: f64,
}

#[derive(Clone, Debug, Deserialize)]
struct Socket {
    seconds_per_mnk: f64,
}

/// A run with its predictions.
struct Scored {
    run: Run,
    /// Seconds with the rate of each socket, and with the mean of all.
    predicted: [f64; 2],
    messages: u64,
}

/// The scored runs.
pub(crate) struct DahuScores(Vec<Scored>);

/// Dahu as ranks see it.
struct Machine {
    system: System,
    /// Seconds of a product of matrices, divided by its three lengths, for each socket.
    rates: Vec<f64>,
    /// Seconds of a copied byte.
    copy: f64,
}

/// The steps of a rank as calls of a trace.
struct Made<'a, 'b> {
    calls: &'a mut Calls<'b>,
    rate: f64,
    copy: f64,
}

impl Steps for Made<'_, '_> {
    fn work(&mut self, work: Work) {
        self.calls.compute(match work {
            Work::Multiply(product) => product * self.rate,
            Work::Copy(bytes) => bytes * self.copy,
            Work::Wait(seconds) => seconds,
        });
    }

    fn exchange(&mut self, peer: usize, sent: u64, received: u64) {
        self.calls.exchange_unequal([peer; 2], [sent, received]);
    }

    fn begin(&mut self, from: Option<usize>, to: &[usize], bytes: u64) -> usize {
        self.calls.begin(from, to, bytes)
    }

    fn wait(&mut self, number: usize) {
        self.calls.wait(number);
    }

    fn send(&mut self, to: usize, bytes: u64) {
        self.calls.send(to, bytes);
    }
}

/// Predicts the runs of these orders; without any, those to 150,000.
pub(crate) fn run(orders: &[u64], all_pivots: bool) -> Result<DahuScores> {
    let runs: Vec<Run> = read("dahu-hpl.csv", RUNS)?;
    let is_wanted = |run: &Run| match orders {
        [] => run.order <= LARGEST,
        _ => orders.contains(&run.order),
    };
    for order in orders {
        let is_known = runs.iter().any(|run| run.order == *order);
        ensure!(is_known, "--orders: no run on Dahu has the order {order}");
    }
    let runs: Vec<Run> = runs.into_iter().filter(is_wanted).collect();
    let machine = Machine::read()?;
    let mean = machine.with_mean_rates();
    let pivots = match all_pivots {
        true => Pivots::All,
        false => Pivots::First(machine.seconds_of_pivot()?),
    };
    let mut console = Console::without_libraries(2 * runs.len());
    console.say_without_bar(&format!("dahu: {} replays", 2 * runs.len()));
    let mut scored = Vec::new();
    // One replay at a time: a trace takes up to some GiB.
    for run in runs {
        let hpl = Hpl {
            order: run.order,
            width: WIDTH,
            rows: 32,
            columns: 32,
            pivots,
        };
        let (spread, messages) = machine.seconds(&hpl)?;
        let (even, _) = mean.seconds(&hpl)?;
        scored.push(Scored {
            run,
            predicted: [spread, even],
            messages,
        });
    }
    Ok(DahuScores(scored))
}

fn read<T: for<'a> Deserialize<'a>>(name: &'static str, text: &str) -> Result<Vec<T>> {
    let mut reader = csv::ReaderBuilder::new().from_reader(text.as_bytes());
    let rows: csv::Result<Vec<T>> = reader.deserialize().collect();
    rows.context(name)
}

impl Machine {
    fn read() -> Result<Machine> {
        let system = Systems::read()?.named("dahu")?;
        let sockets: Vec<Socket> = read("dahu-sockets.csv", SOCKETS)?;
        let copy = Costs::of(&system, 0).local(Bytes(COPIED)).picos();
        Ok(Machine {
            rates: sockets.iter().map(|one| one.seconds_per_mnk).collect(),
            copy: copy as f64 * 1e-12 / COPIED as f64,
            system,
        })
    }

    /// The machine whose sockets all compute at the mean speed.
    fn with_mean_rates(&self) -> Machine {
        let speeds: f64 = self.rates.iter().map(|rate| 1.0 / rate).sum();
        let mean = self.rates.len() as f64 / speeds;
        Machine {
            system: self.system,
            rates: vec![mean; self.rates.len()],
            copy: self.copy,
        }
    }

    /// The seconds of an exchange of pivots among one rank of each node.
    fn seconds_of_pivot(&self) -> Result<f64> {
        let ranks = self.system.nodes as usize;
        let bytes = 8 * (4 + 2 * WIDTH);
        let trace = calls::program(ranks, |calls| {
            let rank = calls.rank;
            calls.timed(|calls| {
                for _ in 0..WIDTH {
                    for level in 0..ranks.ilog2() {
                        let peer = rank ^ (1 << level);
                        calls.exchange(peer, peer, bytes);
                    }
                }
            });
        });
        let outcome = self.replayed(trace, 1)?;
        Ok(max(&calls::times(&outcome, 0)) / WIDTH as f64)
    }

    /// The seconds and the messages of a run.
    fn seconds(&self, hpl: &Hpl) -> Result<(f64, u64)> {
        let trace = calls::program(hpl.ranks(), |calls| {
            let rate = self.rates[calls.rank / SOCKET];
            calls.barrier();
            calls.mark();
            let rank = calls.rank;
            let copy = self.copy;
            hpl.play(rank, &mut Made { calls, rate, copy });
            calls.barrier();
            calls.mark();
        });
        let outcome = self.replayed(trace, CORES)?;
        Ok((max(&calls::times(&outcome, 0)), outcome.messages))
    }

    fn replayed(&self, trace: trace::Trace, per_node: usize) -> Result<fast::Outcome> {
        let ranks = trace.ranks.len();
        let scene = MachineConfig::new(&self.system, ranks, per_node, 1);
        let scene = scene.map_err(|why| anyhow!("{why}"))?;
        let mut scene = scene.with_library(&self.system.software);
        scene.hosts = (0..ranks).map(|rank| (rank / per_node) as u32).collect();
        let settings = model::library::settings(&self.system.software).into_iter();
        let settings: Vec<(String, String)> = settings
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        let outcome = fast::replay(Arc::new(trace), &scene, &settings);
        outcome.map_err(|why| anyhow!("dahu: {why}"))
    }
}

impl Scored {
    /// The errors of both predictions, as shares of the measured time.
    fn errors(&self) -> [f64; 2] {
        self.predicted.map(|one| one / self.run.seconds - 1.0)
    }
}

impl DahuScores {
    /// The median and the greatest size of the errors of a prediction, in percent.
    fn summary(&self, prediction: usize) -> [f64; 2] {
        let sizes = self.0.iter().map(|one| one.errors()[prediction].abs());
        let sizes: Vec<f64> = sizes.map(|size| size * 100.0).collect();
        [median(&sizes), max(&sizes)]
    }

    /// A table of the runs, and the errors of both predictions.
    pub(crate) fn text(&self) -> String {
        let rows = self.0.iter().map(|one| {
            let errors = one.errors().map(|error| format!("{:+.1} %", error * 100.0));
            let [spread, even] = one.predicted.map(significant);
            let [spread_error, even_error] = errors;
            vec![
                one.run.order.to_string(),
                one.messages.to_string(),
                significant(one.run.seconds),
                spread,
                spread_error,
                even,
                even_error,
            ]
        });
        let header = [
            "N",
            "messages",
            "measured s",
            "sockets s",
            "error",
            "mean rate s",
            "error",
        ];
        let header = header.map(String::from).to_vec();
        let table = aligned(header, rows.collect(), |_| false);
        let [[middle, worst], [even_middle, even_worst]] = [0, 1].map(|one| self.summary(one));
        format!(
            "{table}\nErrors with the rates of sockets: median {middle:.1} %, worst {worst:.1} %; \
             with their mean rate: {even_middle:.1} %, {even_worst:.1} %.\n"
        )
    }

    /// JSON, one object a line: the runs, then the errors.
    pub(crate) fn json(&self) -> String {
        let lines = self.0.iter().map(|one| {
            let line = json!({
                "order": one.run.order, "measured": one.run.seconds, "messages": one.messages,
                "sockets": digits(one.predicted[0]), "mean_rate": digits(one.predicted[1]),
                "errors_percent": one.errors().map(|error| round_to(error * 100.0, 4)),
            });
            line.to_string()
        });
        let mut lines: Vec<String> = lines.collect();
        let [spread, even] = [0, 1].map(|one| self.summary(one).map(|size| round_to(size, 4)));
        lines.push(json!({ "sockets": spread, "mean_rate": even }).to_string());
        lines.join("\n") + "\n"
    }
}
