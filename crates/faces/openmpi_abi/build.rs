//! Generates the entry points, the constants and the objects of handles, and names the shared
//! library.

fn main() {
    old_abi::build("libmpi.so.40");
}
