//! Symbols of Python are found when the package is loaded; on macOS the linker wants to be told.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
