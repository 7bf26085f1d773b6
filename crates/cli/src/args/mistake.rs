use std::ffi::OsString;

use clap::{
    CommandFactory, Error,
    error::{ContextKind, ContextValue, ErrorKind},
};

use super::Program;
use crate::ending::CliError;

/// A mistake on the command line in one line: what is wrong, and where help is. The words are those
/// behind the name of the program.
pub(crate) fn mistake(error: &Error, words: impl IntoIterator<Item = OsString>) -> CliError {
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand
    ) {
        return CliError::usage(
            "no command is given: write leasehold run NAME -- COMMAND, or see leasehold --help",
        );
    }
    if misses_command(error) {
        return CliError::usage(
            "the command is missing: write it behind --, as in leasehold run NAME -- COMMAND; see leasehold run --help",
        );
    }
    let text = error.to_string();
    let body = text.split("\n\nUsage: ").next().unwrap_or_default();
    let body = body.split("\n\nFor more information").next().unwrap_or_default();
    let command = command(words);
    let is_run = command.as_deref() == Some("run");
    let body = body.replace("\n  tip:", "\n\n  tip:");
    let has_similar = body.contains("tip: a similar");
    let is_number = (0..=9).any(|digit| body.contains(&format!("to pass '-{digit}")));
    // In a run, what stands behind -- is the command: what looks like an option cannot be a name.
    let told = body.split("\n\n").map(str::trim).filter_map(|part| {
        match is_run && part.starts_with("tip: to pass") {
            true if has_similar => None,
            true if is_number => {
                Some("a time cannot be negative, and run takes no lock whose name begins with -")
            }
            true => Some("run takes no lock whose name begins with -"),
            false => Some(part),
        }
    });
    let body = told.collect::<Vec<_>>().join("; ");
    let body = body.split_whitespace().collect::<Vec<_>>().join(" ");
    let body = body.strip_prefix("error: ").unwrap_or(&body);
    let help = command.map_or_else(String::new, |command| format!("{command} "));
    CliError::usage(format!("{body}; see leasehold {help}--help"))
}

fn misses_command(error: &Error) -> bool {
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else {
        return false;
    };
    error.kind() == ErrorKind::MissingRequiredArgument
        && missing.iter().any(|argument| argument.contains("<COMMAND>"))
}

/// The command among the words, whatever else is wrong with them.
fn command(words: impl IntoIterator<Item = OsString>) -> Option<String> {
    let program = Program::command();
    let words = words.into_iter().filter_map(|word| word.into_string().ok());
    let mut words = words.take_while(|word| word != "--");
    words.find(|word| program.find_subcommand(word).is_some())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::Program;

    fn told(words: &str) -> String {
        let error = Program::try_parse_from(words.split(' ')).unwrap_err();
        mistake(&error, words.split(' ').skip(1).map(OsString::from)).text
    }

    #[test]
    fn a_tip_is_a_part_of_the_line() {
        let text = told("leasehold show -x");
        assert!(text.contains("found; tip: to pass"), "{text}");
        assert!(text.ends_with("; see leasehold show --help"), "{text}");
    }

    #[test]
    fn a_run_is_not_told_to_write_a_name_behind_the_dashes() {
        let text = told("leasehold run -x -- true");
        assert_eq!(
            text,
            "unexpected argument '-x' found; run takes no lock whose name begins with -; see leasehold run --help"
        );
    }

    #[test]
    fn an_option_that_is_misspelt_is_named() {
        let text = told("leasehold run --tt 5s x -- true");
        assert!(text.contains("'--ttl'; see leasehold run --help"), "{text}");
    }

    #[test]
    fn the_help_is_that_of_the_command() {
        for (words, help) in [
            ("run --ttl 5 x -- true", "run --help"),
            ("--url redis://h run --ttl 5 x -- ls", "run --help"),
            ("bench --time 5", "bench --help"),
            ("fly -- run", "leasehold --help"),
        ] {
            let text = told(&format!("leasehold {words}"));
            assert!(text.ends_with(help), "{text}");
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let text = told("leasehold --tls-cert x ls");
        assert!(text.contains("--tls-key"), "{text}");
        assert!(told("leasehold run x").contains("behind --"));
    }
}
