use bench::modelled::Curve;

use super::*;
use crate::benchmark::Benchmark;
use crate::curves::Measured;

/// Curves at 4, 8, 12, 16 and 32 KiB; rates of three transports; bandwidths for three chunk sizes.
fn found() -> Curves {
    let curve = |label: &str, values: [f64; 5]| Curve {
        label: label.into(),
        points: [4, 8, 12, 16, 32]
            .map(|kib| kib << 10)
            .into_iter()
            .zip(values)
            .collect(),
    };
    let bandwidth = vec![
        curve("rails", [30.0, 32.0, 33.0, 31.0, 64.0]),
        curve("fdr", [40.0, 50.0, 55.0, 56.0, 60.0]),
        curve("late", [40.0, 50.0, 55.0, 56.0, 65.0]),
    ];
    let latency = vec![
        curve("rails", [5.0, 7.0, 9.0, 10.0, 8.0]),
        curve("fdr", [6.0, 7.5, 8.0, 9.0, 11.0]),
    ];
    let swept = |values: &[&str], points: [(usize, f64); 3]| Measured {
        benchmark: Benchmark::SendBw,
        swept: values.iter().map(|value| (*value).into()).collect(),
        curves: vec![Curve {
            label: "fdr".into(),
            points: points.to_vec(),
        }],
    };
    let sized = |benchmark, curves| Measured {
        benchmark,
        swept: Vec::new(),
        curves,
    };
    let all = [
        ("bw", sized(Benchmark::Bw, bandwidth)),
        ("latency", sized(Benchmark::Latency, latency)),
        (
            "write-bw",
            sized(Benchmark::WriteBw, vec![curve("fdr", [41.0; 5])]),
        ),
        (
            "sent",
            swept(&["rc", "uc", "ud"], [(1, 3000.0), (2, 3000.0), (3, 3750.0)]),
        ),
        (
            "chunk",
            swept(
                &["1K", "2K", "4K"],
                [(1024, 80.0), (2048, 99.0), (4096, 100.0)],
            ),
        ),
    ];
    Curves(all.map(|(name, measured)| (name.into(), measured)).into())
}

fn check(text: &str) -> Check {
    #[derive(Deserialize)]
    struct Only {
        check: Check,
    }
    let only: Only = toml::from_str(&format!("check = {{ {text} }}")).unwrap();
    only.check
}

fn decide(check: &Check) -> Finding {
    let curves = found();
    check.decide(&Evidence {
        curves: &curves,
        machines: &[],
        missing: &Missing::new(),
    })
}

#[track_caller]
fn decided(text: &str, holds: bool, measured: &str) {
    let finding = decide(&check(text));
    assert_eq!(
        (finding.holds, finding.measured.as_str()),
        (holds, measured)
    );
}

#[test]
fn ratios_have_bounds_at_every_size() {
    let all = r#"ratio = { of = "bw", curve = "fdr", over = "rails", from = 4096, to = 16384,"#;
    let measured = "fdr / rails 1.333 at 4 KiB to 1.806 at 16 KiB";
    decided(&format!("{all} above = 1.0 }}"), true, measured);
    decided(&format!("{all} above = 1.4 }}"), false, measured);
    decided(&format!("{all} below = 1.8 }}"), false, measured);
    let nowhere = r#"ratio = { of = "bw", curve = "fdr", over = "rails", from = 1, to = 2 }"#;
    decided(nowhere, false, "not measured");
}

#[test]
fn windows_end_where_the_document_says() {
    let window = |curve: &str, to: usize| {
        format!(
            r#"window = {{ of = "bw", curve = "{curve}", over = "rails", from = 8192, to = {to} }}"#
        )
    };
    let measured = "fdr is better from 4 KiB to 16 KiB, 1.81 x at 16 KiB";
    decided(&window("fdr", 32768), true, measured);
    decided(
        &window("fdr", 16384),
        false,
        "fdr is better from 4 KiB to 16 KiB, 1.67 x at 12 KiB",
    );
    decided(
        &window("late", 32768),
        false,
        "late is better from 4 KiB to 32 KiB, 1.81 x at 16 KiB",
    );
}

#[test]
fn crossovers_may_be_off_by_a_factor_of_two() {
    let at = |size: usize| {
        format!(r#"crossover = {{ of = "latency", curve = "fdr", over = "rails", at = {size} }}"#)
    };
    decided(&at(8192), false, "fdr is not better at the largest size");
    let turned = at(32768).replace(r#""fdr", over = "rails""#, r#""rails", over = "fdr""#);
    decided(&turned, true, "rails is better from 32 KiB on");
    decided(
        &turned.replace("32768", "8192"),
        false,
        "rails is better from 32 KiB on",
    );
}

#[test]
fn steps_and_dips() {
    let down = r#"step-down = { of = "latency", curve = "rails", at = 16384 }"#;
    decided(down, true, "rails: 10.0 at 16 KiB, 8.00 µs at 32 KiB");
    decided(
        &down.replace("rails", "fdr"),
        false,
        "fdr: 9.00 at 16 KiB, 11.0 µs at 32 KiB",
    );
    let up = r#"step-up = { of = "bw", curve = "rails", at = 16384, above = 2.0 }"#;
    decided(up, true, "rails: 31.0 at 16 KiB, 64.0 MB/s at 32 KiB");
    decided(
        &up.replace("2.0", "2.1"),
        false,
        "rails: 31.0 at 16 KiB, 64.0 MB/s at 32 KiB",
    );
    let dip = r#"dip = { of = "bw", curve = "rails", from = 4096, to = 16384, deeper = 0.05 }"#;
    decided(dip, true, "rails falls by 6.1 % from 12 KiB to 16 KiB");
    decided(&dip.replace("rails", "fdr"), false, "fdr does not fall");
    let smaller =
        r#"smaller-dip = { of = "bw", curve = "fdr", than = "rails", from = 4096, to = 16384 }"#;
    decided(
        smaller,
        true,
        "fdr does not fall; rails falls by 6.1 % from 12 KiB to 16 KiB",
    );
}

#[test]
fn values_and_peaks() {
    let value = r#"value = { of = "latency", curve = "rails", at = 4096, published = 5.5 }"#;
    decided(value, true, "5.00 µs (-9.1 %)");
    decided(&value.replace("5.5", "5.6"), false, "5.00 µs (-10.7 %)");
    let share =
        r#"peak-share = { of = "bw", curve = "rails", peak = "fdr", at = 8192, above = 0.5 }"#;
    decided(share, true, "rails at 8 KiB: 53 % of fdr's highest");
    decided(
        &share.replace("0.5", "0.6"),
        false,
        "rails at 8 KiB: 53 % of fdr's highest",
    );
    let peaks = r#"peak-ratio = { of = "bw", curve = "fdr", over = "rails", below = 0.95 }"#;
    decided(peaks, true, "fdr / rails, highest: 0.938");
    let any = r#"any-above = { of = "bw", curve = "fdr", over = "write-bw" }"#;
    decided(any, true, "fdr, bw / write-bw: at most 1.463, at 32 KiB");
    decided(&any.replace("\"fdr\"", "\"rails\""), false, "not measured");
}

#[test]
fn a_curve_can_stand_for_another() {
    let down = check(r#"step-down = { of = "latency", curve = "rails", at = 16384 }"#);
    let changed = down.with("rails", "fdr").unwrap();
    assert!(decide(&down).holds && !decide(&changed).holds);
    assert!(down.with("fdr", "rails").is_none());
}

#[test]
fn figures_are_compared_in_the_unit_of_the_publication() {
    let swept =
        r#"swept = { of = "sent", curve = "fdr", at = "ud", published = 29.0, unit = "Gb/s" }"#;
    decided(swept, true, "30.0 Gb/s (+3.4 %)");
    let figure = decide(&check(swept)).figure.unwrap();
    assert_eq!((figure.published, figure.unit.as_str()), (29.0, "Gb/s"));
    decided(&swept.replace("Gb/s", "us"), false, "not measured");
    let peak = r#"value = { of = "bw", curve = "rails", at = "peak", published = 64.0 }"#;
    decided(peak, true, "64.0 MB/s (+0.0 %)");
    let quotient =
        r#"quotient = { of = "bw", curve = "fdr", over = "rails", at = 4096, published = 1.1 }"#;
    decided(quotient, false, "1.33 x (+21.2 %)");
    // At 32 KiB the quotient is 60 / 64. Within a tenth of 1, gains are compared instead of
    // quotients.
    let gain = quotient.replace("1.1 }", "1.08 }").replace("4096", "32768");
    decided(&gain, false, "-6.25 % (-178.1 %)");
    decided(&gain.replace("1.08", "0.94"), true, "-6.25 % (+4.2 %)");
    let difference = r#"difference = { of = "latency", curve = "fdr", over = "rails", at = 8192, published = 0.5 }"#;
    decided(difference, true, "0.500 µs (+0.0 %)");
}

#[test]
fn plateaus_and_half_values() {
    let plateau = r#"plateau = { of = "chunk", curve = "fdr", within = 0.02, published = 2048 }"#;
    decided(plateau, true, "2048 B (+0.0 %)");
    decided(
        &plateau.replace("0.02", "0.001"),
        false,
        "4096 B (+100.0 %)",
    );
    let half = r#"half = { of = "bw", curve = "rails", published = 7000 }"#;
    decided(half, false, "8192 B (+17.0 %)");
    decided(&half.replace("7000", "8000"), true, "8192 B (+2.4 %)");
}

#[test]
fn swept_values_and_other_measurements() {
    let ratio = r#"swept-ratio = { of = "sent", curve = "fdr", at = "ud", over = "sent", than = "rc", above = 1.2 }"#;
    decided(ratio, true, "sent ud / sent rc: 1.250");
    decided(
        &ratio.replace("1.2 ", "1.3 "),
        false,
        "sent ud / sent rc: 1.250",
    );
    decided(&ratio.replace("\"ud\"", "\"xrc\""), false, "not measured");
    let spread = r#"spread = { of = "chunk", curve = "fdr", above = 1.2 }"#;
    decided(spread, true, "chunk: 80.0 to 100 MB/s");
    decided(
        &spread.replace("1.2", "1.3"),
        false,
        "chunk: 80.0 to 100 MB/s",
    );
    let between = r#"between = { of = "bw", over = "write-bw", curve = "fdr", from = 4096, to = 8192, above = 0.9 }"#;
    decided(
        between,
        true,
        "bw / write-bw 0.976 at 4 KiB to 1.220 at 8 KiB",
    );
    let flight = r#"in-flight = { of = "bw", latency = "latency", curve = "rails", at = 8192, above = 0.02 }"#;
    decided(flight, true, "rails: 0.0 messages of 8 KiB in flight");
}

#[test]
fn differences_widen_and_packets_make_steps() {
    let widens = r#"widens = { of = "latency", curve = "fdr", over = "rails", at = 16384 }"#;
    decided(
        widens,
        true,
        "difference up to 16 KiB: at most 1.00 µs at 16 KiB, above: at least 3.00 µs at 32 KiB",
    );
    decided(
        &widens.replace("16384", "8192"),
        false,
        "difference up to 8 KiB: at most 1.00 µs at 4 KiB, above: at least 1.00 µs at 12 KiB",
    );
    let steps = r#"steps = { of = "bw", curve = "rails", packet = 4096, deeper = 0.05 }"#;
    decided(steps, true, "rails falls by 6.1 % from 12 KiB to 16 KiB");
    decided(&steps.replace("4096", "8192"), false, "rails does not fall");
}

#[test]
fn values_of_the_catalogue() {
    let lanes = r#"catalogue = { system = "r620-fdr", key = "hca.lanes", published = 8.0, unit = "lanes" }"#;
    decided(lanes, true, "8.00 lanes (+0.0 %)");
    let bus = r#"catalogue = { system = "r620-fdr", key = "hca.bus", is = "pcie-2" }"#;
    decided(bus, false, "r620-fdr: hca.bus pcie-3");
    decided(&bus.replace("hca.bus", "hca.colour"), false, "not measured");
}
