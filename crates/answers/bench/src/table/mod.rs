//! Measurements as text tables.

mod overlap;
mod rows;

use results::table::distinct;

use crate::measurement::Measurement;
pub(crate) use rows::{best, part_title};

/// One table for each benchmark, in the order of first appearance, in which the first library is
/// compared with the others.
pub(crate) fn render(all: &[Measurement]) -> String {
    let mut tables = Vec::new();
    for benchmark in distinct(all.iter().map(|m| base(&m.benchmark))) {
        let own: Vec<&Measurement> = all
            .iter()
            .filter(|m| base(&m.benchmark) == benchmark)
            .collect();
        let several = own.iter().any(|m| m.label != own[0].label);
        match own.iter().any(|m| m.benchmark.ends_with("/overlap")) {
            true if several => tables.extend(overlap::compared(benchmark, &own)),
            true => tables.push(overlap::alone(benchmark, &own)),
            false => tables.push(rows::one(benchmark, &own)),
        }
    }
    tables.join("\n")
}

/// The benchmark to which a figure belongs, such as `init` for `init/private`.
fn base(benchmark: &str) -> &str {
    benchmark.split('/').next().unwrap_or(benchmark)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::tests::measured;
    use results::Unit;

    #[test]
    fn libraries_stand_side_by_side_with_ratios() {
        let mut all = Vec::new();
        for (size, values) in [(8, [0.2, 0.5, 0.4]), (65536, [6.25, 12.5, 5.0])] {
            for (label, value) in ["own", "a", "b"].into_iter().zip(values) {
                let unit = Unit::Microseconds;
                all.push(measured(label, "latency", size, unit, &[value, value]));
            }
        }
        assert_eq!(
            render(&all),
            "\
latency, 2 ranks, µs, median of 2 rounds
   Size     own       a       b   own / a   own / b   own / best
─────────────────────────────────────────────────────────────────
    8 B   0.200   0.500   0.400      0.40      0.50         0.50
 64 KiB    6.25    12.5    5.00      0.50      1.25         1.25
own: /opt/own/lib/libmpi_abi.so.1
a: /opt/a/lib/libmpi_abi.so.1
b: /opt/b/lib/libmpi_abi.so.1
Ratios divide own by the other: below 1, own is better.
"
        );
    }

    #[test]
    fn one_library_shows_its_spread() {
        let rounds = [1e6, 4e6, 2e6];
        let mut one = measured("own", "mbw-mr", 8, Unit::MessagesPerSecond, &rounds);
        one.percentiles = vec![(99.0, vec![5e5])];
        assert_eq!(
            render(&[one]),
            "\
mbw-mr, 2 ranks, M msg/s, median of 3 rounds
 Size    own   Least   Most     p99
────────────────────────────────────
  8 B   2.00    1.00   4.00   0.500
own: /opt/own/lib/libmpi_abi.so.1
"
        );
    }

    #[test]
    fn numbers_of_several_kinds_are_named_in_the_first_column() {
        let all = [
            measured("own", "init", 0, Unit::Milliseconds, &[12.0]),
            measured("own", "init/private", 0, Unit::Kibibytes, &[1536.0]),
        ];
        assert_eq!(
            render(&all),
            "\
init, 2 ranks
 What                            own
─────────────────────────────────────
 launcher, Init, Finalize, ms   12.0
 private after Init, MiB        1.50
own: /opt/own/lib/libmpi_abi.so.1
"
        );
    }
}
