use clap::{
    Error,
    error::{ContextKind, ContextValue, ErrorKind},
};

use crate::ending::CliError;

/// A mistake on the command line in one line: what is wrong, and where help is.
pub(crate) fn mistake(error: &Error) -> CliError {
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
    let (body, usage) = text.split_once("\n\nUsage: ").unwrap_or((&text, ""));
    let help = help(usage);
    let body = body.split("\n\nFor more information").next().unwrap_or_default();
    let paragraphs = body.split("\n\n").map(str::trim);
    // In a run, what stands behind -- is the command: what looks like an option cannot be a name.
    let is_run = help == "leasehold run --help";
    let told = paragraphs.filter(|part| !(is_run && part.starts_with("tip: to pass")));
    let body = told.collect::<Vec<_>>().join("; ");
    let body = body.split_whitespace().collect::<Vec<_>>().join(" ");
    let body = body.strip_prefix("error: ").unwrap_or(&body);
    CliError::usage(format!("{body}; see {help}"))
}

fn misses_command(error: &Error) -> bool {
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else {
        return false;
    };
    error.kind() == ErrorKind::MissingRequiredArgument
        && missing.iter().any(|argument| argument.contains("<COMMAND>"))
}

/// How to ask for the help that belongs to a usage, such as `leasehold run [OPTIONS] <NAME>...`.
fn help(usage: &str) -> String {
    let is_name = |word: &&str| word.starts_with(|first: char| first.is_ascii_lowercase());
    let names: Vec<_> = usage.split_whitespace().take_while(is_name).collect();
    if names.is_empty() { "leasehold --help".into() } else { format!("{} --help", names.join(" ")) }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::Program;

    fn told(words: &str) -> String {
        mistake(&Program::try_parse_from(words.split(' ')).unwrap_err()).text
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
        assert_eq!(text, "unexpected argument '-x' found; see leasehold run --help");
    }

    #[test]
    fn what_is_missing_is_named() {
        let text = told("leasehold --tls-cert x ls");
        assert!(text.contains("--tls-key"), "{text}");
        assert!(told("leasehold run x").contains("behind --"));
    }
}
