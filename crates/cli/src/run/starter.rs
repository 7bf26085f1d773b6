use std::{
    ffi::OsString,
    fs::File,
    io::{self, ErrorKind, Read},
    os::unix::{ffi::OsStringExt, process::CommandExt},
    process::{Command, ExitCode},
};

use nix::{
    sys::signal::{SigSet, Signal},
    unistd::close,
};

use crate::{ending::tell, words::printable};

/// The exit codes of a command that cannot be run, as in shells.
const NOT_RUNNABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Waits for its order, and becomes the command.
///
/// The order comes through the pipe that the first word names: `NAME=VALUE` of each variable, each
/// with a zero byte behind it, and one more zero byte. If the pipe ends before that, the lock was not
/// acquired, or this program was killed: nothing is run.
pub(crate) fn start(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let (Some(pipe), Some(program)) = (words.next(), words.next()) else {
        return ExitCode::FAILURE;
    };
    let Some(order) =
        pipe.to_str().and_then(|pipe| pipe.parse().ok()).and_then(|pipe| read(pipe).ok())
    else {
        return ExitCode::FAILURE;
    };
    let Some(variables) = variables(&order) else { return ExitCode::FAILURE };
    become_command(Command::new(&program).args(words).envs(variables)).into()
}

/// Becomes a command. Returns the exit code if that fails, and says why.
pub(super) fn become_command(command: &mut Command) -> u8 {
    let error = command.exec();
    // The attempt has made a closed pipe deadly, as commands expect it: the line would end this process.
    let mut closed_pipe = SigSet::empty();
    closed_pipe.add(Signal::SIGPIPE);
    let _ = closed_pipe.thread_block();
    tell(format!("cannot run {}: {error}", printable(&command.get_program().to_string_lossy())));
    if error.kind() == ErrorKind::NotFound { NOT_FOUND } else { NOT_RUNNABLE }
}

/// Reads the whole order. The command does not inherit the pipe.
fn read(pipe: i32) -> io::Result<Vec<u8>> {
    let mut reader = File::open(format!("/dev/fd/{pipe}"))?;
    close(pipe)?;
    let mut order = Vec::new();
    reader.read_to_end(&mut order)?;
    Ok(order)
}

/// The variables of a complete order.
fn variables(order: &[u8]) -> Option<Vec<(OsString, OsString)>> {
    let complete = order.strip_suffix(b"\0")?;
    let Some(complete) = complete.strip_suffix(b"\0") else {
        return complete.is_empty().then(Vec::new);
    };
    let pairs = complete.split(|byte| *byte == 0).map(|pair| {
        let equals = pair.iter().position(|byte| *byte == b'=')?;
        let (name, value) = (&pair[..equals], &pair[equals + 1..]);
        Some((OsString::from_vec(name.into()), OsString::from_vec(value.into())))
    });
    pairs.collect()
}

/// The order to begin, with these variables.
pub(super) fn order(variables: &[(&str, String)]) -> Vec<u8> {
    let mut order = Vec::new();
    for (name, value) in variables {
        order.extend(format!("{name}={value}\0").bytes());
    }
    order.push(0);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_as_it_was_written() {
        let written = [("A", "1=2\n3".to_owned()), ("B", String::new())];
        let order = order(&written);
        let read = variables(&order).unwrap();
        let expected = written.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        assert_eq!(read, expected);
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
