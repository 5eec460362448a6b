//! The section of a page that lists the assumptions about machines: values that no document states.

use fabric::catalogue::UncertainValue;

use crate::table::Table;

use crate::report::page::{Block, Section};

/// A row of the table: one value, and the machines that have it.
struct Row<'a> {
    machines: Vec<&'a str>,
    value: &'a UncertainValue,
}

/// A section with a table of the inferred and the assumed values of these machines. Each machine
/// has its name and the values of [`fabric::catalogue::Sheet::uncertain`]. A value that several
/// machines share has one row.
pub fn assumptions(machines: &[(String, Vec<UncertainValue>)]) -> Section {
    let mut rows: Vec<Row> = Vec::new();
    for (name, values) in machines {
        for value in values {
            match rows.iter_mut().find(|row| row.value == value) {
                Some(row) => row.machines.push(name),
                None => rows.push(Row {
                    machines: vec![name],
                    value,
                }),
            }
        }
    }
    // Equal keys are neighbours, so that the table shows how machines differ.
    rows.sort_by(|one, other| one.value.path.cmp(&other.value.path));
    let text = "The machines are models. Most of their values come from specifications, datasheets and published figures. No document \
                states the values below: an inferred value was computed from figures of other experiments, and an assumed value is a choice.";
    let line = match rows.len() {
        1 => "1 value that is inferred or assumed".to_owned(),
        count => format!("{count} values that are inferred or assumed"),
    };
    let cells = |row: &Row| {
        let machines = match row.machines.len() == machines.len() && machines.len() > 1 {
            true => "all".to_owned(),
            false => row.machines.join(", "),
        };
        vec![
            row.value.path.clone(),
            row.value.value.clone(),
            row.value.standing.to_owned(),
            row.value.reason.clone(),
            machines,
        ]
    };
    let header = ["value of", "value", "standing", "reason", "machines"].map(String::from);
    let table = Table::of_text(header.to_vec(), rows.iter().map(cells).collect());
    let mut blocks = vec![Block::Text(text.into())];
    match rows.is_empty() {
        true => blocks.push(Block::Text(
            "There are none: every value has a document.".into(),
        )),
        false => blocks.push(Block::Folded(line, table)),
    }
    Section::new("Assumptions about the machines", blocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric::catalogue::Catalogue;

    #[test]
    fn a_value_of_several_machines_has_one_row() {
        let catalogue = Catalogue::builtin();
        let machines = ["qdr", "2xqdr"].map(|name| {
            let sheet = catalogue.sheet("system", name).unwrap();
            (name.to_owned(), sheet.uncertain())
        });
        let section = assumptions(&machines);
        let Some(Block::Folded(_, table)) = section.blocks.last() else {
            panic!("{section:?}");
        };
        let machines_of = |path: &str| -> Vec<&str> {
            let rows = table.rows.iter().filter(|row| row[0] == path);
            rows.map(|row| row[4].as_str()).collect()
        };
        assert_eq!(machines_of("hca.send"), ["all"]);
        assert_eq!(machines_of("rails"), ["qdr", "2xqdr"]);
    }
}
