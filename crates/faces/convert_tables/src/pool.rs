//! The instances of a function that has a number as parameter.

use std::fmt::Write;

/// The number of instances.
const MOST: usize = 256;

/// The text of a macro that makes an array of all instances.
pub(crate) fn generate() -> String {
    let mut instances = String::new();
    for number in 0..MOST {
        write!(instances, "$function::<{number}>, ").unwrap();
    }
    format!(
        "/// The functions of each kind that a program may have.\npub(crate) const MOST: usize = {MOST};\n\
         macro_rules! instances {{\n    ($function:ident) => {{ [{instances}] }};\n}}\n\
         #[allow(unused_imports)]\npub(crate) use instances;\n"
    )
}
