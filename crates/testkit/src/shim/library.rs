use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Builds a library of a C source in a folder, for other processes to preload.
///
/// # Panics
///
/// Panics if there is no `cc`, or if it does not build the library.
pub(super) fn build(folder: &Path, name: &str, text: &str) -> PathBuf {
    let (source, library) = (folder.join(format!("{name}.c")), folder.join(format!("{name}.so")));
    fs::write(&source, text).expect("a new folder takes a file");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o"]).arg(&library).arg(source);
    let output = compiler.output().unwrap_or_else(|error| {
        panic!("cc does not start ({error}); install a C compiler, as Rust needs one to link, too")
    });
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cc does not build {name}.c: {said}");
    library
}
