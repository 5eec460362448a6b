use bench::modelled::Curve;

use super::*;

/// Curves at 4, 8, 12, 16 and 32 KiB.
fn found() -> Curves {
    let curve = |label: &str, values: [f64; 5]| Curve {
        label: label.into(),
        points: [4, 8, 12, 16, 32]
            .map(|kib| kib << 10)
            .into_iter()
            .zip(values)
            .collect(),
    };
    let mut found = Curves::default();
    let bandwidth = vec![
        curve("rails", [30.0, 32.0, 33.0, 31.0, 64.0]),
        curve("fdr", [40.0, 50.0, 55.0, 56.0, 60.0]),
        curve("late", [40.0, 50.0, 55.0, 56.0, 65.0]),
    ];
    found
        .0
        .insert(Benchmark::WriteBw, vec![curve("fdr", [41.0; 5])]);
    found.0.insert(Benchmark::Bw, bandwidth);
    let latency = vec![
        curve("rails", [5.0, 7.0, 9.0, 10.0, 8.0]),
        curve("fdr", [6.0, 7.5, 8.0, 9.0, 11.0]),
    ];
    found.0.insert(Benchmark::Latency, latency);
    found
}

fn check(text: &str) -> Check {
    #[derive(Deserialize)]
    struct Only {
        check: Check,
    }
    let only: Only = toml::from_str(&format!("check = {{ {text} }}")).unwrap();
    only.check
}

#[track_caller]
fn decided(text: &str, holds: bool, measured: &str) {
    let finding = check(text).decide(&found());
    let expected = Finding {
        holds,
        measured: measured.into(),
    };
    assert_eq!(finding, expected);
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
    decided(down, true, "rails: 10.0 at 16 KiB, 8.00 us at 32 KiB");
    decided(
        &down.replace("rails", "fdr"),
        false,
        "fdr: 9.00 at 16 KiB, 11.0 us at 32 KiB",
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
    decided(value, true, "5.00 us (-9.1 %)");
    decided(&value.replace("5.5", "5.6"), false, "5.00 us (-10.7 %)");
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
    assert!(down.decide(&found()).holds && !changed.decide(&found()).holds);
    assert!(down.with("fdr", "rails").is_none());
}
