//! Generates the entry points and the constants, and names the shared library.

fn main() {
    old_abi::build("libmpi.so.12");
}
