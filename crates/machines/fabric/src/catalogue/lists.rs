//! The lists of parts within a part, resolved. A rail of a list inherits all that it does not
//! define itself from its system, once the system has all its values. So a system that changes only
//! the HCA of its base changes it for all rails that name none.

use std::sync::Arc;

use super::kinds::keys;
use super::problem::Problem;
use super::read::WrittenPart;
use super::resolve::overlay;
use super::sheet::{Field, FieldValue, PendingList, Sheet};
use crate::components::Part;
use crate::quantity::Raw;
use crate::rails::Rail;

/// Resolves the lists of a part whose other values are complete, and those of the parts within it.
pub(super) fn complete(parts: &[Arc<WrittenPart>], sheet: &mut Sheet) -> Result<(), Problem> {
    for field in &mut sheet.fields {
        if let FieldValue::Part(inner) = &mut field.value {
            complete(parts, inner)?;
        }
    }
    for list in std::mem::take(&mut sheet.lists) {
        let mut items = Vec::new();
        for (number, part) in list.parts.iter().enumerate() {
            let mut item = Sheet {
                kind: part.kind,
                name: String::new(),
                path: format!("{}.{}.{number}", sheet.path, list.key.name),
                location: part.location.clone(),
                fields: match part.kind {
                    Rail::KIND => inherited(sheet, &list, number),
                    _ => Vec::new(),
                },
                lists: Vec::new(),
            };
            let source = part.source.as_deref().or(list.source.as_deref());
            overlay(parts, &mut item, part, source, &mut Vec::new())?;
            complete(parts, &mut item)?;
            items.push(item);
        }
        let first = items.first().and_then(|item| item.fields.last());
        let source = list
            .source
            .clone()
            .or(first.map(|field| field.source.clone()));
        sheet.fields.push(Field {
            key: list.key,
            location: list.location.clone(),
            source: source.unwrap_or_else(|| format!("file {}", list.location)),
            value: FieldValue::List(items),
        });
    }
    sheet.sort();
    Ok(())
}

/// The values that rail `number` inherits if its table does not give them.
fn inherited(system: &Sheet, list: &PendingList, number: usize) -> Vec<Field> {
    let host = system.field("host").and_then(|host| match &host.value {
        FieldValue::Part(host) => Some(host),
        _ => None,
    });
    let usual = |number: usize| {
        let source = "assumed: as in a system with a number of equal rails".to_owned();
        let source = list.source.clone().unwrap_or(source);
        (source, FieldValue::Value(Raw::Integer(number as i64)))
    };
    let mut fields = Vec::new();
    for key in keys(Rail::KIND) {
        let of = |sheet: &Sheet, name: &str| {
            let field = sheet.field(name)?;
            Some((field.source.clone(), field.value.clone()))
        };
        let given = match key.name {
            "slot" => host.and_then(|host| of(host, "bus")),
            "lanes" => host.and_then(|host| of(host, "lanes")),
            "socket" => Some(usual(usize::from(number > 0))),
            "card" => Some(usual(number)),
            "subnet" => Some(usual(0)),
            name => of(system, name),
        };
        fields.extend(given.map(|(source, mut value)| {
            if let FieldValue::Part(part) = &mut value {
                part.path = format!("{}.{}.{number}.{}", system.path, list.key.name, key.name);
            }
            Field {
                key,
                location: list.location.clone(),
                source,
                value,
            }
        }));
    }
    fields
}
