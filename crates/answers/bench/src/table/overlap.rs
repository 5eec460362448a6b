//! Tables of nonblocking collectives: each has several figures for a size.

use results::Unit;
use results::stats;
use results::table::{lines, number};

use super::rows::{Keys, legend, one, title};
use crate::measurement::Measurement;

/// The figures of a nonblocking collective: the suffix of the benchmark's name, and the title.
const FIGURES: [(&str, &str); 4] = [
    ("/overall", "Overall"),
    ("/compute", "Compute"),
    ("", "Pure"),
    ("/overlap", "Overlap"),
];

/// A table of one library's nonblocking collective, with all figures of a size in one row.
pub(super) fn alone(benchmark: &str, all: &[&Measurement]) -> String {
    let keys = Keys {
        parts: false,
        ..Keys::of(all)
    };
    let title = title(&format!("{benchmark}, {}", all[0].label), all, &keys);
    let mut header = keys.header();
    header.extend(FIGURES.map(|(_, name)| name.to_owned()));
    let pure: Vec<&Measurement> = all
        .iter()
        .copied()
        .filter(|m| m.benchmark == benchmark)
        .collect();
    header.extend(pure[0].percentiles.iter().map(|(p, _)| format!("p{p}")));
    let rows = pure.iter().map(|row| {
        let mut cells = keys.cells(row);
        cells.extend(FIGURES.map(|(part, _)| {
            let name = format!("{benchmark}{part}");
            let is = |m: &&&Measurement| {
                m.benchmark == name && (m.ranks, m.size) == (row.ranks, row.size)
            };
            all.iter()
                .find(is)
                .map_or_else(String::new, |m| match m.unit {
                    Unit::Percent => format!("{} %", number(m.median(), m.unit)),
                    unit => number(m.median(), unit),
                })
        }));
        let percentiles = row.percentiles.iter();
        cells.extend(percentiles.map(|(_, values)| number(stats::median(values), row.unit)));
        cells
    });
    let rows = lines(header, rows.collect(), keys.left());
    format!("{title}\n{rows}{}", legend(all))
}

/// A table for each figure of a nonblocking collective, with a column for each library.
pub(super) fn compared(benchmark: &str, all: &[&Measurement]) -> Vec<String> {
    let table = |(part, name): (&str, &str)| {
        let is = |m: &&Measurement| m.benchmark.strip_prefix(benchmark) == Some(part);
        let own: Vec<&Measurement> = all.iter().copied().filter(is).collect();
        let heading = format!("{benchmark}, {}", name.to_lowercase());
        one(&heading, &own)
    };
    FIGURES.map(table).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::tests::measured;
    use crate::table::render;

    fn overlap(label: &str) -> Vec<Measurement> {
        let one = |name, unit, value| measured(label, name, 8, unit, &[value]);
        vec![
            one("ibcast", Unit::Microseconds, 2.0),
            one("ibcast/overall", Unit::Microseconds, 3.5),
            one("ibcast/compute", Unit::Microseconds, 2.5),
            one("ibcast/overlap", Unit::Percent, 50.0),
        ]
    }

    #[test]
    fn a_nonblocking_collective_has_all_figures_in_a_row() {
        assert_eq!(
            render(&overlap("own")),
            "\
ibcast, own, 2 ranks, µs
 Size   Overall   Compute   Pure   Overlap
───────────────────────────────────────────
  8 B      3.50      2.50   2.00    50.0 %
own: /opt/own/lib/libmpi_abi.so.1
"
        );
    }

    #[test]
    fn nonblocking_collectives_of_several_libraries_have_a_table_for_each_figure() {
        let text = render(&[overlap("own"), overlap("other")].concat());
        let first = "\
ibcast, overall, 2 ranks, µs
 Size    own   other   own / other
───────────────────────────────────
  8 B   3.50    3.50          1.00
";
        assert!(text.starts_with(first), "{text}");
        let shares = "\
ibcast, overlap, 2 ranks, %
 Size    own   other
─────────────────────
  8 B   50.0    50.0
";
        assert!(text.contains(shares), "{text}");
    }
}
