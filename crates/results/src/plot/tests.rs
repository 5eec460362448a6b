use super::*;

fn latency() -> Panel {
    let series = |name: &str, factor: f64| Series {
        name: name.into(),
        points: (0..=22)
            .map(|bits| f64::from(1 << bits))
            .map(|size| (size, (0.2 + size / 1e4) * factor))
            .collect(),
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

fn drawn(panel: Panel, name: &str) -> Vec<u8> {
    let file = std::env::temp_dir().join(format!("plot-{}-{name}", std::process::id()));
    draw(&[panel], &file).unwrap();
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
    assert_eq!(svg.matches("<circle").count(), 2 * 23);
}

/// Without letters, the strip of the title would be white.
#[test]
fn a_png_has_letters_and_both_colours() {
    let png = drawn(latency(), "a.png");
    let image = image::load_from_memory(&png).unwrap().to_rgb8();
    assert_eq!(image.dimensions(), (PANEL.0 * PIXELS, PANEL.1 * PIXELS));
    let dark = |x, y| image.get_pixel(x, y).0.iter().all(|&part| part < 128);
    let title = (0..image.width()).flat_map(|x| (0..60).map(move |y| (x, y)));
    assert!(title.filter(|&(x, y)| dark(x, y)).count() > 100, "no title");
    for RGBColor(r, g, b) in [COLOURS[0], COLOURS[1]] {
        assert!(image.pixels().filter(|pixel| pixel.0 == [r, g, b]).count() > 500);
    }
}

#[test]
fn one_number_each_becomes_bars() {
    let one = |name: &str, value| Series {
        name: name.into(),
        points: vec![(0.0, value)],
    };
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
fn ticks_are_few_and_round() {
    assert_eq!(doublings(0.0, 4.0), [0.0, 1.0, 2.0, 3.0, 4.0]);
    assert_eq!(doublings(0.0, 22.0).len(), 12);
    let labels: Vec<String> = decades(-0.7, 1.1)
        .iter()
        .map(|y| plain(10f64.powf(*y)))
        .collect();
    assert_eq!(labels, ["0.2", "0.5", "1", "2", "5", "10"]);
    assert_eq!(plain(20_000.0), "20000");
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
    let RGBColor(r, g, b) = SHADE;
    let shade = format!("#{r:02X}{g:02X}{b:02X}");
    assert_eq!(svg.matches(&shade).count(), 3, "two bands and an entry");
}

#[test]
fn linear_axes_have_round_ticks_from_0() {
    assert_eq!(
        steps(6800.0),
        [0.0, 1000.0, 2000.0, 3000.0, 4000.0, 5000.0, 6000.0]
    );
    assert_eq!(steps(1.1), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]);
}
