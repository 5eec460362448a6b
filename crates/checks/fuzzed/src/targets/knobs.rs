//! Fuzz target: the parser of the settings of the environment, as lines of `NAME=VALUE`.
//!
//! The promise: settings that are read can be shown, and an error names its variable.

use knobs::{Knobs, MV2_ALIASES, TABLE, notices};

pub(crate) fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.lines().filter_map(|line| line.split_once('='));
    // A number stands for the name of a setting or an alias, so that values are reached.
    let settings = TABLE.iter().map(|knob| knob.env);
    let known: Vec<&str> = settings.chain(MV2_ALIASES.iter().map(|alias| alias.env)).collect();
    let named = |(name, value): (&str, &str)| {
        let number = name.parse::<usize>();
        let known = number.ok().and_then(|number| known.get(number));
        (known.unwrap_or(&name).to_string(), value.to_string())
    };
    let variables: Vec<(String, String)> = lines.map(named).collect();
    notices(variables.iter().cloned());
    match Knobs::parse(variables.iter().cloned()) {
        Ok(knobs) => {
            for knob in TABLE {
                assert!(knobs.show(knob.name).is_some(), "{}", knob.name);
            }
        }
        Err(why) => {
            let why = why.to_string();
            let names = |(name, _): &(String, String)| why.contains(name.as_str());
            assert!(variables.iter().any(names), "{why}");
        }
    }
}
