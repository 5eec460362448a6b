//! A calibrated machine as a file, as JSON, and as a few lines of text.

use results::stats::{digits, median};
use results::table::significant;
use serde_json::{Value, json};

use super::runs::machine;
use super::{CalibratedMachine, Row};

/// The most figures that are named as helpful.
const SHOWN: usize = 3;

impl CalibratedMachine {
    /// The file that defines the machine. It begins with comments: the figures and their errors.
    pub fn toml(&self) -> String {
        let mut text = format!("# Calibrated on the base of {}", self.base.name);
        if let [_, others @ ..] = self.nearest.as_slice() {
            let others = others
                .iter()
                .map(|(name, far)| format!("{name} ({:.0} %)", far * 100.0));
            let others: Vec<String> = others.collect();
            text += &format!(
                ", the nearest machine of the catalogue, before {}",
                others.join(" and ")
            );
        }
        text += ".\n# Errors: with its values, with the values below, and with values that the other figures alone determine.\n#\n";
        text += &self.table();
        if let Some(next) = self.next() {
            text += &format!("# What would help most next: {next}.\n");
        }
        text.push('\n');
        text + &machine(&self.base, &self.name, &self.changes)
    }

    /// The figures that would help most next, as text. `None`: there are none.
    fn next(&self) -> Option<String> {
        let each = self
            .next
            .iter()
            .map(|(test, size)| format!("{test} of {size} B"));
        let each: Vec<String> = each.take(SHOWN).collect();
        (!each.is_empty()).then(|| each.join(", "))
    }

    fn table(&self) -> String {
        let width = self
            .rows
            .iter()
            .map(|row| row.place.len())
            .max()
            .unwrap_or(0)
            .max(6);
        let mut text = format!(
            "# {:<width$}  {:<18} {:>9} {:>10} {:<7} {:>8} {:>8} {:>8}\n",
            "figure", "tool", "bytes", "measured", "", "before", "after", "left out"
        );
        for row in &self.rows {
            let errors = row.errors().map(|error| format!("{:+.1}%", error * 100.0));
            text += &format!(
                "# {:<width$}  {:<18} {:>9} {:>10} {:<7} {:>8} {:>8} {:>8}\n",
                row.place,
                row.figure.test,
                row.figure.msg_size,
                significant(row.measured),
                row.figure.unit,
                errors[0],
                errors[1],
                errors[2]
            );
        }
        let [medians, worst] = self.summed();
        for (name, errors) in [("median", medians), ("worst", worst)] {
            let errors = errors.map(|error| format!("{:.1}%", error * 100.0));
            text += &format!(
                "# {:<width$}  {:<18} {:>9} {:>10} {:<7} {:>8} {:>8} {:>8}\n",
                name, "without signs", "", "", "", errors[0], errors[1], errors[2]
            );
        }
        text
    }

    /// The median and the greatest of the absolute errors: before, after, and with each figure left
    /// out.
    fn summed(&self) -> [[f64; 3]; 2] {
        let errors = [0, 1, 2].map(|which| {
            let all = self.rows.iter().map(|row| row.errors()[which].abs());
            all.collect::<Vec<f64>>()
        });
        let worst = |all: &Vec<f64>| all.iter().copied().fold(0.0, f64::max);
        [
            errors.each_ref().map(|all| median(all)),
            errors.each_ref().map(worst),
        ]
    }

    /// JSON, one object per line: the figures, the changed values, and the machine with its file.
    pub fn json(&self) -> String {
        let mut lines: Vec<Value> = self.rows.iter().map(Row::json).collect();
        lines.extend(
            self.changes
                .iter()
                .map(|one| json!({"value": one.path, "is": one.raw.to_string().trim_matches('"')})),
        );
        let summed = self.summed().map(|errors| {
            let [before, after, left_out] = errors.map(|error| digits(error * 100.0));
            json!({"before": before, "after": after, "left_out": left_out})
        });
        let [medians, worst] = summed;
        lines.push(json!({
            "machine": self.name, "like": self.base.name, "figures": self.rows.len(),
            "median_percent": medians, "worst_percent": worst,
            "warnings": self.warnings, "next": self.next(), "file": self.toml(),
        }));
        lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

impl Row {
    fn json(&self) -> Value {
        let [before, after, left_out] = self.errors().map(|error| (error * 1e4).round() / 100.0);
        json!({
            "figure": self.place, "tool": self.figure.test, "bytes": self.figure.size(),
            "measured": digits(self.measured), "unit": self.figure.unit,
            "predicted": {"before": digits(self.before), "after": digits(self.after), "left_out": digits(self.left_out)},
            "error_percent": {"before": before, "after": after, "left_out": left_out},
        })
    }
}
