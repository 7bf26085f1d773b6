use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use crate::ending::{Cause, CliError};

/// The greatest size of a password file, in bytes.
const LONGEST: u64 = 65_536;

/// The password in a file, without the line breaks at its end.
pub(super) fn in_file(path: &Path) -> Result<String, CliError> {
    let shown = path.display();
    let failed = |error: io::Error| {
        let text = format!(
            "--password-file: {shown} cannot be read ({error}): name a file that this user may read"
        );
        CliError::new(Cause::Config, text)
    };
    // Reads one byte too many, to notice a file that is too long, and no more: `/dev/zero` has no end.
    let mut password = String::new();
    let file = File::open(path).map_err(failed)?;
    file.take(LONGEST + 1).read_to_string(&mut password).map_err(failed)?;
    if password.len() as u64 > LONGEST {
        let text = format!(
            "--password-file: {shown} is longer than {LONGEST} bytes: name a file with a password"
        );
        return Err(CliError::new(Cause::Config, text));
    }
    let password = password.trim_end_matches(['\r', '\n']);
    if password.is_empty() {
        let text = format!("--password-file: {shown} is empty: write the password into it");
        return Err(CliError::new(Cause::Config, text));
    }
    Ok(password.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_password_is_read_without_its_line_break() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        assert_eq!(in_file(&path).unwrap_err().cause, Cause::Config);
        fs::write(&path, "\n").unwrap();
        assert!(in_file(&path).unwrap_err().text.contains("empty"));
        assert!(in_file(Path::new("/dev/zero")).unwrap_err().text.contains("longer"));
        fs::write(&path, " hush hush \r\n").unwrap();
        assert_eq!(in_file(&path).unwrap(), " hush hush ");
    }
}
