//! A plot as plotly.js takes it: traces and a layout in JSON. Colours are absent: the page's script
//! adds those of the legend, which follow the light or dark theme.

use results::plot::{Axis, Plot, Scale, Series, SeriesKind};
use results::style::{Dash, Mark};
use results::table::distinct;
use serde_json::{Value, json};

use crate::html::escaped;

/// The width of a line.
const LINE: u32 = 2;

/// The traces and the layout of a plot. The `meta` of a trace is the number of its series.
pub(crate) fn figure(plot: &Plot) -> Value {
    let series = || plot.series.iter().enumerate();
    let bands = series().filter_map(|(at, series)| band(plot, at, series));
    // Bands lie below all lines, and marks above them.
    let lines = series().filter(|(_, series)| series.kind != SeriesKind::Marks);
    let marks = series().filter(|(_, series)| series.kind == SeriesKind::Marks);
    let traces = lines
        .chain(marks)
        .map(|(at, series)| trace(plot, at, series));
    let data: Vec<Value> = bands.chain(traces).collect();
    json!({
        "data": data,
        "layout": {
            "xaxis": across(plot),
            "yaxis": upward(plot),
            "barmode": if have_own_places(plot) { "overlay" } else { "group" },
            "shapes": plot.shades.iter().map(|shade| json!({
                "type": "rect", "layer": "below", "yref": "paper", "y0": 0, "y1": 1,
                "x0": shade.from, "x1": shade.to, "line": {"width": 0},
            })).collect::<Vec<_>>(),
        },
    })
}

/// Whether no position has bars of two series.
fn have_own_places(plot: &Plot) -> bool {
    let bars = plot
        .series
        .iter()
        .filter(|series| series.kind == SeriesKind::Bars);
    let places: Vec<f64> = bars
        .flat_map(|series| &series.points)
        .map(|point| point.0)
        .collect();
    distinct(places.iter()).len() == places.len()
}

fn trace(plot: &Plot, at: usize, series: &Series) -> Value {
    let points = plot.placed(series);
    let texts = points
        .iter()
        .map(|&(_, value)| escaped(&plot.y.text(value)));
    let mut trace = json!({
        "type": "scatter",
        "meta": at,
        "name": escaped(&series.name),
        "x": points.iter().map(|point| point.0).collect::<Vec<_>>(),
        "y": points.iter().map(|point| point.1).collect::<Vec<_>>(),
        "customdata": texts.collect::<Vec<_>>(),
        "hovertemplate": "%{customdata}",
    });
    match series.kind {
        SeriesKind::Line => {
            trace["mode"] = json!("lines+markers");
            trace["line"] = json!({"width": LINE, "dash": dash(Dash::of(at), LINE)});
            trace["marker"] = match Mark::is_hollow(at) {
                true => {
                    json!({"size": 8, "symbol": format!("{}-open", symbol(Mark::of(at))), "line": {"width": 1.5}})
                }
                false => json!({"size": 7, "symbol": symbol(Mark::of(at))}),
            };
        }
        SeriesKind::Marks => {
            trace["mode"] = json!("markers");
            trace["marker"] = json!({"size": 12, "symbol": format!("{}-open", symbol(Mark::of(at))), "line": {"width": 2}});
        }
        SeriesKind::Bars => {
            trace["type"] = json!("bar");
            trace["text"] = trace["customdata"].clone();
            trace["textposition"] = json!("outside");
            trace["textangle"] = json!(0);
            trace["cliponaxis"] = json!(false);
        }
    }
    trace
}

/// The band of a series as an area without an outline.
fn band(plot: &Plot, at: usize, series: &Series) -> Option<Value> {
    let band = plot.placed_band(series);
    let there = band.iter().map(|&(x, least, _)| (x, least));
    let back = band.iter().rev().map(|&(x, _, most)| (x, most));
    let outline: Vec<(f64, f64)> = there.chain(back).collect();
    (!outline.is_empty()).then(|| {
        json!({
            "type": "scatter",
            "mode": "lines",
            "meta": at,
            "x": outline.iter().map(|point| point.0).collect::<Vec<_>>(),
            "y": outline.iter().map(|point| point.1).collect::<Vec<_>>(),
            "fill": "toself",
            "line": {"width": 0},
            "hoverinfo": "skip",
        })
    })
}

/// Dashes of a line of this width.
fn dash(dash: Dash, width: u32) -> String {
    match dash.lengths() {
        None => "solid".into(),
        Some((dash, gap)) => format!("{}px,{}px", dash * width, gap * width),
    }
}

fn symbol(mark: Mark) -> &'static str {
    match mark {
        Mark::Circle => "circle",
        Mark::Square => "square",
        Mark::Diamond => "diamond",
        Mark::Triangle => "triangle-up",
        Mark::Wedge => "triangle-down",
        Mark::Plus => "cross-thin",
        Mark::Cross => "x-thin",
    }
}

/// The horizontal axis.
fn across(plot: &Plot) -> Value {
    let axis = &plot.x;
    let mut layout = scaled(axis, &plot.across());
    layout["title"] = json!({"text": escaped(&axis.title())});
    if axis.has_sizes() {
        // The text above the values of all series at one position.
        let points = plot.series.iter().flat_map(|series| plot.placed(series));
        let name = |(x, _): (f64, f64)| (format!("{x:.0}"), json!(escaped(&axis.text(x))));
        layout["labelalias"] = points.map(name).collect();
        layout["hoverformat"] = json!(".0f");
    }
    layout
}

/// The vertical axis.
fn upward(plot: &Plot) -> Value {
    scaled(&plot.y, &plot.upward())
}

fn scaled(axis: &Axis, scale: &Scale) -> Value {
    let texts = scale.ticks.iter().map(|&tick| escaped(&axis.tick(tick)));
    json!({
        "type": if scale.is_logarithmic { "log" } else { "linear" },
        "range": [scale.ends.0, scale.ends.1],
        "tickmode": "array",
        "tickvals": scale.ticks,
        "ticktext": texts.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn bands_lie_below_lines_and_marks_above() {
        let figure = figure(&plot(&[(8.0, 1.6), (3072.0, 3.0)]));
        let modes: Vec<&str> = figure["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|trace| trace["mode"].as_str().unwrap())
            .collect();
        assert_eq!(modes, ["lines", "lines+markers", "markers"]);
        let series: Vec<u64> = figure["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|trace| trace["meta"].as_u64().unwrap())
            .collect();
        assert_eq!(series, [1, 1, 0]);
    }

    #[test]
    fn sizes_are_labelled_as_sizes() {
        let figure = figure(&plot(&[(8.0, 1.6), (3072.0, 3.0)]));
        let axis = &figure["layout"]["xaxis"];
        let labels = [
            "8 B", "16 B", "32 B", "64 B", "128 B", "256 B", "512 B", "1 KiB", "2 KiB",
        ];
        assert_eq!(axis["ticktext"], json!(labels));
        assert_eq!(axis["labelalias"]["3072"], "3 KiB");
        assert_eq!(figure["data"][1]["customdata"], json!(["1.6 µs", "3 µs"]));
    }

    #[test]
    fn a_single_size_has_labels_beside_it() {
        let figure = figure(&plot(&[(8.0, 1.6)]));
        assert_eq!(
            figure["layout"]["xaxis"]["ticktext"],
            json!(["4 B", "8 B", "16 B"])
        );
    }
}
