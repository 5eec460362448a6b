use super::*;
use crate::report::Axis;

fn drawn(plot: &Plot) -> String {
    let mut out = Markup::default();
    figure(&mut out, plot, 0);
    out.finish()
}

fn plot(points: &[(f64, f64)]) -> Plot {
    Plot {
        x: Axis::sizes("message size"),
        y: Axis::logarithmic("latency", "µs"),
        series: vec![
            Series::marks("published", points.to_vec()),
            Series::line("a", points.to_vec()).with_band(vec![(8.0, 1.0, 2.0)]),
        ],
        ..Plot::default()
    }
}

/// The labels of the horizontal axis.
fn labels(svg: &str) -> Vec<&str> {
    let ticks = svg.split("<svg class=\"xtick").skip(1);
    let text = |tick: &'_ str| -> usize { tick.find("<text y=\"18\">").unwrap() + 13 };
    ticks
        .map(|tick| tick[text(tick)..].split('<').next().unwrap())
        .collect()
}

#[test]
fn bands_lie_below_lines_and_marks_above() {
    let svg = drawn(&plot(&[(8.0, 1.6), (3072.0, 3.0)]));
    let groups = svg.split("<g class=\"").skip(1);
    let groups: Vec<(&str, &str)> = groups
        .map(|group| {
            let mut words = group.split('"');
            (words.next().unwrap(), words.nth(1).unwrap())
        })
        .collect();
    assert_eq!(groups, [("band", "1"), ("line", "1"), ("points", "0")]);
}

#[test]
fn sizes_are_labelled_as_sizes() {
    let svg = drawn(&plot(&[(8.0, 1.6), (3072.0, 3.0)]));
    let expected = [
        "8 B", "16 B", "32 B", "64 B", "128 B", "256 B", "512 B", "1 KiB", "2 KiB",
    ];
    assert_eq!(labels(&svg), expected);
    for title in ["a\n8 B\n1.6 µs", "published\n3 KiB\n3 µs"] {
        let title = format!("<title>{title}</title>");
        assert_eq!(svg.matches(&title).count(), 1, "{title}");
    }
}

#[test]
fn a_single_size_has_labels_beside_it() {
    let svg = drawn(&plot(&[(8.0, 1.6)]));
    assert_eq!(labels(&svg), ["4 B", "8 B", "16 B"]);
    assert!(!svg.contains("<g class=\"line\" data-series=\"1\" style=\"color:var(--s1)\"><svg"));
}

#[test]
fn a_curve_ends_at_its_first_and_last_point() {
    let plot = Plot {
        x: Axis::linear("ranks", ""),
        y: Axis::linear("time", "s"),
        series: vec![Series::line("a", vec![(0.0, 100.0), (100.0, 50.0)])],
        ..Plot::default()
    };
    let svg = drawn(&plot);
    // The margin is 2 % beside the points, and 6 % above the highest point.
    assert!(svg.contains("<path d=\"M1.92 5.66L98.08 52.83\""), "{svg}");
}

#[test]
fn names_that_do_not_fit_are_slanted() {
    let names = |count: usize| (0..count).map(|at| format!("machine {at}")).collect();
    let plot = |count| Plot {
        x: Axis::named("machine", names(count)),
        series: vec![Series::bars("a", vec![(0.0, 1.0)])],
        ..Plot::default()
    };
    let class = |count| {
        let svg = drawn(&plot(count));
        let from = svg.find("class=\"plot").unwrap() + 7;
        svg[from..].split('"').next().unwrap().to_owned()
    };
    assert_eq!(class(2), "plot");
    assert_eq!(class(4), "plot slant-n");
    assert_eq!(class(20), "plot slant-n slant-m slant-w");
    let svg = drawn(&plot(4));
    assert!(!svg.contains("xtick n"), "{svg}");
}

#[test]
fn a_long_name_keeps_both_ends() {
    let name = |number| format!("a machine of many words, number {number}");
    assert_eq!(shortened(name(7)), "a machine … number 7");
    assert_ne!(shortened(name(7)), shortened(name(8)));
    assert_eq!(
        shortened("twenty letters, exact".into()).chars().count(),
        20
    );
    assert_eq!(
        shortened("twenty letters, also".into()),
        "twenty letters, also"
    );
}

#[test]
fn all_bars_have_their_values_or_none() {
    let plot = Plot {
        x: Axis::named("machine", vec!["a".into(); 8]),
        series: vec![Series::bars(
            "a",
            (0..8)
                .map(|at| (f64::from(at), 1.5 * f64::from(at)))
                .collect(),
        )],
        ..Plot::default()
    };
    let svg = drawn(&plot);
    assert_eq!(svg.matches("<text class=\"value n\"").count(), 8, "{svg}");
}

#[test]
fn bars_of_one_place_stand_beside_each_other() {
    let plot = Plot {
        x: Axis::named("machine", vec!["qdr".into()]),
        y: Axis::linear("time", "s"),
        series: vec![
            Series::bars("a", vec![(0.0, 100.0)]),
            Series::bars("b", vec![(0.0, 50.0)]),
        ],
        ..Plot::default()
    };
    let svg = drawn(&plot);
    for bar in [
        "<rect x=\"16.67%\" y=\"13.04%\" width=\"33.33%\" height=\"86.96%\">",
        "<rect x=\"50%\" y=\"56.52%\" width=\"33.33%\" height=\"43.48%\">",
    ] {
        assert!(svg.contains(bar), "{bar} is missing in {svg}");
    }
}
