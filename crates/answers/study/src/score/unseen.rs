//! Figures of unseen systems, from which no value of the catalogue was inferred: the errors to
//! expect for a machine that has never been compared with the model.
//!
//! Each figure is predicted twice: with the MPI library that its source names, and with our library
//! instead, as `compare` predicts a machine whose library is assumed.

use std::path::Path;

use anyhow::Result;
use fabric::accuracy::{Accuracy, Case, FigureKind};
use results::stats::{median, percentile};

use super::intervals::{self, COVERAGE, KindIntervals, Origin, WIDTH};
use super::machines::FigureMachines;
use super::orders::{self, Pair, SAID, Words};
use super::page::{markdown, percent};
use super::{Scored, Scores, beside, figures, predict};

pub(super) const FIGURES: &str = include_str!("../../data/unseen.csv");
/// The machines on which unseen figures were measured, described as in their sources.
pub(super) const MACHINES: &str = include_str!("../../data/unseen.toml");

/// The figures of systems from which no value was inferred, with both predictions.
pub(super) struct Unseen {
    named: Scores,
    /// The predictions with our library. Those of figures of devices equal `named`; figures over
    /// TCP are left out.
    assumed: Scores,
    /// Quotients of two machines' figures in one document, except those from which a value was
    /// inferred.
    quotients: Scores,
    machines: FigureMachines,
}

/// Predicts the figures of systems from which no value was inferred. `quotients` are the scores of
/// `super::page::pairs`.
pub(super) fn run(command: &Path, quotients: &Scores) -> Result<Unseen> {
    let machines = FigureMachines::read(None, MACHINES)?;
    let all = figures::parse("unseen.csv", FIGURES)?;
    let named = predict(command, all, &machines, false)?;
    let of_mpi = named.0.iter().filter(|scored| scored.is_of_mpi());
    let of_mpi = of_mpi.map(|scored| scored.figure.clone()).collect();
    let mut assumed = predict(command, of_mpi, &machines, true)?;
    assumed.0.extend(named.of_devices_as_assumed());
    let used = |scored: &&Scored| scored.figure.role == "calibration";
    let quotients = quotients.0.iter().filter(|scored| !used(scored));
    Ok(Unseen {
        quotients: Scores(quotients.cloned().collect()),
        named,
        assumed,
        machines,
    })
}

/// Predicts the figures of systems from which no value was inferred, with named libraries alone.
pub(super) fn named(command: &Path) -> Result<Unseen> {
    let machines = FigureMachines::read(None, MACHINES)?;
    let all = figures::parse("unseen.csv", FIGURES)?;
    Ok(Unseen {
        named: predict(command, all, &machines, false)?,
        assumed: Scores::default(),
        quotients: Scores::default(),
        machines,
    })
}

impl Scored {
    /// True if the figure is of MPI over an HCA.
    fn is_of_mpi(&self) -> bool {
        !self.figure.is_of_devices() && self.case != Some(Case::Tcp)
    }
}

impl Scores {
    /// The figures of devices, which do not depend on a library, for the case that the library is
    /// assumed.
    fn of_devices_as_assumed(&self) -> Vec<Scored> {
        let own = self.0.iter().filter(|one| one.figure.is_of_devices());
        own.map(|one| Scored {
            case: Some(Case::Assumed),
            ..one.clone()
        })
        .collect()
    }

    fn origins(&self) -> impl Iterator<Item = Origin> {
        self.0.iter().filter_map(|scored| {
            Some(Origin {
                kind: scored.figure.kind()?,
                case: scored.case?,
                systems: vec![scored.figure.system().to_owned()],
                quotient: 1.0 / (1.0 + scored.error()?),
            })
        })
    }

    /// The absolute and the signed errors of the figures for which `wanted` is true, summed up.
    fn summed(&self, wanted: impl Fn(&Scored) -> bool) -> Summed {
        let own = self.0.iter().filter(|one| wanted(one));
        let mut signed: Vec<f64> = own.filter_map(Scored::error).collect();
        let mut errors: Vec<f64> = signed.iter().map(|error| error.abs()).collect();
        signed.sort_by(f64::total_cmp);
        errors.sort_by(f64::total_cmp);
        Summed {
            figures: errors.len(),
            median: median(&errors),
            far: percentile(&errors, 90.0),
            signed: median(&signed),
        }
    }
}

/// A summary of the errors of several figures: medians and the 90th percentile.
struct Summed {
    figures: usize,
    median: f64,
    far: f64,
    signed: f64,
}

impl Summed {
    fn both(&self) -> String {
        match self.figures {
            0 => String::new(),
            _ => format!("{}, {}", percent(self.median), percent(self.far)),
        }
    }
}

impl Unseen {
    /// The errors from which intervals are computed.
    pub(super) fn origins(&self) -> Vec<Origin> {
        let mut all: Vec<Origin> = self.named.origins().chain(self.assumed.origins()).collect();
        let pairs = self.pairs(&self.named.0, &self.assumed.0);
        all.extend(pairs.iter().flat_map(Pair::origins));
        for scored in &self.quotients.0 {
            if let (Some(kind), Some(case), Some(error)) =
                (scored.figure.kind(), scored.case, scored.error())
            {
                let source = &scored.figure.source;
                let document = source.split(':').next().unwrap_or(source).to_owned();
                all.extend(orders::spread(
                    kind,
                    case,
                    vec![document],
                    1.0 / (1.0 + error),
                ));
            }
        }
        all
    }

    /// The pairs of machines with named libraries, and those of machines with assumed libraries.
    fn pairs(&self, named: &[Scored], assumed: &[Scored]) -> Vec<Pair> {
        let are_equal = |one: &str, other: &str| self.machines.have_equal_hosts(one, other);
        let mut all = orders::pairs(named, are_equal);
        // Machines with equal hosts are equal with either library, so they are counted only once.
        let of_assumed = orders::pairs(assumed, are_equal).into_iter();
        all.extend(of_assumed.filter(|pair| pair.case() == Case::RatioAssumed));
        all
    }

    /// The part of the page about unseen figures, those of systems from which no value was
    /// inferred. `seen` and `seen_assumed`: the predictions of seen figures, with the library that
    /// the machines name and with ours.
    pub(super) fn markdown(&self, seen: &Scores, seen_assumed: &Scores) -> String {
        let origins = self.origins();
        let own_devices = seen.of_devices_as_assumed();
        let of_mpi = seen_assumed.0.iter().filter(|one| one.is_of_mpi());
        let seen_assumed: Vec<Scored> = of_mpi.cloned().chain(own_devices).collect();
        let pairs = self.pairs(
            &[&self.named.0[..], &seen.0].concat(),
            &[&self.assumed.0[..], &seen_assumed].concat(),
        );
        format!(
            "{}{}{}{}{}",
            self.by_kind(seen),
            self.beside(seen),
            self.by_machine(),
            shown(&intervals::by_kind(&origins)),
            words(&Words::by_kind(&pairs, &origins))
        )
    }

    fn by_kind(&self, seen: &Scores) -> String {
        let mut rows = Vec::new();
        for case in [Case::Named, Case::Tcp] {
            for kind in FigureKind::ALL {
                let is = |scored: &Scored| scored.figure.kind() == Some(kind);
                let of = self.named.summed(|one| is(one) && one.case == Some(case));
                let mut systems: Vec<&str> = self
                    .named
                    .0
                    .iter()
                    .filter(|one| is(one) && one.case == Some(case))
                    .map(|one| one.figure.system())
                    .collect();
                systems.dedup();
                let (seen, own) = match case {
                    Case::Named => (seen.summed(is).both(), self.assumed.summed(is).both()),
                    _ => Default::default(),
                };
                rows.push(vec![
                    match case {
                        Case::Tcp => format!("{}, TCP", kind.name()),
                        _ => kind.name().to_owned(),
                    },
                    format!("{} of {}", of.figures, systems.len()),
                    of.both(),
                    format!("{:+.1} %", of.signed * 100.0),
                    own,
                    seen,
                ]);
            }
        }
        let count = self.named.summed(|_| true).figures;
        format!(
            "## Figures of unseen systems\n\n{count} figures of systems from which no value of the catalogue was inferred (`crates/answers/study/data/unseen.csv`, \
             with a source for each; `unseen.toml` has their machines, written down before anything was predicted). This is what to expect of a machine that \
             nobody has compared with the model; the figures above, *seen* here, are those from which values were inferred. Each cell has the median and the 90th \
             percentile of the errors; *signed* is their median with signs: positive where the model is too high. Left out are figures with other work on the hosts or a clock \
             that was not at its maximum, datagrams, pairs of processes, and virtual machines over TCP, whose provider limits them.\n\n{}",
            markdown(
                &[
                    "kind",
                    "figures, systems",
                    "named library",
                    "signed",
                    "this library",
                    "seen"
                ],
                &rows
            )
        )
    }

    /// The header and the rows of the table by network, level and size.
    pub(super) fn rows(&self, seen: &Scores) -> Result<(Vec<&'static str>, Vec<Vec<String>>)> {
        let of_seen = FigureMachines::read(None, super::MACHINES)?;
        let unseen = (&self.named.0[..], &self.machines);
        Ok(beside::table((&seen.0, &of_seen), unseen))
    }

    fn beside(&self, seen: &Scores) -> String {
        let Ok((header, rows)) = self.rows(seen) else {
            return String::new();
        };
        format!(
            "By network, level and size (`fishplate study score --unseen`). *Null model*: the median of short messages of the other systems of the network and level, as a constant, \
             and the rate of the machine's link. IPoIB is in the driver's usual mode; one of its systems is of MPI above it, for which sockets alone stand in.\n\n{}",
            markdown(&header, &rows)
        )
    }

    fn by_machine(&self) -> String {
        let names = self.named.0.iter().map(|one| one.figure.model_cfg.clone());
        let names = results::table::distinct(names);
        let rows = names.into_iter().map(|name| {
            let of = |latency: bool| {
                self.named.summed(|one| {
                    let kind = one.figure.kind();
                    one.figure.model_cfg == name
                        && kind.is_some_and(|kind| kind.is_latency() == latency)
                })
            };
            let (latencies, streams) = (of(true), of(false));
            vec![
                name.clone(),
                latencies.figures.to_string(),
                latencies.both(),
                streams.figures.to_string(),
                streams.both(),
            ]
        });
        format!(
            "By machine:\n\n{}",
            markdown(
                &["machine", "latencies", "errors", "bandwidths", "errors"],
                &rows.collect::<Vec<_>>()
            )
        )
    }
}

fn verdict(holds: bool) -> &'static str {
    match holds {
        true => "met",
        false => "**missed**",
    }
}

/// The section about intervals, with the limits that they should keep.
fn shown(all: &[KindIntervals]) -> String {
    let row = |one: &KindIntervals| {
        let Accuracy {
            kind,
            case,
            figures,
            systems,
            low,
            high,
            ..
        } = &one.accuracy;
        let (coverage, verdict) = match one.held {
            0 => ("–".to_owned(), "too few systems"),
            held => (
                format!(
                    "{} of {held}, {}",
                    one.inside,
                    percent(one.inside as f64 / held as f64)
                ),
                verdict(one.covers() && one.is_narrow()),
            ),
        };
        vec![
            case.name().to_owned(),
            kind.name().to_owned(),
            format!("{figures} of {systems}"),
            format!("{low:.2} to {high:.2}"),
            coverage,
            match one.held {
                0 => "–".to_owned(),
                _ => format!("{:.2}", one.width / one.narrowest),
            },
            verdict.to_owned(),
        ]
    };
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    let (inside, held) = all
        .iter()
        .fold((0, 0), |sum, one| (sum.0 + one.inside, sum.1 + one.held));
    format!(
        "## Intervals of nine in ten\n\nA published figure lies between these multiples of its prediction nine times in ten, by what is known of the machine. A *ratio* is \
         that of two machines in one test. *Inside*: figures within the interval that the other systems give; for ratios both systems are left out. Wanted are {:.0} to {:.0} %. \
         *Width*: the median of these intervals' widths over the narrowest that holds nine in ten of all figures; wanted is at most {WIDTH}. Bounds are missed where few systems are known: the others do not tell what the next one brings. \
         So the interval of a ratio is as much wider, in logarithms, as one system is of all. Few systems with equal hosts and libraries are published: \
         all latencies count for each kind of latency, and all streams for each kind of stream. \
         Named hosts are no case of their own: only two systems name one that the catalogue has (dl380, epyc7763), and their errors are no smaller. `study score`, `fabric \
         explain` and `compare` use the table (`crates/machines/fabric/data/accuracy.csv`, written by `fishplate study scores --errors`).\n\n{}In all {inside} of {held} figures are inside, {}.\n\n",
        COVERAGE[0] * 100.0,
        COVERAGE[1] * 100.0,
        markdown(
            &[
                "known",
                "kind",
                "figures, systems",
                "interval",
                "inside",
                "width",
                ""
            ],
            &rows
        ),
        percent(inside as f64 / held as f64),
    )
}

/// The section about orders of machines and their certainty.
fn words(all: &[(Case, FigureKind, Words)]) -> String {
    let row = |case: &str, kind: &str, words: &Words| {
        vec![
            case.to_owned(),
            kind.to_owned(),
            words.pairs.to_string(),
            format!("{}, {}", words.sure, words.sure_wrong),
            format!("{}, {}", words.fairly_sure, words.fairly_sure_wrong),
            format!("{} of {}", words.said, words.clear),
        ]
    };
    let mut rows: Vec<Vec<String>> = all
        .iter()
        .map(|(case, kind, words)| row(case.name(), kind.name(), words))
        .collect();
    let sum = Words::sum(all);
    rows.push(row("all", "", &sum));
    format!(
        "## Orders of machines\n\nEach two machines of all these figures, seen and unseen, that one test with one size has measured: is the order that the model predicts right, and how sure \
         would `compare` be of it if the network took all of the time? *Sure*: the predicted ratio is beyond the square of the interval of ratios; *fairly sure*: beyond the interval; each with the \
         number of published orders that are the other way round. *Clear*: pairs whose published ratio is beyond the square of the interval, and those of them that are called sure or fairly sure. The \
         intervals come from other systems than the two. Wanted: nothing that is called sure is wrong, and {:.0} % of clear orders are called sure or fairly sure.\n\n{}{}: {}.\n\n",
        SAID * 100.0,
        markdown(
            &[
                "known",
                "kind",
                "pairs",
                "sure, wrong",
                "fairly sure, wrong",
                "clear and said"
            ],
            &rows
        ),
        match sum.clear {
            0 => "No order is clear".to_owned(),
            clear => format!(
                "Of what is called sure {} are wrong, and {} of clear orders are said",
                sum.sure_wrong,
                percent(sum.said as f64 / clear as f64)
            ),
        },
        verdict(sum.hold()),
    )
}
