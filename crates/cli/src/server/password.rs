use std::{
    fs::{self, File},
    io::{self, ErrorKind, Read as _},
    path::Path,
};

use crate::ending::CliError;

/// The greatest size of a password file, in bytes.
const LONGEST: u64 = 65_536;

/// The password in a file, without the line breaks at its end.
pub(super) fn in_file(path: &Path) -> Result<String, CliError> {
    const OPTION: &str = "--password-file";
    let failed = |error: io::Error| {
        let what = format!("cannot be read ({error}): name a file that this user may read");
        unusable(OPTION, path, &what)
    };
    // A pipe gives its text once, and blocks until then; a device may have no end.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        let what = "is a pipe, a folder or a device: name a file, it is read again for each connection; or set REDIS_PASSWORD";
        return Err(unusable(OPTION, path, what));
    }
    // Reads one byte too many, to notice a file that is too long, and no more.
    let mut password = String::new();
    let file = File::open(path).map_err(failed)?;
    file.take(LONGEST + 1).read_to_string(&mut password).map_err(|error| match error.kind() {
        ErrorKind::InvalidData => {
            unusable(OPTION, path, "is not valid UTF-8: write a password of text into it")
        }
        _ => failed(error),
    })?;
    if password.len() as u64 > LONGEST {
        let what = format!("is longer than {LONGEST} bytes: name a file with a password");
        return Err(unusable(OPTION, path, &what));
    }
    let password = password.trim_end_matches(['\r', '\n']);
    match flaw(password) {
        Some(what) => Err(unusable(OPTION, path, what)),
        None => Ok(password.to_owned()),
    }
}

/// What makes a password other than the one that was meant: a server refuses it, and does not say why.
fn flaw(password: &str) -> Option<&'static str> {
    let is_blank = |edge: char| edge.is_whitespace();
    if password.is_empty() {
        return Some("is empty: write the password into it");
    }
    if password.starts_with('\u{feff}') {
        return Some("begins with a byte order mark: save it as UTF-8 without one");
    }
    if password.contains(['\r', '\n']) {
        return Some("has several lines: write the password alone into it");
    }
    (password.starts_with(is_blank) || password.ends_with(is_blank)).then_some(
        "begins or ends with a blank: take it away, or give a password that has one by REDIS_PASSWORD",
    )
}

fn unusable(option: &str, file: &Path, what: &str) -> CliError {
    CliError::config(format!("{option}: {} {what}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ending::Cause;

    #[test]
    fn a_password_is_read_without_its_line_break() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        assert_eq!(in_file(&path).unwrap_err().cause, Cause::Config);
        assert!(in_file(folder.path()).unwrap_err().text.contains("a folder"));
        fs::write(&path, "\n").unwrap();
        assert!(in_file(&path).unwrap_err().text.contains("empty"));
        assert!(in_file(Path::new("/dev/zero")).unwrap_err().text.contains("a device"));
        fs::write(&path, "x".repeat(65_537)).unwrap();
        assert!(in_file(&path).unwrap_err().text.contains("longer"));
        for end in ["", "\n", "\r\n"] {
            fs::write(&path, format!("hush hush{end}")).unwrap();
            assert_eq!(in_file(&path).unwrap(), "hush hush");
        }
    }

    /// As editors, `echo` and copies leave it behind.
    #[test]
    fn what_is_no_part_of_a_password_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        for (text, says) in [
            ("\u{feff}hush\n", "byte order mark"),
            ("hush \n", "a blank"),
            ("hush\t", "a blank"),
            (" hush", "a blank"),
            ("hush\n \n", "several lines"),
            ("app\r\nhush\r\n", "several lines"),
        ] {
            fs::write(&path, text).unwrap();
            let failure = in_file(&path).unwrap_err();
            assert_eq!(failure.cause, Cause::Config);
            assert!(failure.text.contains(says), "{text:?}: {}", failure.text);
            assert!(!failure.text.contains("hush"), "{}", failure.text);
        }
    }
}
