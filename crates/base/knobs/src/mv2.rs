//! The variables of MVAPICH. Readers of "Dual-Rail QDR as an Alternative to FDR Infiniband" type
//! them.

use crate::value::KnobValue;
use crate::{Error, MOST_RAILS, TABLE};

/// The prefix of the variables of MVAPICH.
pub(crate) const PREFIX: &str = "MV2_";

/// An `MV2_` variable with a meaning here.
#[derive(Debug, Clone, Copy)]
pub struct Mv2Alias {
    /// The variable.
    pub env: &'static str,
    /// The variable of this project that it is an alias of.
    pub setting: &'static str,
    /// The meaning of its values.
    pub doc: &'static str,
}

const fn alias(env: &'static str, setting: &'static str, doc: &'static str) -> Mv2Alias {
    Mv2Alias { env, setting, doc }
}

/// The `MV2_` variables with a meaning here.
pub const MV2_ALIASES: &[Mv2Alias] = &[
    alias(RAILS, "FISHPLATE_RAILS", "the number of rails"),
    alias(
        HCAS,
        "FISHPLATE_RAILS",
        "devices; times ports, 1 if not set",
    ),
    alias(
        PORTS,
        "FISHPLATE_RAILS",
        "ports of each device; times devices, 1 if not set",
    ),
    alias(POLICIES[0], "FISHPLATE_RAIL_POLICY", POLICY_EXPECTED),
    alias(POLICIES[1], "FISHPLATE_RAIL_POLICY", POLICY_EXPECTED),
    alias(
        "MV2_RAIL_SHARING_LARGE_MSG_THRESHOLD",
        "FISHPLATE_STRIPE_THRESHOLD",
        "bytes",
    ),
    alias(
        "MV2_STRIPING_THRESHOLD",
        "FISHPLATE_STRIPE_THRESHOLD",
        "bytes",
    ),
    alias("MV2_IBA_EAGER_THRESHOLD", "FISHPLATE_EAGER_LIMIT", "bytes"),
    alias("MV2_VBUF_TOTAL_SIZE", "FISHPLATE_RDMA_CHUNK", "bytes"),
];

const RAILS: &str = "MV2_NUM_RAILS";
const HCAS: &str = "MV2_NUM_HCAS";
const PORTS: &str = "MV2_NUM_PORTS";

/// The variables whose values are words.
const POLICIES: [&str; 2] = ["MV2_RAIL_SHARING_POLICY", "MV2_SM_SCHEDULING"];
/// Their values, and those of FISHPLATE_RAIL_POLICY. PROCESS_BINDING is an old name of
/// FIXED_MAPPING.
const POLICY_WORDS: [(&str, &str); 4] = [
    ("USE_FIRST", "stripe"),
    ("ROUND_ROBIN", "round-robin"),
    ("FIXED_MAPPING", "fixed"),
    ("PROCESS_BINDING", "fixed"),
];
const POLICY_EXPECTED: &str =
    "USE_FIRST (stripe), ROUND_ROBIN (round-robin) or FIXED_MAPPING (fixed)";

/// The value of one of our settings for an `MV2_` variable.
pub(crate) struct Translated {
    /// The variable: an alias of the setting.
    pub(crate) alias: String,
    /// The variables as messages name them.
    pub(crate) typed: String,
    /// The value, as written for the setting.
    pub(crate) value: String,
}

/// Translates those of these variables that have a meaning here.
pub(crate) fn translate(vars: &[(String, String)]) -> Result<Vec<Translated>, Error> {
    let text = |name| vars.iter().find(|(variable, _)| variable == name);
    let product = match (text(HCAS), text(PORTS)) {
        (Some((_, hcas)), Some((_, ports))) => Some(product(hcas, ports)?),
        _ => None,
    };
    let in_product = |name: &str| product.is_some() && [HCAS, PORTS].contains(&name);
    let single = vars
        .iter()
        .filter(|(variable, _)| is_known(variable) && !in_product(variable))
        .map(|(variable, text)| {
            Ok(Translated {
                alias: variable.clone(),
                typed: variable.clone(),
                value: value(variable, text)?,
            })
        });
    let mut all = single.collect::<Result<Vec<Translated>, Error>>()?;
    all.extend(product);
    Ok(all)
}

fn value(variable: &str, text: &str) -> Result<String, Error> {
    if [RAILS, HCAS, PORTS].contains(&variable) {
        return count(variable, text).map(|count| count.to_string());
    }
    if !POLICIES.contains(&variable) {
        return Ok(text.to_string());
    }
    let known = POLICY_WORDS
        .iter()
        .find(|(word, _)| word.eq_ignore_ascii_case(text));
    match known {
        Some((_, policy)) => Ok(policy.to_string()),
        None => Err(Error::invalid(variable, text, POLICY_EXPECTED)),
    }
}

/// Devices times ports, as a number of rails.
fn product(hcas: &str, ports: &str) -> Result<Translated, Error> {
    let rails = count(HCAS, hcas)? * count(PORTS, ports)?;
    if rails > MOST_RAILS {
        let expected = format!("at most {MOST_RAILS} rails: devices times ports");
        let typed = format!("{HCAS}={hcas} {PORTS}");
        return Err(Error::invalid(&typed, ports, &expected));
    }
    Ok(Translated {
        alias: HCAS.into(),
        typed: format!("{HCAS} times {PORTS}"),
        value: rails.to_string(),
    })
}

fn count(variable: &str, text: &str) -> Result<usize, Error> {
    let count = usize::parse(text).filter(|count| (1..=MOST_RAILS).contains(count));
    count.ok_or_else(|| {
        let expected = format!("a number from 1 to {MOST_RAILS}");
        Error::invalid(variable, text, &expected)
    })
}

/// True if the variable sets one of our settings.
fn is_known(variable: &str) -> bool {
    variable.starts_with(PREFIX) && TABLE.iter().any(|knob| knob.answers_to(variable))
}

/// Messages for the user about `MV2_` variables without effect: those without meaning here, in one
/// line, and those whose setting a `FISHPLATE_` variable sets.
pub fn notices(vars: impl Iterator<Item = (String, String)>) -> Vec<String> {
    let mut set: Vec<String> = vars
        .filter(|(_, text)| !text.trim().is_empty())
        .map(|(variable, _)| variable)
        .collect();
    set.sort();
    set.dedup();
    let (known, unknown): (Vec<&String>, Vec<&String>) = set
        .iter()
        .filter(|variable| variable.starts_with(PREFIX))
        .partition(|variable| is_known(variable));
    let overridden = known.into_iter().filter_map(|alias| {
        let knob = TABLE.iter().find(|knob| knob.answers_to(alias))?;
        let names = std::iter::once(&knob.env).chain(knob.aliases);
        let winner = names
            .filter(|name| !name.starts_with(PREFIX))
            .find(|name| set.iter().any(|variable| variable == *name))?;
        Some(format!("{alias} has no effect: {winner} is set and wins"))
    });
    let mut notices: Vec<String> = overridden.collect();
    if !unknown.is_empty() {
        let names: Vec<&str> = unknown.into_iter().map(String::as_str).collect();
        notices.push(format!(
            "ignored, because without meaning here: {} (`fishplate knobs` names the MV2_ variables \
             that have one)",
            names.join(", ")
        ));
    }
    notices
}
