//! Predictions of figures by runs on a machine with changed values, for the fit of a calibration.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use child_guard::WatchedFolder;
use fabric::quantity::Raw;
use results::Console;

use super::base::Base;
use crate::check::factor;
use crate::experiments::{Points, at_once};
use crate::score::figures::{Group, PublishedFigure, groups};

/// A value of a machine file that replaces the catalogue's.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) path: String,
    pub(crate) raw: Raw,
    pub(crate) source: String,
}

impl Change {
    /// The change as a line of a machine file.
    pub(super) fn line(&self) -> String {
        if let Raw::Other(list) = &self.raw {
            // A list of parts has no source of its own.
            return format!("{} = {list}\n", self.path);
        }
        let source = self.source.replace(['"', '\\', '\n'], " ");
        format!(
            "{} = {{ value = {}, source = \"{source}\" }}\n",
            self.path, self.raw
        )
    }
}

/// The figures to predict, and the runs that predict them on trial machines.
pub(super) struct Runs<'a> {
    command: &'a Path,
    base: &'a Base,
    figures: &'a [PublishedFigure],
    groups: Vec<Group>,
    /// The changed values that all trial machines have in common.
    fixed: Vec<Change>,
    folder: WatchedFolder,
}

/// The name of the system in the file of a trial machine.
const TRIAL: &str = "fishplate-trial";

/// The text of a file that defines a system by its changes to `base`.
pub(super) fn machine(base: &Base, name: &str, changes: &[Change]) -> String {
    let lines = changes.iter().map(Change::line);
    let gap = if base.text.is_empty() { "" } else { "\n" };
    let lines: String = lines.collect();
    format!(
        "{}{gap}[system.{name}]\nfrom = \"{}\"\n{lines}",
        base.text, base.name
    )
}

impl<'a> Runs<'a> {
    pub(super) fn new(
        command: &'a Path,
        base: &'a Base,
        figures: &'a [PublishedFigure],
        fixed: Vec<Change>,
    ) -> Result<Runs<'a>> {
        // The machine's name is set for each trial.
        let (groups, reasons) = groups(figures, &|_: &str| Ok(String::new()));
        refused(figures, &reasons)?;
        let folder = WatchedFolder::new(command).context("cannot make a folder for machines")?;
        Ok(Runs {
            command,
            base,
            figures,
            groups,
            fixed,
            folder,
        })
    }

    /// For each machine, the predictions of all figures; several runs are made at once.
    pub(super) fn predict(
        &self,
        machines: &[Vec<Change>],
        part: &str,
        console: &mut Console,
    ) -> Result<Vec<Vec<f64>>> {
        let files: Vec<PathBuf> = (0..machines.len())
            .map(|at| self.folder.path().join(format!("trial-{at}.toml")))
            .collect();
        for (changes, file) in machines.iter().zip(&files) {
            let all = [self.fixed.as_slice(), changes].concat();
            std::fs::write(file, machine(self.base, TRIAL, &all))
                .with_context(|| format!("cannot write {}", file.display()))?;
        }
        let words: Vec<String> = files
            .iter()
            .map(|file| format!("{}:{TRIAL}", file.display()))
            .collect();
        let tasks = machines.len() * self.groups.len();
        console.phase_without_line(part, Some(tasks));
        predict(self.command, self.figures, &self.groups, &words, console)
    }
}

/// For each machine, the predictions of all figures. `words` are the machines' names on command
/// lines.
pub(super) fn predict(
    command: &Path,
    figures: &[PublishedFigure],
    groups: &[Group],
    words: &[String],
    console: &mut Console,
) -> Result<Vec<Vec<f64>>> {
    let each = words
        .iter()
        .flat_map(|word| groups.iter().map(|group| group.run.on(word)));
    let points = at_once(command, &each.collect::<Vec<_>>(), console)?;
    let machines = points.chunks(groups.len().max(1));
    let predictions = machines.map(|points| {
        let mut found = vec![f64::NAN; figures.len()];
        for (group, points) in groups.iter().zip(points) {
            for (at, value) in values(figures, group, points)? {
                found[at] = value;
            }
        }
        Ok(found)
    });
    predictions.collect()
}

/// The predicted values of a group's figures in the figures' units, each with the figure's number.
fn values(
    figures: &[PublishedFigure],
    group: &Group,
    points: &Points,
) -> Result<Vec<(usize, f64)>> {
    let unit = group.run.benchmark.unit();
    let each = group.members.iter().map(|member| {
        let figure = &figures[member.figure];
        let value = points
            .iter()
            .find(|(own, _)| *own == member.size)
            .map(|(_, value)| *value);
        let value = value.and_then(|value| Some(value * factor(unit, &figure.unit)?));
        let value = value.filter(|value| *value > 0.0);
        let value = value.with_context(|| {
            let unit = unit.name();
            format!("{}: {unit} cannot be given as {}", figure.id, figure.unit)
        })?;
        Ok((member.figure, value))
    });
    each.collect()
}

/// An error if a figure cannot be predicted; it names the figure's location.
pub(super) fn refused(figures: &[PublishedFigure], reasons: &[Option<String>]) -> Result<()> {
    for (figure, reason) in figures.iter().zip(reasons) {
        if let Some(why) = reason {
            bail!("{}: {why}", figure.id);
        }
    }
    Ok(())
}
