use super::super::{Across, Axis, Band, Panel, Series, Values};
use super::*;
use crate::style::{Colour, Ground, Palette};
use crate::unit::Unit;

fn latency() -> Panel {
    let series = |name: &str, factor: f64| {
        let sizes = (0..=22).map(|bits| f64::from(1 << bits));
        let point = |size| (size, (0.2 + size / 1e4) * factor);
        Series::line(name, sizes.map(point).collect())
    };
    Panel {
        title: "latency, 2 ranks".into(),
        unit: Unit::Microseconds,
        across: Across::Sizes,
        quantity: "message size".into(),
        values: Values::Logarithmic,
        bands: Vec::new(),
        series: vec![series("own", 1.0), series("peer", 2.0)],
    }
}

fn drawn<P>(plot: P, name: &str) -> Vec<u8>
where
    for<'a> &'a P: Into<Plot>,
{
    let file = std::env::temp_dir().join(format!("plot-{}-{name}", std::process::id()));
    draw(&[plot], &file).unwrap();
    let bytes = std::fs::read(&file).unwrap();
    std::fs::remove_file(file).unwrap();
    bytes
}

#[test]
fn an_svg_names_axes_units_ticks_and_libraries() {
    let svg = String::from_utf8(drawn(latency(), "a.svg")).unwrap();
    let texts = [
        "latency, 2 ranks",
        "message size",
        "time, µs",
        "1 B",
        "4 KiB",
        "4 MiB",
        "own",
        "peer",
    ];
    for text in texts {
        assert!(svg.contains(&format!("\n{text}\n")), "{text} is missing");
    }
    assert!(svg.trim_end().ends_with("</svg>"));
    // The marks of the first series, and its entry in the legend.
    assert_eq!(svg.matches("<circle").count(), 23 + 1);
}

/// Without letters, the area of the title would be white.
#[test]
fn a_png_has_letters_and_both_colours() {
    let png = drawn(latency(), "a.png");
    let mut image = png::Decoder::new(&png[..]).read_info().unwrap();
    let mut bytes = vec![0; image.output_buffer_size()];
    let (width, height) = image.info().size();
    image.next_frame(&mut bytes).unwrap();
    let expected = SIZE.1 + head_height(&Plot::from(&latency()));
    assert_eq!((width, height), (SIZE.0 * PIXELS, expected * PIXELS));
    let (pixels, _) = bytes.as_chunks::<RGB>();
    let title = &pixels[..60 * width as usize];
    let dark = |pixel: &&[u8; RGB]| pixel.iter().all(|&part| part < 128);
    assert!(title.iter().filter(dark).count() > 100, "no title");
    for at in 0..2 {
        let Colour(r, g, b) = Palette::Distinct.colour(at, 2, Ground::Light);
        assert!(pixels.iter().filter(|pixel| **pixel == [r, g, b]).count() > 500);
    }
}

#[test]
fn one_number_each_becomes_bars() {
    let one = |name: &str, value| Series::line(name, vec![(0.0, value)]);
    let panel = Panel {
        across: Across::Nothing,
        series: vec![one("own", 12.0), one("peer", 120.0)],
        ..latency()
    };
    let svg = String::from_utf8(drawn(panel, "b.svg")).unwrap();
    assert!(svg.contains("\nown\n") && svg.contains("\n120\n"), "{svg}");
}

#[test]
fn other_endings_are_refused_and_folders_that_are_not_there_named() {
    assert!(ImageFormat::of(Path::new("a.pdf")).is_err());
    let error = draw(&[latency()], Path::new("/nonexistent/a.png")).unwrap_err();
    assert!(format!("{error:#}").contains("/nonexistent/a.png"));
}

#[test]
fn bands_are_shaded_and_named_once() {
    let band = |from, to| Band {
        from,
        to,
        name: "peer wins".into(),
    };
    let panel = Panel {
        bands: vec![band(4.0, 64.0), band(1024.0, 4096.0)],
        values: Values::Linear,
        ..latency()
    };
    let svg = String::from_utf8(drawn(panel, "e.svg")).unwrap();
    assert_eq!(svg.matches("\npeer wins\n").count(), 1);
    let RGBColor(r, g, b) = super::super::pen::SHADE;
    let shade = format!("#{r:02X}{g:02X}{b:02X}");
    assert_eq!(svg.matches(&shade).count(), 3, "two bands and an entry");
}

#[test]
fn a_band_a_caption_and_hollow_marks_are_drawn() {
    let points = vec![(8.0, 2.0), (16.0, 3.0)];
    let band = vec![(8.0, 1.5, 2.5), (16.0, 2.5, 3.5)];
    let plot = Plot {
        x: Axis::sizes("size"),
        y: Axis::linear("time", "µs"),
        series: vec![
            Series::line("measured", points.clone()).with_band(band),
            Series::marks("published", points).with_colour_of("measured"),
        ],
        caption: "qdr, fishplate 0.1.0, `fishplate bench latency`. ".repeat(4),
        ..Plot::default()
    };
    let height = SIZE.1 + head_height(&plot) + 2 * LINE;
    let svg = String::from_utf8(drawn(plot, "f.svg")).unwrap();
    assert_eq!(svg.matches("opacity=\"0.2\"").count(), 1, "{svg}");
    assert!(svg.contains(&format!("height=\"{height}\"")));
    assert!(!svg.contains("#D55E00"), "a colour of its own");
}

#[test]
fn a_long_title_has_lines_and_the_legend_stands_above_the_axes() {
    let panel = Panel {
        title: "a title of many words ".repeat(6),
        ..latency()
    };
    let plot = Plot::from(&panel);
    let one_line = head_height(&Plot::from(&latency()));
    let [low, high] = [head_height(&plot) - one_line, head_height(&plot)];
    assert!(low > 0, "as high as a short title: {high}");
    let svg = String::from_utf8(drawn(panel, "h.svg")).unwrap();
    let entry = svg.split("<text ").find(|text| text.contains("\npeer\n"));
    let top = entry.unwrap().split("y=\"").nth(1).unwrap();
    let top: u32 = top.split('"').next().unwrap().parse().unwrap();
    assert!(
        top < high,
        "an entry at {top}, within the axes from {high} on"
    );
}

/// Of two equal curves, the later one has gaps, and marks of another form.
#[test]
fn a_series_shows_through_the_one_above_it() {
    let curve = |name: &str| Series::line(name, vec![(1.0, 2.0), (1024.0, 3.0)]);
    let plot = |series| Plot {
        x: Axis::sizes("size"),
        y: Axis::linear("time", "µs"),
        series,
        ..Plot::default()
    };
    let paths = |plot: Plot| {
        let svg = String::from_utf8(drawn(plot, "g.svg")).unwrap();
        svg.matches("stroke=\"#D55E00\"").count()
    };
    assert!(paths(plot(vec![curve("a"), curve("b")])) > 20, "dashes");
}
