use std::{ffi::OsString, fmt, sync::Arc, time::Duration};

use leasehold_core::{FenceSettings, NamePattern, duration};

use super::{builder::LockRuntimeBuilder, strictness::Strictness};

/// Settings of a [`LockRuntimeBuilder`] as texts have them: a file of the service, or its environment.
///
/// With the feature `serde` it is `Deserialize`, from a map of names and values. A name that is no setting
/// is an error.
///
/// # Names
///
/// Each is named as the method of [`LockRuntimeBuilder`] that sets it.
///
/// - Times, written as `250ms`, `30s`, `1m30s` or `7d`: `blocked_after` (or `never`), `claim_window`,
///   `command_timeout`, `connect_timeout`, `keep_idle`, `outage_patience`, `ttl` and `wait`; and
///   `retention`, that of [`fencing`](LockRuntimeBuilder::fencing).
/// - `retention_of`, the retention of names that match patterns, written as `jobs/*=1h, mails/*=1d`; for a
///   `,` in a pattern, write `?`.
/// - Texts: `namespace` and `service`.
/// - `connections`, a number; `own_thread`, `true` or `false`; `strictness`: `ignore`, `warn` or `refuse`.
///
/// The address, logins and certificates are no settings: pass them to the builder.
///
/// ```
/// # #[cfg(feature = "serde")]
/// # fn read() -> Result<(), Box<dyn std::error::Error>> {
/// use leasehold::{LockRuntime, Settings};
///
/// // As a part of the settings of a service, in any format of serde.
/// let settings: Settings = serde_json::from_str(r#"{ "ttl": "10s", "keep_idle": "250ms" }"#)?;
/// let builder = LockRuntime::builder().settings(settings);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Settings(Vec<(&'static str, Change)>);

/// What a setting does to a builder.
type Change = Arc<dyn Fn(LockRuntimeBuilder) -> LockRuntimeBuilder + Send + Sync>;

/// Reads the value of a setting; an error says what to write.
type Reader = fn(&str) -> Result<Change, String>;

const KNOWN: [(&str, Reader); 15] = [
    ("blocked_after", |text| match text {
        "never" => Ok(change(|to| to.blocked_after(Duration::MAX))),
        text => time(text, LockRuntimeBuilder::blocked_after),
    }),
    ("claim_window", |text| time(text, LockRuntimeBuilder::claim_window)),
    ("command_timeout", |text| time(text, LockRuntimeBuilder::command_timeout)),
    ("connect_timeout", |text| time(text, LockRuntimeBuilder::connect_timeout)),
    ("connections", |text| {
        let count: usize = text.parse().map_err(|_| "write a number from 1 to 16")?;
        Ok(change(move |to| to.connections(count)))
    }),
    ("keep_idle", |text| time(text, LockRuntimeBuilder::keep_idle)),
    ("namespace", |text| Ok(words(text, LockRuntimeBuilder::namespace))),
    ("outage_patience", |text| time(text, LockRuntimeBuilder::outage_patience)),
    ("own_thread", |text| match text {
        "true" => Ok(change(|to| to.with_own_thread(true))),
        "false" => Ok(change(|to| to.with_own_thread(false))),
        _ => Err("write true or false".into()),
    }),
    ("retention", |text| {
        let retention = duration(text)?;
        let checked = FenceSettings::default().retention(retention);
        checked.map_err(|error| error.to_string())?;
        Ok(change(move |to| to.fenced(|fencing| fencing.retention(retention))))
    }),
    ("retention_of", |text| {
        let pairs = text.split(',').map(retention_of).collect::<Result<Vec<_>, _>>()?;
        Ok(change(move |to| {
            pairs.iter().cloned().fold(to, |to, (names, retention)| {
                to.fenced(|fencing| fencing.retention_of(names, retention))
            })
        }))
    }),
    ("service", |text| Ok(words(text, LockRuntimeBuilder::service))),
    ("strictness", |text| {
        let strictness = match text {
            "ignore" => Strictness::Ignore,
            "warn" => Strictness::Warn,
            "refuse" => Strictness::Refuse,
            _ => return Err("write ignore, warn or refuse".into()),
        };
        Ok(change(move |to| to.strictness(strictness)))
    }),
    ("ttl", |text| time(text, LockRuntimeBuilder::ttl)),
    ("wait", |text| time(text, LockRuntimeBuilder::wait)),
];

/// Reads a pattern of names with their retention, as `jobs/*=1h`.
fn retention_of(text: &str) -> Result<(NamePattern, Duration), String> {
    let (names, retention) = text
        .rsplit_once('=')
        .ok_or("write patterns of names with their retention, as jobs/*=1h, mails/*=1d")?;
    let names = NamePattern::new(names.trim()).map_err(|error| error.to_string())?;
    let retention = duration(retention.trim())?;
    let checked = FenceSettings::default().retention_of(names.clone(), retention);
    checked.map_err(|error| error.to_string())?;
    Ok((names, retention))
}

fn change(
    set: impl Fn(LockRuntimeBuilder) -> LockRuntimeBuilder + Send + Sync + 'static,
) -> Change {
    Arc::new(set)
}

fn time(
    text: &str,
    set: fn(LockRuntimeBuilder, Duration) -> LockRuntimeBuilder,
) -> Result<Change, String> {
    let time = duration(text)?;
    Ok(change(move |to| set(to, time)))
}

fn words(text: &str, set: fn(LockRuntimeBuilder, String) -> LockRuntimeBuilder) -> Change {
    let text = text.to_owned();
    change(move |to| set(to, text.clone()))
}

/// Why settings could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// There is no setting of this name.
    #[error("{name} is no setting of a lock runtime; there are {}", KNOWN.map(|(name, _)| name).join(", "))]
    Unknown {
        /// The name, or the whole variable.
        name: String,
    },
    /// A value is not understood.
    #[error("{name}: the value {value:?} is not understood: {remedy}")]
    Value {
        /// The name, or the whole variable.
        name: String,
        /// Its value.
        value: String,
        /// What to write.
        remedy: String,
    },
}

impl Settings {
    /// The settings among some variables of an environment.
    pub(super) fn among(
        prefix: &str,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, SettingsError> {
        let mut settings = Self::default();
        for (variable, value) in variables {
            let Some(name) = variable.to_str().and_then(|name| name.strip_prefix(prefix)) else {
                continue;
            };
            if !value.is_empty() {
                let variable = format!("{prefix}{name}");
                let is_in_capitals = !name.contains(char::is_lowercase);
                let name = if is_in_capitals { name.to_ascii_lowercase() } else { String::new() };
                settings.add(&name, &value.to_string_lossy(), variable)?;
            }
        }
        Ok(settings)
    }

    /// Adds a setting, which an error calls as `told`.
    fn add(&mut self, name: &str, value: &str, told: String) -> Result<(), SettingsError> {
        let known = KNOWN.into_iter().find(|(known, _)| *known == name);
        let Some((name, read)) = known else { return Err(SettingsError::Unknown { name: told }) };
        let change = read(value).map_err(|remedy| SettingsError::Value {
            name: told,
            value: value.to_owned(),
            remedy,
        })?;
        self.0.push((name, change));
        Ok(())
    }

    /// Sets them.
    pub(super) fn set(self, builder: LockRuntimeBuilder) -> LockRuntimeBuilder {
        self.0.into_iter().fold(builder, |builder, (_, change)| change(builder))
    }
}

impl LockRuntimeBuilder {
    /// Sets what variables of the environment with a prefix say, such as `LEASEHOLD_SET_TTL=10s`.
    ///
    /// Behind the prefix stands the name of a [setting](Settings#names) in capitals. A variable that is empty
    /// counts as one that is not set. What was set before is replaced, what is set later replaces it.
    ///
    /// Take a prefix under which nothing else is set. `LEASEHOLD_` alone is not one: `leasehold run`
    /// exports `LEASEHOLD_FENCE` and others to its command.
    ///
    /// ```
    /// # use leasehold::LockRuntime;
    /// let builder = LockRuntime::builder().from_env("LEASEHOLD_SET_")?;
    /// # Ok::<(), leasehold::error::SettingsError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// - [`SettingsError::Unknown`] for a variable with this prefix that is no setting.
    /// - [`SettingsError::Value`] for a value that is not understood.
    ///
    /// Whether a value is in its range is checked when the runtime is made.
    pub fn from_env(self, prefix: &str) -> Result<Self, SettingsError> {
        Ok(self.settings(Settings::among(prefix, std::env::vars_os())?))
    }

    /// Sets what some settings say, which were read from a file of the service.
    pub fn settings(self, settings: Settings) -> Self {
        settings.set(self)
    }
}

/// Shows the names.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

/// A value as formats have it.
#[cfg(feature = "serde")]
#[derive(serde::Deserialize)]
#[serde(untagged, expecting = "a text, a number, or true or false")]
enum Scalar {
    Text(String),
    Number(u64),
    Switch(bool),
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Settings {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut settings = Self::default();
        for (name, value) in std::collections::BTreeMap::<String, Scalar>::deserialize(from)? {
            let value = match value {
                Scalar::Text(text) => text,
                Scalar::Number(number) => number.to_string(),
                Scalar::Switch(is_on) => is_on.to_string(),
            };
            settings.add(&name, &value, name.clone()).map_err(serde::de::Error::custom)?;
        }
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn among(variables: &[(&str, &str)]) -> Result<String, SettingsError> {
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
        let settings = Settings::among("L_", variables)?;
        Ok(format!("{:?}", settings.set(LockRuntimeBuilder::new())))
    }

    #[test]
    fn each_setting_is_read() {
        let told = among(&[
            ("L_BLOCKED_AFTER", "never"),
            ("L_CLAIM_WINDOW", "2s"),
            ("L_COMMAND_TIMEOUT", "250ms"),
            ("L_CONNECT_TIMEOUT", "1s"),
            ("L_CONNECTIONS", "3"),
            ("L_KEEP_IDLE", "1s"),
            ("L_NAMESPACE", "shop"),
            ("L_OUTAGE_PATIENCE", "7s"),
            ("L_OWN_THREAD", "true"),
            ("L_RETENTION", "2h"),
            ("L_RETENTION_OF", "jobs/*=1h, a = b = 3d"),
            ("L_SERVICE", "till"),
            ("L_STRICTNESS", "refuse"),
            ("L_TTL", "1m30s"),
            ("L_WAIT", "4s"),
            ("L_", ""),
            ("L_FUTURE", ""),
            ("OTHER", "x"),
        ]);
        let told = told.unwrap();
        for part in [
            "blocked_after: 18446744073709551615",
            "claim_window: 2s",
            "command_timeout: 250ms",
            "[connect_timeout, connections]",
            "keep_idle: 1s",
            "namespace: \"shop\"",
            "outage_patience: 7s",
            "own_thread: true",
            "retention: 7200s",
            "[(\"jobs/*\", 3600s), (\"a = b\", 259200s)]",
            "service: \"till\"",
            "strictness: Refuse",
            "ttl: 90s",
            "wait: 4s",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
    }

    #[test]
    fn what_is_not_understood_is_named_with_what_to_write() {
        for (name, value, parts) in [
            ("L_TLL", "1s", ["L_TLL", "ttl, wait"]),
            ("L_", "1s", ["L_ is no setting", "ttl"]),
            ("L_ttl", "1s", ["L_ttl is no setting", "ttl"]),
            ("L_TTL", "5", ["L_TTL: the value \"5\"", "30s"]),
            ("L_WAIT", "never", ["L_WAIT", "1h30m"]),
            ("L_CONNECTIONS", "many", ["\"many\"", "1 to 16"]),
            ("L_OWN_THREAD", "1", ["\"1\"", "true or false"]),
            ("L_RETENTION", "1m", ["\"1m\"", "retention of 60s"]),
            ("L_RETENTION_OF", "jobs/*", ["\"jobs/*\"", "as jobs/*=1h, mails"]),
            ("L_RETENTION_OF", "jobs/*=1h,", ["1h,", "as jobs/*=1h, mails"]),
            ("L_RETENTION_OF", "a=1h, jobs/*=1m", ["L_RETENTION_OF", "retention of 60s"]),
            ("L_RETENTION_OF", "jobs/*=long", ["L_RETENTION_OF", "1h30m"]),
            ("L_RETENTION_OF", "=1h", ["L_RETENTION_OF", "write * for all locks"]),
            ("L_RETENTION_OF", "[=1h", ["L_RETENTION_OF", "close it"]),
            ("L_STRICTNESS", "Warn", ["\"Warn\"", "ignore, warn or refuse"]),
        ] {
            let error = among(&[(name, value)]).unwrap_err().to_string();
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        }
    }

    #[test]
    fn a_thread_of_its_own_can_be_taken_back() {
        let variables = [("L_OWN_THREAD".into(), "false".into())];
        let settings = Settings::among("L_", variables).unwrap();
        let told = format!("{:?}", settings.set(LockRuntimeBuilder::new().own_thread()));
        assert!(told.contains("own_thread: false"), "{told}");
    }

    #[cfg(unix)]
    #[test]
    fn a_value_that_is_no_text_is_shown_as_far_as_it_can_be() {
        use std::os::unix::ffi::OsStringExt;
        let value = OsString::from_vec(b"1\xffs".to_vec());
        let error = Settings::among("L_", [("L_TTL".into(), value)]).unwrap_err();
        assert!(matches!(error, SettingsError::Value { value, .. } if value == "1\u{fffd}s"));
    }

    #[cfg(feature = "serde")]
    #[test]
    fn a_file_has_the_same_settings() {
        let read = |text: &str| serde_json::from_str::<Settings>(text);
        let settings =
            read(r#"{ "ttl": "10s", "connections": 2, "own_thread": false, "namespace": "shop" }"#);
        let told = format!("{:?}", settings.unwrap().set(LockRuntimeBuilder::new()));
        let of_names = read(r#"{ "retention_of": "jobs/*=1h" }"#).unwrap();
        let of_names = format!("{:?}", of_names.set(LockRuntimeBuilder::new()));
        assert!(of_names.contains("[(\"jobs/*\", 3600s)]"), "{of_names}");
        assert!(told.contains("ttl: 10s") && told.contains("\"shop\""), "{told}");
        assert!(told.contains("own_thread: false") && told.contains("[connections]"), "{told}");
        for (text, part) in [
            (r#"{ "tll": "10s" }"#, "tll is no setting"),
            (r#"{ "ttl": 10 }"#, "ttl: the value \"10\""),
            (r#"{ "ttl": null }"#, "a text, a number"),
            (r#"{ "retention_of": "jobs/*=0s" }"#, "retention of 0ns"),
            (r#"{ "TTL": "10s" }"#, "TTL is no setting"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
