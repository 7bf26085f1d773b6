use std::{
    env,
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, ErrorKind, Read as _},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use leasehold::printable;
use nix::{
    sys::signal::{SigSet, Signal},
    unistd::close,
};
use serde_json::json;

use crate::output::tell;

/// The exit codes of a command that cannot be run, as in shells.
const NOT_RUNNABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Waits for its order, and becomes the command.
///
/// The order comes through the pipe that the first word names: the variables, in JSON. If the pipe ends
/// before they do, the lock was not acquired, or this program was killed: nothing is run.
pub(crate) fn start(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let (Some(pipe), Some(program)) = (words.next(), words.next()) else {
        return ExitCode::FAILURE;
    };
    let order = pipe.to_str().and_then(|pipe| pipe.parse().ok()).and_then(|pipe| read(pipe).ok());
    let Some(variables) = order.as_deref().and_then(variables) else { return ExitCode::FAILURE };
    become_command(Command::new(&program).args(words).envs(variables)).into()
}

/// The order to begin, with these variables.
pub(super) fn order(variables: &[(&str, String)]) -> String {
    json!(variables).to_string()
}

/// The variables of a complete order.
fn variables(order: &str) -> Option<Vec<(String, String)>> {
    serde_json::from_str(order).ok()
}

/// Becomes a command. Returns the exit code if that fails, and says why.
pub(super) fn become_command(command: &mut Command) -> u8 {
    let error = command.exec();
    // The attempt has made a closed pipe deadly, as commands expect it: the line would end this process.
    let _ = SigSet::from(Signal::SIGPIPE).thread_block();
    let program = command.get_program();
    let is_missing = error.kind() == ErrorKind::NotFound;
    let why = match interpreter(program).filter(|_| is_missing) {
        Some(interpreter) if interpreter.ends_with('\r') => {
            "its first line ends with a carriage return, which the system takes for a part of the interpreter's name: \
             give the script line ends of Unix (LF)"
                .into()
        }
        Some(interpreter) => {
            format!("its interpreter {} is missing", printable(&interpreter))
        }
        None => error.to_string(),
    };
    tell(&format!("cannot run {}: {why}", printable(&program.to_string_lossy())));
    if is_missing { NOT_FOUND } else { NOT_RUNNABLE }
}

/// The interpreter that the first line of a script names.
fn interpreter(program: &OsStr) -> Option<String> {
    let folders = env::var_os("PATH").unwrap_or_default();
    let mut files = match Path::new(program).components().count() {
        1 => env::split_paths(&folders).map(|folder| folder.join(program)).collect(),
        _ => vec![PathBuf::from(program)],
    };
    files.retain(|file| file.is_file());
    let mut begin = Vec::new();
    File::open(files.first()?).ok()?.take(256).read_to_end(&mut begin).ok()?;
    let begin = String::from_utf8_lossy(&begin).into_owned();
    let line = begin.strip_prefix("#!")?.split('\n').next()?;
    line.trim_start_matches(' ').split(' ').next().map(str::to_owned)
}

/// Reads the whole order. The command does not inherit the pipe.
fn read(pipe: i32) -> io::Result<String> {
    let reader = File::open(format!("/dev/fd/{pipe}"))?;
    close(pipe)?;
    io::read_to_string(reader)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_as_it_was_written() {
        let written = [("A", "1=2\n3".to_owned()), ("B", String::new())];
        let order = order(&written);
        let read = variables(&order).unwrap();
        assert_eq!(read, written.map(|(name, value)| (name.to_owned(), value)));
        assert_eq!(variables(&super::order(&[])), Some(Vec::new()));
    }

    #[test]
    fn an_order_that_was_cut_off_begins_nothing() {
        let order = order(&[("A", "1".into()), ("B", "2".into())]);
        for end in 0..order.len() {
            assert_eq!(variables(&order[..end]), None, "{end}");
        }
    }
}
