//! `fishplate knobs`: prints the table of settings with their present values.

use std::process::ExitCode;

use clap::Args;
use knobs::{CONTRACT, Knob, Knobs, MV2_ALIASES, TABLE};
use results::terminal::{beside, width};
use serde_json::json;

use crate::refuse;

/// The greatest width of the text, in columns.
const WIDTH: usize = 88;

/// List the settings with their meaning, type, default and present value.
///
/// Settings are environment variables; `fishplate run -x NAME=VALUE` sets one for a job. Some
/// variables of MVAPICH (MV2_...) are aliases; a FISHPLATE_ variable wins over its alias.
#[derive(Args)]
#[command(
    after_help = "Example:\n  fishplate knobs\n  FISHPLATE_EAGER_LIMIT=64K fishplate knobs --json"
)]
pub(crate) struct KnobsArguments {
    /// Print one JSON object per line, for all settings
    #[arg(long)]
    json: bool,
    /// Print the settings, too, by which studies imitate other libraries or measure one part
    #[arg(long)]
    all: bool,
}

pub(crate) fn main(arguments: KnobsArguments) -> ExitCode {
    let vars: Vec<(String, String)> = knobs::decode(std::env::vars_os()).collect();
    let set = Knobs::parse(vars.iter().cloned());
    let now = set.clone().unwrap_or_default();
    for notice in knobs::notices(vars.into_iter()) {
        eprintln!("fishplate: {}", terminal_text::line(&notice));
    }
    if arguments.json {
        for knob in TABLE {
            say!("{}", object(knob, &now));
        }
    } else {
        let is_shown = |knob: &&Knob| arguments.all || !knob.is_for_studies;
        let shown = TABLE.iter().filter(is_shown);
        shown.for_each(|knob| print(knob, &now));
        if !arguments.all {
            tell!(
                "`fishplate knobs --all` has also those by which studies imitate other libraries.\n"
            );
        }
        tell!("Variables of MVAPICH; a FISHPLATE_ variable wins over its alias:");
        for row in MV2_ALIASES {
            let text = format!("{}\n{}", row.setting, row.doc);
            let label = format!("    {}", row.env);
            say!("{}", beside(&label, 42, &text, width()));
        }
        tell!("\nSet by the launcher for each rank, never by hand:");
        CONTRACT.iter().for_each(|row| {
            let label = format!("    {}", row.env);
            say!("{}", beside(&label, 28, row.doc, width()));
        });
    }
    match set {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => refuse(&error.to_string()),
    }
}

fn object(knob: &Knob, now: &Knobs) -> serde_json::Value {
    let (least, most) = (knob.range)().unzip();
    json!({
        "name": knob.name,
        "variable": knob.env,
        "aliases": knob.aliases,
        "type": knob.kind,
        "default": (knob.default)(),
        "value": now.show(knob.name),
        "least": least,
        "most": most,
        "for_studies": knob.is_for_studies,
        "doc": knob.doc(),
    })
}

fn print(knob: &Knob, now: &Knobs) {
    let default = (knob.default)();
    let value = now.show(knob.name).unwrap_or_default();
    let mut facts = vec![knob.kind.to_string()];
    facts.extend((knob.range)().map(|(low, high)| format!("from {low} to {high}")));
    if value != default {
        facts.push(format!(
            "default {}",
            if default.is_empty() {
                "empty"
            } else {
                &default
            }
        ));
    }
    facts.extend(knob.aliases.iter().map(|alias| format!("also {alias}")));
    tell!("{}={value}    ({})", knob.env, facts.join("; "));
    let width = width().map_or(WIDTH, |width| width.min(WIDTH));
    say!("{}\n", beside("", 4, &knob.doc(), Some(width)));
}
