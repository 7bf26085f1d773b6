use leasehold::{error::AddressPart, redis::RedisAddress};

use crate::{args::ServerArgs, ending::CliError};

/// Where the server is: from `--url`, or else from the value of `REDIS_URL`.
///
/// Everybody on a machine may read the command line of every process, so an address there may not
/// have a password.
// ADR 0046
pub(crate) fn address(
    args: &ServerArgs,
    redis_url: Option<String>,
) -> Result<RedisAddress, CliError> {
    let (url, from) = match (&args.url, redis_url) {
        (Some(url), _) => (url.clone(), "--url"),
        (None, Some(url)) if !url.trim().is_empty() => (url, "REDIS_URL"),
        _ => {
            return Err(CliError::usage(
                "no server is named: set REDIS_URL, or write --url redis://HOST:6379",
            ));
        }
    };
    let address = RedisAddress::parse(&url).map_err(|error| {
        let is_of_sentinels = url.contains("sentinel_user=") || url.contains("sentinel_pass=");
        let login = match error.part() {
            AddressPart::Login if is_of_sentinels => {
                "; the login of Sentinels is read from REDIS_URL alone"
            }
            AddressPart::Login => "; or name the user by --user, and give the password by REDIS_PASSWORD or --password-file",
            _ => "",
        };
        CliError::usage(format!("{from}: {error}{login}"))
    })?;
    if from == "--url" && address.has_password() {
        // Sentinels have a password of their own, for which there is no option.
        let instead = if has_password_of_sentinels(&address) {
            "give the whole address by REDIS_URL, because the password of Sentinels is read from there alone; that of \
             the server may come by REDIS_PASSWORD or --password-file, too"
                .into()
        } else {
            format!(
                "write --url {address}, and give the password by REDIS_PASSWORD or --password-file, or the whole \
                 address by REDIS_URL"
            )
        };
        return Err(CliError::usage(format!(
            "--url: every user of this machine can read a password there: {instead}; and change the password"
        )));
    }
    Ok(address)
}

fn has_password_of_sentinels(address: &RedisAddress) -> bool {
    let mut sentinels = address.sentinels().into_iter().flat_map(|group| &group.sentinels);
    sentinels.any(|one| one.redis_settings().password().is_some())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::{args::Program, ending::Cause};

    fn read(url: Option<&str>, variable: Option<&str>) -> Result<String, CliError> {
        let words = ["leasehold", "man"].map(str::to_owned).into_iter();
        let url = url.map(|url| format!("--url={url}"));
        let args = Program::parse_from(words.chain(url)).server;
        address(&args, variable.map(str::to_owned)).map(|address| address.to_string())
    }

    #[test]
    fn the_option_counts_before_the_variable() {
        assert_eq!(read(Some("redis://a"), Some("redis://b")).unwrap(), "redis://a:6379/0");
        assert_eq!(read(None, Some("redis://:pw@b")).unwrap(), "redis://b:6379/0");
    }

    #[test]
    fn a_missing_or_bad_address_is_a_mistake_of_the_caller() {
        for (url, variable) in
            [(None, None), (None, Some(" ")), (Some("localhost"), None), (None, Some("http://h"))]
        {
            let failure = read(url, variable).unwrap_err();
            assert_eq!(failure.cause, Cause::Usage);
            assert!(failure.text.contains("redis://"), "{}", failure.text);
        }
    }

    #[test]
    fn a_password_on_the_command_line_is_refused_and_not_repeated() {
        for url in [
            "redis://:hush@h",
            "redis+sentinel://a/m?sentinel_pass=hush",
            "redis+unix:///s?pass=hush",
        ] {
            let failure = read(Some(url), None).unwrap_err();
            assert_eq!(failure.cause, Cause::Usage);
            assert!(failure.text.contains("REDIS_PASSWORD"), "{}", failure.text);
            assert!(!failure.text.contains("hush"), "{}", failure.text);
            let leads_to_url = failure.text.contains("whole address by REDIS_URL, because");
            assert_eq!(leads_to_url, url.contains("sentinel_pass"), "{}", failure.text);
        }
    }
}
