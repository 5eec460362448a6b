//! Generates the calls of the standard ABI and the constants from the tables.

fn main() {
    convert_tables::build_shared();
}
