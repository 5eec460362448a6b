//! Generates the calls of the C library and the constants from the tables.

fn main() {
    fortran_tables::write_shared();
}
