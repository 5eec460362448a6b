//! Generates the entry points of the recorded procedures with large counts.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    convert_tables::write_recorded("entry.rs", true);
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libfishplate_record_large.so");
}
