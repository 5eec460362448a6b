//! The `MV2_` variables of MVAPICH that set settings of this library. They are accepted for users
//! who repeat published experiments, such as "Dual-Rail QDR as an Alternative to FDR Infiniband".

use crate::value::KnobValue;
use crate::{Error, MOST_RAILS, TABLE};

/// The prefix of MVAPICH's variables.
pub(crate) const PREFIX: &str = "MV2_";

/// An `MV2_` variable that sets a setting of this library.
#[derive(Debug, Clone, Copy)]
pub struct Mv2Alias {
    /// The name of the variable.
    pub env: &'static str,
    /// The `FISHPLATE_` variable that this one is an alias of.
    pub setting: &'static str,
    /// The meaning of the variable's values.
    pub doc: &'static str,
}

const fn alias(env: &'static str, setting: &'static str, doc: &'static str) -> Mv2Alias {
    Mv2Alias { env, setting, doc }
}

/// All `MV2_` variables that set settings of this library.
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

/// The variables with named values.
const POLICIES: [&str; 2] = ["MV2_RAIL_SHARING_POLICY", "MV2_SM_SCHEDULING"];
/// The named values, each with its value of FISHPLATE_RAIL_POLICY. PROCESS_BINDING is an old name
/// of FIXED_MAPPING.
const POLICY_WORDS: [(&str, &str); 4] = [
    ("USE_FIRST", "stripe"),
    ("ROUND_ROBIN", "round-robin"),
    ("FIXED_MAPPING", "fixed"),
    ("PROCESS_BINDING", "fixed"),
];
const POLICY_EXPECTED: &str =
    "USE_FIRST (stripe), ROUND_ROBIN (round-robin) or FIXED_MAPPING (fixed)";

/// A setting of this library, set by one or two `MV2_` variables.
pub(crate) struct Translated {
    /// The `MV2_` variable that is an alias of the setting.
    pub(crate) alias: String,
    /// The `MV2_` variables as the user knows them, for messages.
    pub(crate) typed: String,
    /// The value, in the form of the setting.
    pub(crate) value: String,
}

/// Translates the variables that set settings of this library, and ignores all others.
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

/// Multiplies devices by ports, which gives the number of rails.
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

/// True if the `MV2_` variable sets a setting of this library.
fn is_known(variable: &str) -> bool {
    variable.starts_with(PREFIX) && TABLE.iter().any(|knob| knob.answers_to(variable))
}

/// Messages for the user about `MV2_` variables without effect: one line for all that set no
/// setting, and a line for each whose setting a `FISHPLATE_` variable sets.
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
