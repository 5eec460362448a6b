//! The picture of a network: its levels, its grid or its groups. It is a schema, so that it stays
//! legible with thousands of hosts: one leaf or one group with its links, and counts for the rest.

use fabric::network::{Layer, Sketch};
use fabric::{GbPerSec, System};

use crate::report::canvas::{BOX, Canvas, LINE, Look};
use crate::report::markup::Markup;
use crate::table::significant;

/// The left end of the part with switches, right of the text.
const LEFT: f64 = 280.0;
/// The most switches that are drawn side by side.
const MOST: usize = 7;
/// The distance of switches of a level, and of levels.
const STEP: (f64, f64) = (66.0, 104.0);
/// The picture of the network of a rail.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkPicture {
    /// The title above the picture.
    pub title: String,
    sketch: Sketch,
    hosts: u64,
    is_adaptive: bool,
    /// The width and rate of a host's link, and of a link between switches.
    links: [String; 2],
}

impl NetworkPicture {
    /// The picture of the network of a rail; `None`: the network is unknown, because the number of
    /// switches between hosts is given instead.
    pub fn of(title: impl Into<String>, system: &System, rail: u32) -> Option<NetworkPicture> {
        let rail = system.rail(rail);
        let network = system.network(&rail)?;
        let link = |width: u32, rate: GbPerSec| {
            format!("{width}X, {} Gb/s", significant(rate.as_gb_per_sec()))
        };
        let inner = rail.inner_width.unwrap_or(rail.switch.width);
        Some(NetworkPicture {
            title: title.into(),
            sketch: network.sketch(),
            hosts: system.nodes.into(),
            is_adaptive: rail.is_adaptive(),
            links: [
                link(rail.link_width(), rail.link_rate()),
                link(inner, rail.inner_rate()),
            ],
        })
    }

    /// The picture as an SVG file.
    pub fn svg(&self) -> String {
        let mut canvas = Canvas::alone();
        self.draw(&mut canvas);
        canvas.finish(&self.title).finish()
    }

    fn draw(&self, canvas: &mut Canvas) {
        match &self.sketch {
            Sketch::Direct => self.direct(canvas),
            Sketch::Layers(layers) => self.layers(canvas, layers),
            Sketch::Grid {
                sizes,
                cables,
                wraps,
                hosts,
            } => self.grid(canvas, (sizes, cables), *wraps, *hosts),
            Sketch::Groups {
                groups,
                sizes,
                cables,
                hosts,
            } => self.groups(canvas, *groups, (*sizes, *cables), *hosts),
        }
        if self.is_adaptive {
            canvas.notes(&["Packets choose their routes (adaptive).".into()]);
        }
    }

    fn direct(&self, canvas: &mut Canvas) {
        canvas.lines(
            &["2 hosts back to back".into()],
            &[format!("1 cable of {}", self.links[0])],
        );
        canvas.line((LEFT, 24.0), (LEFT + 120.0, 24.0), Look::Link);
        for x in [LEFT, LEFT + 120.0] {
            canvas.rectangle((x, 24.0), (14.0, 14.0), Look::Main);
        }
        canvas.grow(60.0);
    }

    fn layers(&self, canvas: &mut Canvas, layers: &[Layer]) {
        let levels = layers.len();
        let middle = |level: usize| 24.0 + (levels - 1 - level) as f64 * STEP.1;
        for (level, pair) in layers.windows(2).enumerate() {
            self.between(canvas, pair, [middle(level), middle(level + 1)]);
        }
        for (level, layer) in layers.iter().enumerate() {
            let y = middle(level);
            for (at, (x, number)) in across(layer.switches).into_iter().enumerate() {
                canvas.switch((x, y), number, at == 0, "");
            }
            let name = match (levels, level) {
                (1, _) => many(layer.switches, "switch", "switches"),
                (_, 0) => format!("{} leaf switches", grouped(layer.switches)),
                _ => format!(
                    "{}, level {}",
                    many(layer.switches, "switch", "switches"),
                    level + 1
                ),
            };
            canvas.written((0.0, y + 4.0), &name, Look::Text);
            let mut notes = Vec::new();
            if layer.hosts > 0 {
                notes.push(many(layer.hosts, "host", "hosts"));
            }
            if layer.up > 0 {
                notes.push(many(layer.up, "link up", "links up"));
            }
            if !notes.is_empty() && layer.switches > 1 {
                let note = format!("{} each", notes.join(", "));
                canvas.written((0.0, y + 4.0 + LINE), &note, Look::Note);
            }
            if layer.within > 0 {
                let note = format!("{} within the level", many(layer.within, "cable", "cables"));
                canvas.written((0.0, y + 4.0 + 2.0 * LINE), &note, Look::Note);
            }
        }
        let first = layers.first().cloned().unwrap_or_default();
        let (x, _) = across(first.switches)[0];
        self.hosts_below(canvas, (x, middle(0)), first.hosts);
    }

    /// Draws the links between two levels, and their number.
    fn between(&self, canvas: &mut Canvas, pair: &[Layer], [low, high]: [f64; 2]) {
        let [lower, upper] = [&pair[0], &pair[1]].map(|layer| across(layer.switches));
        let is_full = pair[0].up >= pair[1].switches;
        let edge = BOX.1 / 2.0;
        let ends = |x: f64, to: f64| ((x, low - edge), (to, high + edge));
        for (x, number) in lower.iter().skip(1) {
            for (to, other) in upper.iter().filter(|_| is_full && number.is_some()) {
                if other.is_some() {
                    let (from, to) = ends(*x, *to);
                    canvas.line(from, to, Look::Faint);
                }
            }
        }
        let is_reached = |number: &u64| is_full || *number < pair[0].up;
        for (to, _) in upper
            .iter()
            .filter(|(_, other)| other.as_ref().is_some_and(is_reached))
        {
            let (from, to) = ends(lower[0].0, *to);
            canvas.line(from, to, Look::Link);
        }
        let y = (low + high) / 2.0 + 4.0;
        let note = format!(
            "{} of {}",
            many(pair[0].cables, "cable", "cables"),
            self.links[1]
        );
        canvas.written((0.0, y + LINE / 2.0), &note, Look::Note);
    }

    /// Draws the hosts of a switch as a few squares below it, with their number.
    fn hosts_below(&self, canvas: &mut Canvas, (x, y): (f64, f64), hosts: u64) {
        let count = hosts.min(6);
        let first = x - (count.saturating_sub(1)) as f64 * 8.0;
        for host in 0..count {
            let at = first.max(LEFT + 6.0) + host as f64 * 16.0;
            canvas.line((x, y + BOX.1 / 2.0), (at, y + 50.0), Look::Link);
            canvas.rectangle((at, y + 56.0), (11.0, 11.0), Look::Main);
        }
        let end = first.max(LEFT + 6.0) + count as f64 * 16.0;
        let what = if count < hosts { "… " } else { "" };
        let note = format!("{what}{}, {}", many(hosts, "host", "hosts"), self.links[0]);
        canvas.written((end + 2.0, y + 60.0), &note, Look::Note);
        let all = format!("{} in all", many(self.hosts, "host", "hosts"));
        canvas.written((0.0, y + 60.0), &all, Look::Text);
        canvas.grow(y + 76.0);
    }

    fn grid(
        &self,
        canvas: &mut Canvas,
        (sizes, cables): (&[u64], &[u64]),
        wraps: bool,
        hosts: u64,
    ) {
        let sides = sizes
            .iter()
            .map(u64::to_string)
            .collect::<Vec<_>>()
            .join(" × ");
        let is_cube = !wraps && sizes.iter().all(|size| *size == 2);
        let kind = match (wraps, is_cube) {
            (true, _) => "torus",
            (_, true) => "hypercube",
            _ => "mesh",
        };
        let mut notes = vec![
            format!("{} of each switch", many(hosts, "host", "hosts")),
            format!("links of hosts: {}", self.links[0]),
        ];
        for (dimension, cables) in cables.iter().enumerate() {
            let cables = many(*cables, "cable", "cables");
            notes.push(format!(
                "dimension {dimension}: {cables} of {}",
                self.links[1]
            ));
        }
        let planes: u64 = sizes.iter().skip(2).product();
        if planes > 1 {
            notes.push(format!("drawn: one plane of {}", grouped(planes)));
        }
        let all = format!("{} in all", many(self.hosts, "host", "hosts"));
        canvas.lines(&[format!("{kind} of {sides} switches"), all], &notes);
        let columns = slots(sizes[0], 6);
        let rows = slots(sizes.get(1).copied().unwrap_or(1), 5);
        let place = |column: usize, row: usize| {
            (
                LEFT + 50.0 + column as f64 * STEP.0,
                50.0 + row as f64 * 58.0,
            )
        };
        let (right, bottom) = (columns.len() - 1, rows.len() - 1);
        for row in 0..rows.len() {
            canvas.line(place(0, row), place(right, row), Look::Link);
            if wraps && right > 1 {
                canvas.arc(place(0, row), place(right, row), (0.0, -30.0));
            }
        }
        for column in 0..columns.len() {
            canvas.line(place(column, 0), place(column, bottom), Look::Link);
            if wraps && bottom > 1 {
                canvas.arc(place(column, 0), place(column, bottom), (38.0, 0.0));
            }
        }
        for (row, of_row) in rows.iter().enumerate() {
            for (column, of_column) in columns.iter().enumerate() {
                let number = of_row.and(*of_column);
                canvas.switch(place(column, row), number, true, &grouped(hosts));
            }
        }
        canvas.grow(place(0, bottom).1 + 40.0);
    }

    fn groups(
        &self,
        canvas: &mut Canvas,
        groups: u64,
        ([columns, rows], cables): ([u64; 2], [u64; 3]),
        hosts: u64,
    ) {
        let mut notes = vec![
            format!("{} of each switch", many(hosts, "host", "hosts")),
            format!("links of hosts: {}", self.links[0]),
            format!(
                "between two switches of a row: {}",
                many(cables[0], "cable", "cables")
            ),
        ];
        if rows > 1 {
            let column = many(cables[1], "cable", "cables");
            notes.push(format!("between two switches of a column: {column}"));
        }
        if groups > 1 {
            let between = many(cables[2], "cable", "cables");
            notes.push(format!("between two groups: {between}"));
        }
        notes.push(format!("all of {}", self.links[1]));
        let heads = [
            format!("dragonfly of {}", many(groups, "group", "groups")),
            format!("a group: {columns} × {rows} switches"),
            format!("{} in all", many(self.hosts, "host", "hosts")),
        ];
        canvas.lines(&heads, &notes);
        let (columns, rows) = (slots(columns, 4), slots(rows, 4));
        let place = |column: usize, row: usize| {
            (LEFT + 30.0 + column as f64 * 58.0, 44.0 + row as f64 * 48.0)
        };
        let (right, bottom) = (columns.len() - 1, rows.len() - 1);
        for row in 0..rows.len() {
            canvas.line(place(0, row), place(right, row), Look::Link);
            if right > 1 {
                canvas.arc(place(0, row), place(right, row), (0.0, -24.0));
            }
        }
        for column in 0..columns.len() {
            canvas.line(place(column, 0), place(column, bottom), Look::Link);
            if bottom > 1 {
                canvas.arc(place(column, 0), place(column, bottom), (34.0, 0.0));
            }
        }
        for (row, of_row) in rows.iter().enumerate() {
            for (column, of_column) in columns.iter().enumerate() {
                let number = of_row.and(*of_column);
                canvas.switch(place(column, row), number, true, &grouped(hosts));
            }
        }
        self.ring(canvas, groups);
        canvas.grow(place(0, bottom).1 + 30.0);
    }

    /// Draws the groups as a ring, each linked with all others.
    fn ring(&self, canvas: &mut Canvas, groups: u64) {
        let drawn = slots(groups, 8);
        let place = |at: usize| {
            let turn = at as f64 / drawn.len() as f64 * std::f64::consts::TAU;
            (640.0 + 84.0 * turn.sin(), 124.0 - 84.0 * turn.cos())
        };
        for (from, to) in (0..drawn.len()).flat_map(|from| (0..from).map(move |to| (from, to))) {
            if drawn[from].and(drawn[to]).is_some() {
                let look = if to == 0 { Look::Link } else { Look::Faint };
                canvas.line(place(from), place(to), look);
            }
        }
        for (at, number) in drawn.iter().enumerate() {
            canvas.switch(place(at), *number, at == 0, "group");
        }
        canvas.grow(240.0);
    }
}

/// The numbers of those of `count` parts that are drawn, at most `most`. `None`: a gap.
fn slots(count: u64, most: usize) -> Vec<Option<u64>> {
    match count <= most as u64 {
        true => (0..count.max(1)).map(Some).collect(),
        false => {
            let first = (0..most as u64 - 2).map(Some);
            first.chain([None, Some(count - 1)]).collect()
        }
    }
}

/// The middles and numbers of the switches of a level that are drawn.
fn across(switches: u64) -> Vec<(f64, Option<u64>)> {
    let drawn = slots(switches, MOST);
    let first = LEFT + 30.0 + (MOST - drawn.len()) as f64 * STEP.0 / 2.0;
    let place = |(at, number)| (first + at as f64 * STEP.0, number);
    drawn.into_iter().enumerate().map(place).collect()
}

/// A number with commas between groups of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn many(number: u64, one: &str, several: &str) -> String {
    let word = if number == 1 { one } else { several };
    format!("{} {word}", grouped(number))
}

/// Appends the picture with its title.
pub(crate) fn network(out: &mut Markup, picture: &NetworkPicture) {
    let mut canvas = Canvas::default();
    picture.draw(&mut canvas);
    out.raw("<figure>\n<h3>").text(&picture.title);
    out.raw("</h3>\n");
    out.append(canvas.finish(&picture.title));
    out.raw("</figure>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric::catalogue::Catalogue;

    /// The texts of the picture of a system with these keys.
    fn texts(keys: &str) -> Vec<String> {
        let text = format!("[system.it]\nfrom = \"edr\"\nsource = \"published: it\"\n{keys}");
        let mut catalogue = Catalogue::builtin();
        catalogue.add("it.toml", &text).unwrap();
        let system = catalogue.system("it").unwrap();
        let picture = NetworkPicture::of("it", &system, 0).unwrap();
        let svg = picture.svg();
        assert!(svg.len() < 30_000, "{} bytes", svg.len());
        let texts = svg.split("<text").skip(1);
        let texts = texts.filter_map(|rest| rest.split_once('>')?.1.split_once('<'));
        texts.map(|(text, _)| text.to_owned()).collect()
    }

    fn has(keys: &str, expected: &[&str]) {
        let texts = texts(keys);
        for text in expected {
            assert!(texts.iter().any(|own| own == text), "{text} in {texts:?}");
        }
    }

    #[test]
    fn a_picture_has_the_counts_of_its_network() {
        has(
            "nodes = 20\n",
            &["1 switch", "… 20 hosts, 4X, 100 Gb/s", "20 hosts in all"],
        );
        has(
            "nodes = 5000\nswitch_hosts = 24\ndimensions = \"18x12\"\ncables = \"12x9\"\n",
            &[
                "216 leaf switches",
                "24 hosts, 12 links up each",
                "2,592 cables of 4X, 100 Gb/s",
                "144 switches, level 2",
                "1,296 cables of 4X, 100 Gb/s",
                "108 switches, level 3",
                "5,000 hosts in all",
            ],
        );
        has(
            "nodes = 128\ntopology = \"torus\"\nswitch_hosts = 2\ndimensions = \"4x4x4\"\n",
            &["torus of 4 × 4 × 4 switches", "drawn: one plane of 4"],
        );
        has(
            "nodes = 64\ntopology = \"hypercube\"\nswitch_hosts = 9\ncables = \"3x6\"\n",
            &["hypercube of 2 × 2 × 2 switches"],
        );
        has(
            "nodes = 4992\ntopology = \"dragonfly\"\nswitch_hosts = 4\ndimensions = \"16x6\"\ncables = \"1x1x40\"\nrouting = \"adaptive\"\n",
            &[
                "dragonfly of 13 groups",
                "a group: 16 × 6 switches",
                "between two groups: 40 cables",
                "Packets choose their routes (adaptive).",
            ],
        );
        has("nodes = 2\nswitch = \"none\"\n", &["2 hosts back to back"]);
    }

    #[test]
    fn a_title_is_never_markup() {
        let system = Catalogue::builtin().system("qdr").unwrap();
        let picture = NetworkPicture::of("<script>", &system, 0).unwrap();
        assert!(!picture.svg().contains("<script>"));
        let mut out = Markup::default();
        network(&mut out, &picture);
        assert!(!out.finish().contains("<script>"));
    }
}
