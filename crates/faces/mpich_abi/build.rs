//! Generates the entry points and the constants, and sets the name of the shared library.

fn main() {
    convert_tables::build("libmpi.so.12", convert_tables::mpich());
}
