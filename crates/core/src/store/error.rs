use std::{borrow::Cow, fmt, time::Duration};

use crate::{
    clock::Instant,
    durations::STOOD_STILL,
    types::{LockName, Replication, Ttl, is_printable, printable},
};

/// What a failure of a store means for the command that failed.
///
/// Every failure is of one of these four kinds, and no other kind will be added: a `match` that
/// names them all stays complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StoreErrorKind {
    /// The command has not run; repeating it is free.
    Definite,
    /// The command may or may not have run; only repeating the same one tells.
    Indeterminate,
    /// The command cannot run until an operator changes something: an address, a right, a version.
    Config,
    /// The data under the lock's name is not Leasehold's.
    Corrupt,
}

impl StoreErrorKind {
    /// Every kind, for metrics that start at zero.
    pub const ALL: &[Self] = &[Self::Definite, Self::Indeterminate, Self::Config, Self::Corrupt];

    /// The kind as a metric label.
    pub fn as_label(self) -> &'static str {
        match self {
            Self::Definite => "definite",
            Self::Indeterminate => "indeterminate",
            Self::Config => "config",
            Self::Corrupt => "corrupt",
        }
    }

    /// Whether the same command may succeed later without any change.
    pub fn is_transient(self) -> bool {
        matches!(self, Self::Definite | Self::Indeterminate)
    }
}

impl fmt::Display for StoreErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_label())
    }
}

/// A ttl needs so many round trips: a renewal is awaited for that part of it.
const ROUND_TRIPS: u32 = 6;

/// A store could not carry out a command: what happened, to which lock, what to do next.
///
/// Never holds a password: addresses are kept without their credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreError(Box<Details>);

#[derive(Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct Details {
    kind: StoreErrorKind,
    what: Cow<'static, str>,
    remedy: Cow<'static, str>,
    lock: Option<LockName>,
    endpoint: Option<String>,
    is_answer: bool,
    is_unacknowledged: bool,
    others_were_answered: bool,
    is_refused_login: bool,
    /// Whether it is the fault of this process.
    is_ours: bool,
    /// The round trip for which the command could not wait.
    round_trip: Option<Duration>,
    is_ttl_too_short: bool,
}

/// A text of bounded length: what happened may repeat what a server has said.
fn shortened(text: Cow<'static, str>) -> Cow<'static, str> {
    const MOST: usize = 1_000;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => text,
    }
}

impl StoreError {
    /// An error of a kind: what happened, and what to do about it.
    pub fn new(
        kind: StoreErrorKind,
        what: impl Into<Cow<'static, str>>,
        remedy: impl Into<Cow<'static, str>>,
    ) -> Self {
        let (what, remedy) = (shown(shortened(what.into())), shown(remedy.into()));
        let (lock, endpoint) = (None, None);
        Self(Box::new(Details {
            kind,
            what,
            remedy,
            lock,
            endpoint,
            is_answer: false,
            is_unacknowledged: false,
            others_were_answered: false,
            is_refused_login: false,
            is_ours: false,
            round_trip: None,
            is_ttl_too_short: false,
        }))
    }

    /// Whether the command failed because a round trip to the server takes too long for the ttl of
    /// its lock: to ask again soon does not help.
    pub fn is_ttl_too_short(&self) -> bool {
        self.0.is_ttl_too_short
    }

    /// Whether the server refused user and password that a provider gave. The kind is then
    /// `Definite`, because the provider may give others for the next connection.
    pub fn is_refused_login(&self) -> bool {
        self.0.is_refused_login
    }

    /// Whether the server has run the command, and too few copies of it were acknowledged.
    pub fn is_unacknowledged(&self) -> bool {
        self.0.is_unacknowledged
    }

    /// What the failure means for the command.
    pub fn kind(&self) -> StoreErrorKind {
        self.0.kind
    }

    /// What happened.
    pub fn what(&self) -> &str {
        &self.0.what
    }

    /// What to do about it.
    pub fn remedy(&self) -> &str {
        &self.0.remedy
    }

    /// The lock of the command, if it was about one.
    pub fn lock(&self) -> Option<&LockName> {
        self.0.lock.as_ref()
    }
}

/// What stores say of a failure.
#[doc(hidden)]
impl StoreError {
    /// The server has run a command, and too few copies of it were acknowledged: `had` tells how
    /// many.
    #[must_use]
    pub fn unacknowledged(asked: Replication, had: impl fmt::Display) -> Self {
        let what = format!("the write needs {asked} to acknowledge it in time, and {had} did");
        let remedy = "check the replicas and their lag, or ask for fewer of them";
        Self::new(StoreErrorKind::Indeterminate, what, remedy).as_answer().not_acknowledged()
    }

    /// The same error of a command that has run, whatever its kind was.
    #[must_use]
    pub fn indeterminate(mut self) -> Self {
        self.0.kind = StoreErrorKind::Indeterminate;
        self
    }

    /// The same error of a command that the server has run, and could not wait behind.
    #[must_use]
    pub fn not_acknowledged(mut self) -> Self {
        self.0.is_unacknowledged = true;
        self
    }

    /// The same error with something else to do about it.
    #[must_use]
    pub fn with_remedy(mut self, remedy: impl Into<Cow<'static, str>>) -> Self {
        self.0.remedy = shown(remedy.into());
        self
    }

    /// The same error, which is known to last until an operator changes something.
    #[must_use]
    pub fn lasting(mut self, what: String, remedy: &'static str) -> Self {
        self.0.kind = StoreErrorKind::Config;
        (self.0.what, self.0.remedy) = (shown(shortened(what.into())), remedy.into());
        self
    }

    /// No token is left above the last one.
    pub fn exhausted() -> Self {
        Self::new(
            StoreErrorKind::Corrupt,
            "the fence counter has reached its greatest value, so no newer token can be granted",
            "find out who wrote the counter, delete its key, and reset the watermarks of the gates that saw its tokens",
        )
    }

    /// The same error, naming the lock of the command.
    #[must_use]
    pub fn for_lock(mut self, name: &LockName) -> Self {
        self.0.lock = Some(name.clone());
        self
    }

    /// The same error, naming no lock: for an error around it that names the lock itself.
    #[must_use]
    pub fn for_no_lock(mut self) -> Self {
        self.0.lock = None;
        self
    }

    /// The same error of a command that was sent and has no answer, naming that command.
    #[must_use]
    pub fn without_answer_to(mut self, command: &str) -> Self {
        self.0.what = format!("no answer to {command}: {}", self.0.what).into();
        self
    }

    /// The same error, naming the fenced resource of the gate.
    #[must_use]
    pub fn for_resource(mut self, resource: &str) -> Self {
        self.0.what = format!("the gate of {resource:?}: {}", self.0.what).into();
        self
    }

    /// The same error for a command that was not sent, but waited for the one that failed.
    #[must_use]
    pub fn not_sent(mut self) -> Self {
        if self.0.kind == StoreErrorKind::Indeterminate {
            self.0.kind = StoreErrorKind::Definite;
        }
        self
    }

    /// The same error, naming the server that it came from; without credentials.
    #[must_use]
    pub fn from_endpoint(mut self, endpoint: impl Into<String>) -> Self {
        self.0.endpoint = Some(printable(&endpoint.into()).into_owned());
        self
    }

    /// Whether the error names the server that it came from.
    pub fn is_from_endpoint(&self) -> bool {
        self.0.endpoint.is_some()
    }

    /// The server that the error came from, if it names one.
    pub fn endpoint(&self) -> Option<&str> {
        self.0.endpoint.as_deref()
    }

    /// The same error, marked as an answer of the server: the server can be reached.
    ///
    /// A store marks every refusal. Errors without the mark, such as a timeout or a connection that
    /// could not be made, count as an outage.
    #[must_use]
    pub fn as_answer(mut self) -> Self {
        self.0.is_answer = true;
        self
    }

    /// Whether the error is an answer of the server.
    pub fn is_answer(&self) -> bool {
        self.0.is_answer || self.0.kind == StoreErrorKind::Corrupt
    }

    /// The same error of a command while others on its connection were answered: the server is
    /// slow.
    #[must_use]
    pub fn while_others_were_answered(mut self) -> Self {
        self.0.others_were_answered = true;
        self
    }

    /// The same error of a command that waited for less than a round trip takes: that says nothing
    /// about the server.
    #[must_use]
    pub fn within_a_round_trip(mut self, waited: Duration, round_trip: Duration) -> Self {
        let (waited, takes) = (tenths(waited), tenths(round_trip));
        self.0.what =
            format!("no answer within {waited:?}, and a round trip to the server takes {takes:?}")
                .into();
        self.0.remedy = "give commands more time, by command_timeout() and by the ttl".into();
        self.0.round_trip = Some(round_trip);
        self.while_others_were_answered()
    }

    /// The same error of a command about leases of this ttl: if no round trip fits into the time
    /// that a renewal has, the error says so.
    #[must_use]
    pub fn for_ttl(mut self, ttl: Ttl) -> Self {
        let Some(round_trip) = self.0.round_trip else { return self };
        if ttl.get() / ROUND_TRIPS >= round_trip {
            return self;
        }
        let told = Self::ttl_too_short(ttl, round_trip);
        (self.0.what, self.0.remedy) = (told.0.what, told.0.remedy);
        self.0.is_ttl_too_short = true;
        self
    }

    /// A command was not answered in the time that a ttl leaves for it, because a round trip to the
    /// server takes longer.
    #[must_use]
    pub fn ttl_too_short(ttl: Ttl, round_trip: Duration) -> Self {
        let (takes, least) = (tenths(round_trip), tenths(round_trip * ROUND_TRIPS));
        let what = format!(
            "a ttl of {ttl} is too short for this server: a round trip to it takes {takes:?}"
        );
        let remedy = format!("give the lock a ttl of {least:?} or more");
        let mut error = Self::new(StoreErrorKind::Indeterminate, what, remedy);
        error.0.is_ttl_too_short = true;
        error.while_others_were_answered()
    }

    /// The same error: the server has refused what a provider of credentials gave.
    #[must_use]
    pub fn refused_login(mut self) -> Self {
        self.0.is_refused_login = true;
        self
    }

    /// Whether the server works: it has answered this command, or any other since this one was
    /// sent.
    pub fn is_sign_of_life(&self) -> bool {
        self.is_answer() || self.0.others_were_answered
    }

    /// The same error, marked as the fault of this process: it says nothing about the server.
    #[must_use]
    pub fn ours(mut self) -> Self {
        self.0.is_ours = true;
        self
    }

    /// Whether it is the fault of this process: it has no file descriptors, stood still, or cannot have its
    /// certificates or credentials.
    pub fn is_ours(&self) -> bool {
        self.0.is_ours
    }

    /// The same error of work that ended at `now`. If that is long after its deadline, nobody polled
    /// it in between: this process stood still, and the error says so.
    #[must_use]
    pub fn by(mut self, deadline: Instant, now: Instant) -> Self {
        let late = now.saturating_since(deadline);
        let is_known = self.is_ours() || self.is_answer() || !self.0.kind.is_transient();
        if is_known || late < STOOD_STILL {
            return self;
        }
        let late = tenths(late);
        self.0.what =
            format!("this process stood still until {late:?} after the time for an answer").into();
        self.0.remedy =
            "unless it was stopped, move blocking code in its async tasks to spawn_blocking, or use own_thread()"
                .into();
        self.ours()
    }

    /// The same error of work on a tokio runtime that runs nothing.
    #[must_use]
    pub fn undriven(mut self) -> Self {
        self.0.what =
            "the tokio runtime that the locks live on stands still: nothing drives it, or \
                       blocking code has all its threads"
                .into();
        self.0.remedy =
            "drive it as long as the locks live, move blocking code to spawn_blocking, or use own_thread()"
                .into();
        self.ours()
    }

    /// The error of a process that did not even ask.
    pub fn still() -> Self {
        Self::new(
            StoreErrorKind::Definite,
            "it was stopped, or is just going on after that; nothing drives the tokio runtime that the locks live \
             on, or blocking code has all its threads",
            "drive it as long as the locks live, move blocking code to spawn_blocking, or use own_thread()",
        )
        .ours()
    }

    /// The same error of a command that was sent before, when the first copy may have run.
    #[must_use]
    pub fn or_unknown(mut self) -> Self {
        if self.0.kind == StoreErrorKind::Definite {
            self.0.kind = StoreErrorKind::Indeterminate;
        }
        self
    }
}

/// The words of a server may have characters that an error is not to show.
fn shown(text: Cow<'static, str>) -> Cow<'static, str> {
    if text.chars().all(is_printable) { text } else { printable(&text).into_owned().into() }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Details { kind, what, remedy, lock, endpoint, .. } = &*self.0;
        if let Some(lock) = lock {
            write!(f, "lock {lock:?}: ")?;
        }
        write!(f, "{what}")?;
        if let Some(endpoint) = endpoint {
            write!(f, " (at {endpoint})")?;
        }
        if *kind == StoreErrorKind::Indeterminate && !self.is_unacknowledged() {
            write!(f, "; whether the command ran is unknown")?;
        }
        write!(f, "; {remedy}")
    }
}

/// The kind and the text: a `main` that fails shows them.
impl fmt::Debug for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StoreError").field(&self.0.kind).field(&format_args!("{self}")).finish()
    }
}

impl std::error::Error for StoreError {}

/// Without noise: in tenths of a millisecond.
fn tenths(time: Duration) -> Duration {
    Duration::from_micros(u64::try_from(time.as_micros() / 100 * 100).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_ends_long_after_its_deadline_was_not_polled() {
        let at = |millis| Instant::at(Duration::from_millis(millis));
        let failed = |kind| StoreError::new(kind, "no answer", "look there");
        let told = failed(StoreErrorKind::Definite).by(at(1_000), at(4_000));
        assert!(told.is_ours() && told.kind() == StoreErrorKind::Definite);
        for words in ["stood still until 3s", "spawn_blocking", "own_thread()"] {
            assert!(told.to_string().contains(words), "{told}");
        }
        let late = failed(StoreErrorKind::Indeterminate).by(at(1_000), at(1_500));
        assert!(late.is_ours());
        for other in [
            failed(StoreErrorKind::Indeterminate).by(at(1_000), at(1_499)),
            failed(StoreErrorKind::Definite).as_answer().by(at(1_000), at(4_000)),
            failed(StoreErrorKind::Config).by(at(1_000), at(4_000)),
        ] {
            assert!(!other.is_ours() && other.what() == "no answer", "{other}");
        }
    }

    #[test]
    fn it_is_shown_by_its_kind_and_its_text() {
        let error = StoreError::new(StoreErrorKind::Definite, "no answer", "look there");
        assert_eq!(format!("{error:?}"), "StoreError(Definite, no answer; look there)");
    }

    #[test]
    fn a_ttl_that_a_round_trip_does_not_fit_is_told_with_both_figures() {
        let millis = Duration::from_millis;
        let error = || StoreError::new(StoreErrorKind::Indeterminate, "no answer", "look there");
        let ttl = |time| Ttl::new(millis(time)).unwrap();
        let late = || error().within_a_round_trip(millis(50), millis(120));
        let told = late().for_ttl(ttl(100)).to_string();
        for words in ["a ttl of 100ms", "a round trip to it takes 120ms", "720ms or more"] {
            assert!(told.contains(words), "{told}");
        }
        assert!(late().for_ttl(ttl(719)).is_ttl_too_short());
        // It is the time for the command that is too short, or nothing is known of a round trip.
        let other = late().for_ttl(ttl(720));
        assert!(!other.is_ttl_too_short() && other.is_sign_of_life());
        assert!(other.to_string().contains("no answer within 50ms"), "{other}");
        assert_eq!(error().for_ttl(ttl(100)), error());
    }
}
