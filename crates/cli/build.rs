//! Says in one line that the program is for Unix, in place of all the errors that its parts would cause.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_CFG_UNIX").is_none() {
        println!(
            "cargo::error=the program `leasehold` needs process groups and signals of Unix: on Windows, install it \
             in WSL; the library `leasehold` needs neither"
        );
    }
}
