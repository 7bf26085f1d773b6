use clap::{Error, error::ErrorKind};

use crate::ending::Failure;

/// A mistake on the command line in one line: what is wrong, and where help is.
pub(super) fn mistake(error: &Error) -> Failure {
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand
    ) {
        return Failure::usage(
            "no command is given: write leasehold run NAME -- COMMAND, or see leasehold --help",
        );
    }
    let text = error.to_string();
    if error.kind() == ErrorKind::MissingRequiredArgument && text.contains("<COMMAND>") {
        return Failure::usage(
            "the command is missing: write it behind --, as in leasehold run NAME -- COMMAND; see leasehold run --help",
        );
    }
    let body = text.split("\n\nUsage:").next().unwrap_or_default();
    let body = body.split("\n\nFor more information").next().unwrap_or_default();
    let words: Vec<_> = body.split_whitespace().collect();
    let body = words.join(" ");
    let body = body.strip_prefix("error: ").unwrap_or(&body);
    Failure::usage(format!("{body}; see leasehold --help"))
}
