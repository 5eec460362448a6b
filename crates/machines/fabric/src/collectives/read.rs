//! Reads a file of tables. An error names the line, the key, and what is valid.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::bound::Bound;
use super::{ChoiceTable, Collective, NamedAlgorithm, Ranks, Rule, Scale, Step};
use crate::catalogue::{Location, Problem, STANDINGS};
use crate::quantity::{Quantity, Raw};
use crate::release::Release;

/// The bytes that this library counts to choose the algorithm of a collective.
#[derive(Clone, Copy, PartialEq)]
enum Counted {
    /// Those of the vector, as all libraries do; none for a barrier.
    Vector,
    /// Those of one rank's block.
    Block,
    /// Those of the blocks of all ranks.
    Total,
}

/// The collectives of this library, with the bytes that it counts.
const COLLECTIVES: [(&str, Counted); 10] = [
    ("barrier", Counted::Vector),
    ("bcast", Counted::Vector),
    ("gather", Counted::Block),
    ("scatter", Counted::Block),
    ("allgather", Counted::Total),
    ("alltoall", Counted::Block),
    ("reduce", Counted::Vector),
    ("allreduce", Counted::Vector),
    ("reduce_scatter", Counted::Total),
    ("scan", Counted::Vector),
];

type Result<T> = std::result::Result<T, Problem>;
type Value<'a> = Spanned<DeValue<'a>>;

/// Reads the tables of a file. A table may begin from one before it.
pub(super) fn read(file: &str, text: &str) -> Result<Vec<ChoiceTable>> {
    let reader = Reader { file, text };
    let parsed = DeTable::parse(text).map_err(|error| {
        let what = format!("this is not TOML: {}", error.message());
        reader.problem(error.span().unwrap_or(0..0), what)
    })?;
    let mut tables = Vec::new();
    for (name, value) in parsed.get_ref() {
        let table = reader.table(name.get_ref(), value, &tables)?;
        tables.push(table);
    }
    Ok(tables)
}

struct Reader<'a> {
    file: &'a str,
    text: &'a str,
}

impl Reader<'_> {
    fn problem(&self, span: Range<usize>, what: String) -> Problem {
        let before = self.text.get(..span.start).unwrap_or_default();
        let location = Location {
            file: self.file.into(),
            line: 1 + before.matches('\n').count(),
        };
        Problem {
            location: Some(location),
            what,
        }
    }

    fn wrong<T>(&self, value: &Value, what: String) -> Result<T> {
        Err(self.problem(value.span(), what))
    }

    fn fields<'v, 'd>(&self, path: &str, value: &'v Value<'d>) -> Result<&'v DeTable<'d>> {
        match value.get_ref() {
            DeValue::Table(table) => Ok(table),
            _ => self.wrong(value, format!("{path}: must be a table")),
        }
    }

    fn string<'v>(&self, path: &str, value: &'v Value) -> Result<&'v str> {
        match value.get_ref() {
            DeValue::String(text) if !text.trim().is_empty() => Ok(text),
            _ => self.wrong(
                value,
                format!("{path}: must be a string in quotes, and not empty"),
            ),
        }
    }

    fn table(&self, name: &str, value: &Value, known: &[ChoiceTable]) -> Result<ChoiceTable> {
        let fields = self.fields(name, value)?;
        let release = <Option<Release>>::read(&Raw::Text(name.into())).flatten();
        let Some(Release { project, version }) = release else {
            let valid = <Option<Release>>::VALID;
            return self.wrong(
                value,
                format!("{name}: not the name of a table, its first release; valid is {valid}"),
            );
        };
        let before = known.iter().filter(|table| table.project == project);
        if let Some(later) = before.clone().find(|table| table.since >= version) {
            return self.wrong(
                value,
                format!(
                    "{name}: must stand before {}, which is not older",
                    later.name
                ),
            );
        }
        let mut table = ChoiceTable {
            name: name.into(),
            about: String::new(),
            source: String::new(),
            project,
            since: version,
            collectives: Vec::new(),
        };
        if let Some(from) = fields.get("from") {
            let word = self.string(&format!("{name}.from"), from)?;
            let Some(other) = known.iter().find(|table| table.name == word) else {
                return self.wrong(
                    from,
                    format!("{name}.from: there is no table {word} before this one"),
                );
            };
            table.collectives.clone_from(&other.collectives);
        }
        for (word, value) in fields {
            let word = word.get_ref().as_ref();
            let path = format!("{name}.{word}");
            match word {
                "about" => table.about = self.string(&path, value)?.into(),
                "source" => table.source = self.string(&path, value)?.into(),
                "from" => {}
                _ => match COLLECTIVES.iter().find(|(known, _)| *known == word) {
                    Some(of) => self.collective(&path, *of, value, &mut table.collectives)?,
                    None => {
                        let names = COLLECTIVES.map(|(name, _)| name).join(", ");
                        return self.wrong(value, format!("{path}: not a collective; valid are {names}, and about, source, from"));
                    }
                },
            }
        }
        let standing = table.source.split_once(": ").map(|(standing, _)| standing);
        if !standing.is_some_and(|standing| STANDINGS.contains(&standing)) {
            let valid = STANDINGS.join(", ");
            return self.wrong(value, format!("{name}: needs a source that begins with a standing and a colon; standings are {valid}"));
        }
        match table.about.is_empty() {
            true => self.wrong(
                value,
                format!("{name}: needs about, the releases in a few words"),
            ),
            false => Ok(table),
        }
    }

    /// Reads the choices for a collective into `all`. Keys that are missing are those of the table
    /// from which this one begins.
    fn collective(
        &self,
        path: &str,
        (name, counted): (&str, Counted),
        value: &Value,
        all: &mut Vec<Collective>,
    ) -> Result<()> {
        let inherited = all.iter().position(|of| of.name == name);
        let mut of = match inherited {
            Some(at) => all.remove(at),
            None => Collective {
                name: name.into(),
                scale: Scale::Same,
                first: None,
                rules: Vec::new(),
                algorithms: Vec::new(),
            },
        };
        let mut has_scale = inherited.is_some() || counted == Counted::Vector;
        for (word, value) in self.fields(path, value)? {
            let path = format!("{path}.{}", word.get_ref());
            match word.get_ref().as_ref() {
                "bytes" => {
                    of.scale = match (self.string(&path, value)?, counted) {
                        ("block", Counted::Block) | ("total", Counted::Total) => Scale::Same,
                        ("block", Counted::Total) => Scale::TimesRanks,
                        ("total", Counted::Block) => Scale::ByRanks,
                        _ => return self.wrong(
                            value,
                            format!(
                                "{path}: valid are \"block\" and \"total\", where ranks have blocks"
                            ),
                        ),
                    };
                    has_scale = true;
                }
                "first" => of.first = Some(self.string(&path, value)?.into()),
                "rules" => of.rules = self.rules(&path, value)?,
                "algorithms" => self.algorithms(&path, value, &mut of.algorithms)?,
                _ => {
                    return self.wrong(
                        value,
                        format!("{path}: not a key; valid are bytes, first, rules, algorithms"),
                    );
                }
            }
        }
        if !has_scale {
            return self.wrong(
                value,
                format!("{path}: bytes is missing: \"block\" or \"total\""),
            );
        }
        self.check(path, value, &of)?;
        all.push(of);
        Ok(())
    }

    /// Checks that all numbers of ranks and bytes have a choice, of algorithms that are mapped.
    fn check(&self, path: &str, value: &Value, of: &Collective) -> Result<()> {
        let ends = of.rules.last().map(|rule| rule.ranks);
        if ends != Some(Ranks::Any) {
            return self.wrong(value, format!("{path}.rules: the last rule must be for any number of ranks: leave out its ranks"));
        }
        for (number, rule) in of.rules.iter().enumerate() {
            let path = format!("{path}.rules.{number}");
            if rule.ranks == Ranks::Any && number + 1 < of.rules.len() {
                return self.wrong(
                    value,
                    format!("{path}: rules after one for any number of ranks are never used"),
                );
            }
            let is_last = |at: usize| at + 1 == rule.steps.len();
            if let Some(at) =
                (0..rule.steps.len()).find(|&at| rule.steps[at].bound.is_none() != is_last(at))
            {
                let why = match is_last(at) {
                    true => {
                        "the last step must have no bound: it is for all further numbers of bytes"
                    }
                    false => "only the last step may have no bound",
                };
                return self.wrong(value, format!("{path}, step {}: {why}", at + 1));
            }
        }
        let steps = of.rules.iter().flat_map(|rule| &rule.steps);
        let names = steps.flat_map(|step| &step.names).chain(&of.first);
        for name in names {
            if of.algorithms.iter().all(|one| one.name != *name) {
                let known: Vec<&str> = of.algorithms.iter().map(|one| &*one.name).collect();
                let known = known.join(", ");
                return self.wrong(
                    value,
                    format!("{path}: {name} is not among its algorithms; these are {known}"),
                );
            }
        }
        Ok(())
    }

    fn rules(&self, path: &str, value: &Value) -> Result<Vec<Rule>> {
        let DeValue::Array(items) = value.get_ref() else {
            return self.wrong(
                value,
                format!("{path}: must be a list of tables {{ ranks = \"below N\", use = \"…\" }}"),
            );
        };
        items
            .iter()
            .enumerate()
            .map(|(number, item)| self.rule(&format!("{path}.{number}"), item))
            .collect()
    }

    fn rule(&self, path: &str, value: &Value) -> Result<Rule> {
        let mut rule = Rule {
            ranks: Ranks::Any,
            steps: Vec::new(),
        };
        for (word, value) in self.fields(path, value)? {
            match word.get_ref().as_ref() {
                "ranks" => rule.ranks = self.ranks(path, value)?,
                "use" => {
                    let text = self.string(path, value)?;
                    let steps = text.split(',').map(step);
                    let steps: std::result::Result<Vec<Step>, String> = steps.collect();
                    rule.steps = match steps {
                        Ok(steps) => steps,
                        Err(why) => return self.wrong(value, format!("{path}: {why}")),
                    };
                }
                other => {
                    return self.wrong(
                        value,
                        format!("{path}.{other}: not a key; valid are ranks and use"),
                    );
                }
            }
        }
        match rule.steps.is_empty() {
            true => self.wrong(
                value,
                format!("{path}: use is missing, the algorithms by numbers of bytes"),
            ),
            false => Ok(rule),
        }
    }

    fn ranks(&self, path: &str, value: &Value) -> Result<Ranks> {
        let text = self.string(path, value)?;
        let bound = text
            .strip_prefix("below ")
            .and_then(|bound| bound.parse().ok());
        match (text, bound) {
            ("power of two", _) => Ok(Ranks::PowerOfTwo),
            (_, Some(bound)) if (3..=1 << 20).contains(&bound) => Ok(Ranks::Below(bound)),
            _ => self.wrong(value, format!("{path}.ranks: \"{text}\" is not valid; valid are \"power of two\" and \"below N\" with N from 3 to 1048576")),
        }
    }

    /// Reads the names of algorithms: `NAME = "ours"`, or a table with `nearest` or `none`, which
    /// say the difference.
    fn algorithms(&self, path: &str, value: &Value, all: &mut Vec<NamedAlgorithm>) -> Result<()> {
        for (word, value) in self.fields(path, value)? {
            let (name, path) = (word.get_ref(), format!("{path}.{}", word.get_ref()));
            let (ours, difference) = match value.get_ref() {
                DeValue::Table(fields) => self.different(&path, value, fields)?,
                _ => (Some(self.string(&path, value)?.to_owned()), None),
            };
            all.retain(|one| one.name != *name);
            all.push(NamedAlgorithm {
                name: name.to_string(),
                ours,
                difference,
            });
        }
        Ok(())
    }

    fn different(
        &self,
        path: &str,
        value: &Value,
        fields: &DeTable,
    ) -> Result<(Option<String>, Option<String>)> {
        let (mut ours, mut difference) = (None, None);
        for (word, value) in fields {
            match word.get_ref().as_ref() {
                "nearest" => ours = Some(self.string(path, value)?.to_owned()),
                "differs" => difference = Some(self.string(path, value)?.to_owned()),
                other => {
                    return self.wrong(
                        value,
                        format!("{path}.{other}: not a key; valid are nearest and differs"),
                    );
                }
            }
        }
        match difference.is_some() {
            true => Ok((ours, difference)),
            false => self.wrong(
                value,
                format!("{path}: differs is missing, the difference in a few words"),
            ),
        }
    }
}

/// Parses a step: names with slashes between them, and a bound.
fn step(text: &str) -> std::result::Result<Step, String> {
    let (names, bound) = match text.trim().split_once(char::is_whitespace) {
        Some((names, bound)) => (names, Some(Bound::read(bound.trim())?)),
        None => (text.trim(), None),
    };
    let names: Vec<String> = names.split('/').map(String::from).collect();
    match names.iter().any(String::is_empty) {
        true => Err("a step has no name of an algorithm".into()),
        false => Ok(Step { names, bound }),
    }
}
