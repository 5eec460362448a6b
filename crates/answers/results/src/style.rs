//! The colours, dashes and marks of series. Neighbouring series differ in all three, so that they
//! can be distinguished with any colour vision and in black and white.

/// A colour: red, green and blue, each from 0 to 255.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour(pub u8, pub u8, pub u8);

impl Colour {
    /// The colour in the notation of HTML and SVG, such as `#0072b2`.
    pub fn hex(self) -> String {
        format!("#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }
}

/// The colours from which those of a plot's series are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Palette {
    /// Colours that differ much from each other, for series without an order.
    #[default]
    Distinct,
    /// Colours with increasing contrast, for series with an order: generations, numbers of ranks.
    Ordered,
}

/// The background on which a plot is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    /// A white background.
    Light,
    /// An almost black background.
    Dark,
}

/// Colours that are distinct for any colour vision (Okabe and Ito), strongest first; then less
/// distinct ones, for plots of up to twelve shares of a time.
const ON_LIGHT: [Colour; 12] = [
    Colour(0, 114, 178),
    Colour(213, 94, 0),
    Colour(0, 158, 115),
    Colour(204, 121, 167),
    Colour(230, 159, 0),
    Colour(86, 180, 233),
    Colour(0, 0, 0),
    Colour(240, 228, 66),
    Colour(136, 136, 136),
    Colour(112, 48, 160),
    Colour(122, 72, 36),
    Colour(176, 224, 190),
];

/// The colours of [`ON_LIGHT`], with a lightness for a dark background.
const ON_DARK: [Colour; 12] = [
    Colour(64, 152, 224),
    Colour(242, 125, 52),
    Colour(38, 190, 146),
    Colour(222, 150, 192),
    Colour(242, 190, 64),
    Colour(158, 216, 250),
    Colour(236, 236, 236),
    Colour(252, 244, 130),
    Colour(150, 150, 150),
    Colour(176, 120, 224),
    Colour(186, 126, 84),
    Colour(196, 240, 210),
];

/// The colour scale "viridis" of matplotlib (CC0), at equal distances, from dark to light.
const SCALE: [Colour; 9] = [
    Colour(68, 1, 84),
    Colour(71, 44, 122),
    Colour(59, 81, 139),
    Colour(44, 113, 142),
    Colour(33, 144, 141),
    Colour(39, 173, 129),
    Colour(92, 200, 99),
    Colour(170, 220, 50),
    Colour(253, 231, 37),
];

/// The names of InfiniBand's generations, in the order of their rates.
const GENERATIONS: [&str; 7] = ["sdr", "ddr", "qdr", "fdr", "edr", "hdr", "ndr"];

impl Palette {
    /// The palette for series with these names: ordered if they are three or more generations of
    /// InfiniBand in their order.
    pub fn of_names<'a>(names: impl Iterator<Item = &'a str>) -> Palette {
        let generations: Option<Vec<usize>> = names.map(generation).collect();
        match generations {
            Some(all) if all.len() > 2 && all.is_sorted_by(|one, next| one < next) => {
                Palette::Ordered
            }
            _ => Palette::Distinct,
        }
    }

    /// The colour of series `at`, counted from 0, among `count` series.
    pub fn colour(self, at: usize, count: usize, ground: Ground) -> Colour {
        match (self, ground) {
            (Palette::Distinct, Ground::Light) => ON_LIGHT[at % ON_LIGHT.len()],
            (Palette::Distinct, Ground::Dark) => ON_DARK[at % ON_DARK.len()],
            (Palette::Ordered, _) => {
                // A single series gets the colour of the last one.
                let place = match count {
                    0 | 1 => 1.0,
                    count => at as f64 / (count - 1) as f64,
                };
                // The last series has the most contrast with the background.
                on_scale(match ground {
                    Ground::Light => 0.78 * (1.0 - place),
                    Ground::Dark => 0.3 + 0.7 * place,
                })
            }
        }
    }
}

/// The generation that is a word of `name`, if there is one.
fn generation(name: &str) -> Option<usize> {
    let name = name.to_ascii_lowercase();
    let mut words = name.split(|letter: char| !letter.is_ascii_alphabetic());
    words.find_map(|word| GENERATIONS.iter().position(|known| *known == word))
}

/// The colour at a position from 0 to 1 on the scale of colours.
fn on_scale(place: f64) -> Colour {
    let place = place.clamp(0.0, 1.0) * (SCALE.len() - 1) as f64;
    let below = (place.floor() as usize).min(SCALE.len() - 2);
    let share = place - below as f64;
    let (Colour(r, g, b), Colour(to_r, to_g, to_b)) = (SCALE[below], SCALE[below + 1]);
    let mix = |from: u8, to: u8| {
        (f64::from(from) + share * (f64::from(to) - f64::from(from))).round() as u8
    };
    Colour(mix(r, to_r), mix(g, to_g), mix(b, to_b))
}

/// The pattern of dashes of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dash {
    /// A line without gaps.
    Solid,
    /// Long dashes.
    Dashed,
    /// Dots.
    Dotted,
    /// Short dashes.
    Short,
}

impl Dash {
    /// The dashes of series `at`, counted from 0. A later series is drawn on top of an earlier one,
    /// which is visible through the gaps.
    pub fn of(at: usize) -> Dash {
        [Dash::Solid, Dash::Dashed, Dash::Dotted, Dash::Short][at % 4]
    }

    /// The lengths of a dash and of a gap, in units of the line's width. `None` for a solid line.
    pub fn lengths(self) -> Option<(u32, u32)> {
        match self {
            Dash::Solid => None,
            Dash::Dashed => Some((5, 2)),
            Dash::Dotted => Some((1, 2)),
            Dash::Short => Some((3, 2)),
        }
    }
}

/// The form of the mark at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A disc.
    Circle,
    /// A square.
    Square,
    /// A square that stands on a corner.
    Diamond,
    /// A triangle that points up.
    Triangle,
    /// A triangle that points down.
    Wedge,
    /// Two lines along the axes.
    Plus,
    /// Two diagonal lines.
    Cross,
}

impl Mark {
    /// The mark of series `at`, counted from 0. The number of marks and that of dashes have no
    /// common divisor.
    pub fn of(at: usize) -> Mark {
        const MARKS: [Mark; 7] = [
            Mark::Circle,
            Mark::Square,
            Mark::Triangle,
            Mark::Diamond,
            Mark::Wedge,
            Mark::Plus,
            Mark::Cross,
        ];
        MARKS[at % MARKS.len()]
    }

    /// True if the mark of series `at` is an outline, so that a mark below it is visible.
    pub fn is_hollow(at: usize) -> bool {
        at % 2 == 1
    }

    /// The corners of the mark within a square from -1 to 1, with `y` downward. Empty for a circle
    /// and for marks that consist of lines.
    pub fn corners(self) -> &'static [(f64, f64)] {
        match self {
            Mark::Circle | Mark::Plus | Mark::Cross => &[],
            Mark::Square => &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
            Mark::Diamond => &[(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)],
            Mark::Triangle => &[(0.0, -1.15), (1.15, 0.9), (-1.15, 0.9)],
            Mark::Wedge => &[(0.0, 1.15), (1.15, -0.9), (-1.15, -0.9)],
        }
    }

    /// The lines of the mark within a square from -1 to 1. Empty for marks with an area.
    pub fn lines(self) -> &'static [[(f64, f64); 2]] {
        match self {
            Mark::Plus => &[[(-1.2, 0.0), (1.2, 0.0)], [(0.0, -1.2), (0.0, 1.2)]],
            Mark::Cross => &[[(-1.0, -1.0), (1.0, 1.0)], [(-1.0, 1.0), (1.0, -1.0)]],
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lightness(Colour(r, g, b): Colour) -> f64 {
        0.2126 * f64::from(r) + 0.7152 * f64::from(g) + 0.0722 * f64::from(b)
    }

    #[test]
    fn the_colours_of_twelve_series_differ() {
        for ground in [Ground::Light, Ground::Dark] {
            let all: Vec<_> = (0..12)
                .map(|at| Palette::Distinct.colour(at, 12, ground))
                .collect();
            for (at, one) in all.iter().enumerate() {
                let apart = |other: &Colour| {
                    let parts = [(one.0, other.0), (one.1, other.1), (one.2, other.2)];
                    let most = parts.iter().map(|(a, b)| a.abs_diff(*b)).max();
                    most >= Some(32)
                };
                assert!(all[..at].iter().all(apart), "{one:?}");
            }
        }
    }

    #[test]
    fn generations_ascend_from_weak_to_strong() {
        for count in [2, 5, 9] {
            let on = |ground| -> Vec<f64> {
                let colours = (0..count).map(|at| Palette::Ordered.colour(at, count, ground));
                colours.map(lightness).collect()
            };
            assert!(on(Ground::Light).windows(2).all(|pair| pair[0] > pair[1]));
            assert!(on(Ground::Dark).windows(2).all(|pair| pair[0] < pair[1]));
        }
        assert_eq!(
            Palette::Ordered.colour(0, 1, Ground::Light).hex(),
            "#440154"
        );
    }

    #[test]
    fn generations_in_order_have_the_ordered_palette() {
        let of = |names: &[&str]| Palette::of_names(names.iter().copied());
        assert_eq!(of(&["sdr", "DDR, sent", "2xqdr fdr"]), Palette::Ordered);
        assert_eq!(of(&["sdr", "fdr", "qdr"]), Palette::Distinct);
        assert_eq!(of(&["qdr", "fdr"]), Palette::Distinct);
        assert_eq!(of(&["qdr", "fdr", "mine"]), Palette::Distinct);
    }

    #[test]
    fn twenty_eight_series_differ_in_dash_or_mark() {
        let styles: Vec<_> = (0..28).map(|at| (Dash::of(at), Mark::of(at))).collect();
        for (at, style) in styles.iter().enumerate() {
            assert!(!styles[..at].contains(style));
        }
    }
}
