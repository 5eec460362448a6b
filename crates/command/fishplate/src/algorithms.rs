//! The choices of algorithms of the MPI library that a machine names: as a setting of the ranks,
//! and as rows of `fishplate fabric show`.

use ::fabric::Software;
use ::fabric::catalogue::{FieldValue, Sheet};
use ::fabric::collectives::ChoiceTable;
use ::fabric::quantity::Quantity;
use serde_json::{Value, json};

/// The variable that names the algorithms of collectives.
pub(crate) const VARIABLE: &str = "FISHPLATE_COLLECTIVES";

/// The table of the release that `software` names, if it names one.
pub(crate) fn table(software: &Software) -> Option<&'static ChoiceTable> {
    software.library.map(ChoiceTable::of)
}

/// The setting by which a job of `ranks` ranks chooses algorithms as the library that `software`
/// names does.
pub(crate) fn setting(software: &Software, ranks: usize) -> Option<(&'static str, String)> {
    let setting = table(software)?.setting(ranks);
    (!setting.is_empty()).then_some((VARIABLE, setting))
}

/// The table of the release that a part of the catalogue names, itself or by its software.
fn table_of(sheet: &Sheet) -> Option<&'static ChoiceTable> {
    let field = |key: &str| sheet.fields.iter().find(|field| field.key.name == key);
    match (&field("software"), &field("library")) {
        (Some(field), _) => match &field.value {
            FieldValue::Part(software) => table_of(software),
            _ => None,
        },
        (None, Some(field)) => match &field.value {
            FieldValue::Value(raw) => Quantity::read(raw).flatten().map(ChoiceTable::of),
            _ => None,
        },
        (None, None) => None,
    }
}

/// Prints the table of algorithms of a part of the catalogue, if it names a library.
pub(crate) fn show(sheet: &Sheet) {
    let Some(table) = table_of(sheet) else { return };
    tell!(
        "Algorithms of collectives: table {} ({}), for {}. {}.",
        table.name,
        table.about,
        table.collectives().join(", "),
        capital(&table.source),
    );
    let differences = table.differences().into_iter();
    let rows = differences.map(|[of, theirs, ours, difference]| {
        let ours = match ours {
            "auto" => "own choice",
            ours => ours,
        };
        [of, theirs, ours, difference].map(String::from)
    });
    let header = [
        "collective",
        "its algorithm",
        "here",
        "difference of its own",
    ];
    crate::fabric::print(header, rows.collect(), 4);
}

/// The table of algorithms of a part of the catalogue, as JSON.
pub(crate) fn object(sheet: &Sheet) -> Option<Value> {
    let table = table_of(sheet)?;
    let differences = table.differences().into_iter();
    let differences = differences.map(|[of, theirs, ours, difference]| {
        json!({"collective": of, "algorithm": theirs, "here": ours, "difference": difference})
    });
    Some(json!({
        "table": table.name,
        "about": table.about,
        "source": table.source,
        "collectives": table.collectives(),
        "nearest": differences.collect::<Vec<Value>>(),
    }))
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(characters).collect()
}
