//! Groups of scored points: by machine and by kind, with the errors of predictions and of null
//! models.

use results::stats::{median, percentile, round_to};
use serde_json::{Value, json};

use super::{ScoredPoint, machines};

/// The wanted errors: median and nine in ten.
const WANTED: [f64; 2] = [0.18, 0.40];
/// The names of the null models.
const NULL_MODELS: [&str; 2] = ["line rate", "half beyond a leaf"];

/// The errors of one group of points.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Group {
    pub(super) name: String,
    /// The part of all scored points.
    pub(super) share: f64,
    /// The errors of the predictions, with their signs.
    pub(super) errors: Vec<f64>,
    /// The errors of the null models.
    null: [Vec<f64>; 2],
    is_machine: bool,
}

/// The group of each machine, of rings, of alltoalls, of all points without those of one machine,
/// and of all points. Groups without points are left out.
pub(super) fn groups(scored: &[ScoredPoint]) -> Vec<Group> {
    let group = |name: &str, is_machine, is_in: &dyn Fn(&ScoredPoint) -> bool| {
        let own = || scored.iter().filter(|one| is_in(one));
        let null = |model: usize| {
            own()
                .map(|one| one.null[model] / one.published - 1.0)
                .collect()
        };
        Group {
            name: name.to_owned(),
            share: own().count() as f64 / scored.len() as f64,
            errors: own().map(ScoredPoint::error).collect(),
            null: [null(0), null(1)],
            is_machine,
        }
    };
    let machines = machines::ALL.iter().map(|machine| {
        let name = machine.name;
        group(name, true, &|one: &ScoredPoint| one.machine == name)
    });
    let kinds = ["rings", "alltoalls", "pairs"];
    let kinds = kinds.map(|kind| group(kind, false, &|one: &ScoredPoint| one.class == kind));
    let all = group("all", false, &|_: &ScoredPoint| true);
    let has_several = scored.iter().any(|one| one.machine != scored[0].machine);
    let others = machines::ALL.iter().filter(|_| has_several).map(|machine| {
        let name = format!("without {}", machine.name);
        group(&name, false, &|one: &ScoredPoint| {
            one.machine != machine.name
        })
    });
    let groups = machines.chain(kinds).chain(others).chain([all]);
    groups.filter(|group| !group.errors.is_empty()).collect()
}

/// Median and 90th percentile of absolute errors.
fn absolute(errors: &[f64]) -> [f64; 2] {
    let mut errors: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
    errors.sort_by(f64::total_cmp);
    [median(&errors), percentile(&errors, 90.0)]
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

impl Group {
    fn row(&self) -> Vec<String> {
        let mut row = vec![
            self.name.clone(),
            self.errors.len().to_string(),
            percent(self.share),
        ];
        row.extend(absolute(&self.errors).map(percent));
        row.push(format!("{:+.0} %", median(&self.errors) * 100.0));
        row.extend(
            self.null
                .iter()
                .flat_map(|errors| absolute(errors).map(percent)),
        );
        row
    }

    fn json(&self) -> Value {
        let percent = |share: f64| round_to(share * 100.0, 4);
        let of = |errors: &[f64]| absolute(errors).map(percent);
        let [middle, nine] = of(&self.errors);
        let [line, half] = [of(&self.null[0]), of(&self.null[1])];
        json!({
            "group": self.name, "points": self.errors.len(), "share_percent": percent(self.share),
            "median_percent": middle, "percentile_90_percent": nine,
            "signed_median_percent": percent(median(&self.errors)),
            "line_rate": { "median_percent": line[0], "percentile_90_percent": line[1] },
            "half_beyond_a_leaf": { "median_percent": half[0], "percentile_90_percent": half[1] },
        })
    }
}

/// The means of the machines' medians: of the predictions, and of both null models.
fn means(groups: &[Group]) -> [f64; 3] {
    let machines: Vec<&Group> = groups.iter().filter(|group| group.is_machine).collect();
    let mean = |errors: &dyn Fn(&Group) -> f64| {
        machines.iter().map(|group| errors(group)).sum::<f64>() / machines.len() as f64
    };
    [
        mean(&|group| absolute(&group.errors)[0]),
        mean(&|group| absolute(&group.null[0])[0]),
        mean(&|group| absolute(&group.null[1])[0]),
    ]
}

/// The columns of the table of groups.
pub(super) const HEADER: [&str; 10] = [
    "group",
    "points",
    "share",
    "median",
    "nine in ten",
    "signed",
    "line rate",
    "nine in ten",
    "half",
    "nine in ten",
];

/// The rows of the table of groups, and one with the means of the machines' medians.
pub(super) fn rows(groups: &[Group]) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = groups.iter().map(Group::row).collect();
    let [own, line, half] = means(groups).map(percent);
    let row = [
        "mean of machines",
        "",
        "",
        &own,
        "",
        "",
        &line,
        "",
        &half,
        "",
    ];
    rows.push(row.map(String::from).to_vec());
    rows
}

/// The verdict on the wanted limits, as a line of text.
pub(super) fn verdict(groups: &[Group]) -> String {
    let Some(all) = groups.last() else {
        return String::new();
    };
    let found = absolute(&all.errors);
    let is_met = found[0] <= WANTED[0] && found[1] <= WANTED[1];
    let [middle, nine] = found.map(percent);
    let [wanted, wanted_nine] = WANTED.map(percent);
    format!(
        "Wanted: median {wanted}, nine in ten within {wanted_nine}; found: {middle}, {nine}: {}.\n\
         Null models: {}, {} switch.\n",
        if is_met { "met" } else { "missed" },
        NULL_MODELS[0],
        NULL_MODELS[1],
    )
}

/// One JSON object a line for each group, then the means of the machines' medians.
pub(super) fn json(groups: &[Group]) -> Vec<String> {
    let mut lines: Vec<String> = groups
        .iter()
        .map(|group| group.json().to_string())
        .collect();
    let [own, line, half] = means(groups).map(|share| round_to(share * 100.0, 4));
    let mean = json!({
        "group": "mean of machines", "median_percent": own,
        "line_rate": { "median_percent": line }, "half_beyond_a_leaf": { "median_percent": half },
    });
    lines.push(mean.to_string());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::congestion::points;

    /// All points, predicted by the line rate.
    fn by_line_rate() -> Vec<ScoredPoint> {
        let scored = |point: points::Point| {
            let machine = point.machine().unwrap();
            let null = machine.null(point.nodes);
            ScoredPoint {
                machine: machine.name,
                class: point.class(),
                published: point.value,
                predicted: null[0],
                range: [null[0]; 2],
                null,
                point,
            }
        };
        points::all().unwrap().into_iter().map(scored).collect()
    }

    #[test]
    fn null_models_have_the_errors_that_were_written_down_with_the_points() {
        let groups = groups(&by_line_rate());
        // Medians of both models; percentiles depend on the rule of interpolation.
        let wanted = [
            ("cirrus", [20.0, 21.0]),
            ("archer", [113.0, 58.0]),
            ("athena", [28.0, 25.0]),
            ("fulhame", [153.0, 150.0]),
            ("thomas", [36.0, 36.0]),
            ("fugaku", [26.0, 45.0]),
            ("taurus", [59.0, 59.0]),
            ("rings", [60.0, 23.0]),
            ("alltoalls", [134.0, 59.0]),
            ("pairs", [52.0, 52.0]),
            ("all", [98.0, 45.0]),
        ];
        for (name, medians) in wanted {
            let group = groups.iter().find(|group| group.name == name).unwrap();
            for (errors, wanted) in group.null.iter().zip(medians) {
                let found = absolute(errors)[0] * 100.0;
                assert!(
                    (found - wanted).abs() < 1.0,
                    "{name}: {found}, not {wanted}"
                );
            }
            assert_eq!(group.errors, group.null[0], "{name}");
        }
        assert_eq!(
            means(&groups)[1..]
                .iter()
                .map(|mean| percent(*mean))
                .collect::<Vec<_>>(),
            ["62 %", "56 %"]
        );
    }

    #[test]
    fn a_group_without_points_is_left_out() {
        let mut some = by_line_rate();
        some.retain(|one| one.machine == "taurus");
        let groups = groups(&some);
        let names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
        assert_eq!(names, ["taurus", "alltoalls", "pairs", "all"]);
        assert_eq!(groups[0].share, 1.0);
        assert_eq!(rows(&groups).len(), 5);
        assert_eq!(json(&groups).len(), 5);
        assert!(verdict(&groups).contains("missed"));
    }
}
