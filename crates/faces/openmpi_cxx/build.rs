//! Sets the name of the shared library.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmpi_cxx.so.40");
}
