//! Writes a page with every kind of block, and names that are hard to show: the page of the tests
//! in a browser (`tests/report`).
//!
//!     cargo run -p results --example gallery -- FILE.html

use std::path::Path;

use anyhow::{Context, Result};
use fabric::catalogue::Catalogue;
use results::report::{
    Axis, Block, Made, Page, Palette, Plot, Section, Series, SeriesKind, Shade, Strip, StripRange,
    Strips, Table, assumptions,
};

/// The name of a program that would end a script and begin another one if it were not escaped.
const PROGRAM: &str = "./a</script><script>document.title='broken'</script>&<b>.x";

fn main() -> Result<()> {
    let file = std::env::args()
        .nth(1)
        .context("usage: gallery FILE.html")?;
    let catalogue = Catalogue::builtin();
    let machines = ["qdr", "fdr"].map(|name| -> Result<_> {
        let sheet = catalogue
            .sheet("system", name)
            .map_err(|why| anyhow::anyhow!("{why}"))?;
        Ok((name.to_owned(), sheet.uncertain()))
    });
    let machines = machines.into_iter().collect::<Result<Vec<_>>>()?;
    let page = Page {
        title: format!("Every kind of block, for {PROGRAM}"),
        answer: "Take the first of two answers".into(),
        certainty: "fairly sure".into(),
        lead: "A page for tests: made values, no measurement.".into(),
        sections: vec![
            Section::new("Curves", vec![curves().into(), generations().into()]),
            Section::new(
                "Bars",
                vec![
                    bars().into(),
                    groups().into(),
                    many().into(),
                    stacked().into(),
                ],
            ),
            Section::new("Strips", vec![strips().into()]),
            Section::new("Tables", vec![Block::Text(PROGRAM.into()), table().into()]),
            assumptions(&machines),
        ],
        made: Some(Made {
            command: format!("gallery '{PROGRAM}'"),
            date: Some("2026-01-31".into()),
            ..Made::here()
        }),
    };
    page.write(Path::new(&file))
}

/// Points whose sizes are powers of two, in bytes.
fn over_sizes(last: u32, value: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
    let sizes = (0..=last).map(|power| f64::from(power).exp2());
    sizes.map(|size| (size, value(size))).collect()
}

/// A plot with a curve and its band, a curve that the first one covers, published marks, and shaded
/// ranges.
fn curves() -> Plot {
    let time = |size: f64| 1.2 + size / 3000.0;
    let measured = over_sizes(22, time);
    let band = measured.iter().map(|&(x, y)| (x, y * 0.9, y * 1.15));
    Plot {
        title: format!("Latency of {PROGRAM}"),
        x: Axis::sizes("message size"),
        y: Axis::logarithmic("latency", "µs"),
        series: vec![
            Series::line(PROGRAM, measured.clone()).with_band(band.collect()),
            Series::line("an equal curve", measured.clone()),
            Series::marks("published", vec![(8.0, 1.3), (4096.0, 2.4), (1e6, 350.0)])
                .with_colour_of(PROGRAM),
        ],
        shades: vec![
            Shade {
                from: 2048.0,
                to: 16384.0,
                name: "another machine is better".into(),
            },
            Shade {
                from: 65536.0,
                to: 98304.0,
                name: "another machine is better".into(),
            },
        ],
        caption: "Shaded: made up. The marks are published values, the curves are predictions."
            .into(),
        ..Plot::default()
    }
}

/// A plot of ordered series with long names.
fn generations() -> Plot {
    let names = ["SDR", "DDR", "QDR", "FDR", "EDR", "HDR", "NDR"];
    let curve = |(at, name): (usize, &str)| {
        let peak = 900.0 * 1.8f64.powi(at as i32);
        let points = over_sizes(22, |size| size / (size / peak + 1.0));
        Series::line(
            format!("{name}, one rail, switched, reliable connection"),
            points,
        )
    };
    Plot {
        title: "Bandwidth of generations".into(),
        x: Axis::sizes("message size"),
        y: Axis::linear("bandwidth", "MB/s"),
        series: names.into_iter().enumerate().map(curve).collect(),
        palette: Palette::Ordered,
        ..Plot::default()
    }
}

/// A plot with one bar for each machine.
fn bars() -> Plot {
    let names = ["qdr", "2xqdr", "fdr", "edr"];
    let bar =
        |(at, name): (usize, &&str)| Series::bars(*name, vec![(at as f64, 4.0 - at as f64 * 0.7)]);
    Plot {
        title: "Time by machine".into(),
        x: Axis::named("machine", names.map(String::from).to_vec()),
        y: Axis::linear("time", "s"),
        series: names.iter().enumerate().map(bar).collect(),
        ..Plot::default()
    }
}

/// Strips with ranges of sizes, one of them too narrow for a name.
fn strips() -> Strips {
    let range = |from, to, better| StripRange {
        positions: [from, to],
        better,
        note: "up to 31 %".into(),
    };
    Strips {
        title: "Which one is better".into(),
        across: "message size".into(),
        positions: (0..23).map(|power| format!("2^{power}")).collect(),
        sides: ["2 x QDR".into(), PROGRAM.into()],
        rows: vec![
            Strip {
                name: "latency".into(),
                ranges: vec![
                    range(0, 9, Some(0)),
                    range(10, 10, None),
                    range(11, 22, Some(1)),
                ],
            },
            Strip {
                name: format!("bandwidth of {PROGRAM}"),
                ranges: vec![range(2, 12, None), range(13, 22, Some(0))],
            },
        ],
        caption: "Made values.".into(),
    }
}

/// A plot with a group of bars for each name of the axis.
fn groups() -> Plot {
    let names = ["Allreduce", "Bcast", "Sendrecv"].map(String::from);
    let series = |name: &str, factor: f64| Series {
        kind: SeriesKind::Bars,
        ..Series::line(
            name,
            (0..3)
                .map(|at| (f64::from(at), factor * f64::from(3 - at)))
                .collect(),
        )
    };
    Plot {
        title: "Time by procedure".into(),
        x: Axis::named("procedure", names.to_vec()),
        y: Axis::linear("time", "s"),
        series: vec![series("qdr", 1.0), series("fdr", 0.7)],
        ..Plot::default()
    }
}

/// A plot of stacked bars.
fn stacked() -> Plot {
    let part = |name: &str, times: [f64; 3]| {
        let points = times.into_iter().enumerate();
        Series::stacked(name, points.map(|(at, time)| (at as f64, time)).collect())
    };
    Plot {
        title: "Time by what it is spent on".into(),
        x: Axis::named(
            "machine",
            ["qdr", "2xqdr", "fdr"].map(String::from).to_vec(),
        ),
        y: Axis::linear("time", "ms"),
        series: vec![
            part("computing", [1.0, 1.0, 1.0]),
            part("latency", [0.5, 0.6, 0.4]),
            part("bandwidth", [0.9, 0.3, 0.5]),
        ],
        ..Plot::default()
    }
}

/// A plot with more bars, and longer names, than fit on a narrow page.
fn many() -> Plot {
    let names = (1..=16).map(|at| format!("a machine of many words, number {at}"));
    let series = (1..=2).map(|series| {
        let point = |at: i32| (f64::from(at), f64::from(series * (at - 4)) / 7.0);
        Series::bars(format!("series {series}"), (0..16).map(point).collect())
    });
    Plot {
        title: "Change of the time by machine".into(),
        x: Axis::named("machine", names.collect()),
        y: Axis::linear("change", "s"),
        series: series.collect(),
        ..Plot::default()
    }
}

fn table() -> Table {
    let header = [
        "claim",
        "what it says",
        "published",
        "predicted",
        "error",
        "verdict",
    ];
    let rows = (1..=6).map(|number| {
        let cells = [
            format!("A0{number}"),
            "RDMA write, long messages: FDR has the higher bandwidth, between 4 and 32 KiB".into(),
            "6400".into(),
            "6351".into(),
            "-0.8 %".into(),
            "holds".into(),
        ];
        cells.to_vec()
    });
    Table {
        right_aligned: vec![2, 3, 4],
        ..Table::of_text(header.map(String::from).to_vec(), rows.collect())
    }
}
