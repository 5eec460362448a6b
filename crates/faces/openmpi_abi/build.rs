//! Generates the entry points, the constants and the objects of handles, and sets the name of the
//! shared library.

fn main() {
    convert_tables::build("libmpi.so.40", convert_tables::openmpi());
}
