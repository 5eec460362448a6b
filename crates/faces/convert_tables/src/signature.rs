//! Generator of the signature of a form of a procedure in Rust.

use tables::table::Procedure;

pub(crate) struct Signature {
    /// Names and types of the function's parameters, as text.
    pub(crate) parameters: String,
    /// The names of the function's parameters, as text.
    pub(crate) names: String,
    /// The types of the function's parameters, as text.
    pub(crate) types: String,
    /// The type of the function's result, as text.
    pub(crate) returns: &'static str,
}

impl Signature {
    pub(crate) fn of(procedure: &Procedure, large: bool) -> Signature {
        let parameters = procedure.parameters(large);
        let parameters: Vec<_> = parameters.filter(|p| p.kind.word() != "...").collect();
        let types: Vec<_> = parameters.iter().map(|p| p.rust(large)).collect();
        let names: Vec<_> = parameters.iter().map(|p| p.name.as_str()).collect();
        let both = names.iter().zip(&types);
        let both: Vec<_> = both.map(|(name, of)| format!("{name}: {of}")).collect();
        Signature {
            parameters: both.join(", "),
            names: names.join(", "),
            types: types.join(", "),
            returns: procedure.returns.map_or("c_int", |kind| kind.rust(large)),
        }
    }
}
