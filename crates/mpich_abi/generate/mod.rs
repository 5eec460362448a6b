//! The generators of what this library has for every procedure and every constant. Their inputs are
//! the tables of `abi` and this crate's `constants.txt`.

pub(crate) mod constants;
pub(crate) mod entry;
pub(crate) mod parameter;
pub(crate) mod pool;
pub(crate) mod signature;
pub(crate) mod standard;
