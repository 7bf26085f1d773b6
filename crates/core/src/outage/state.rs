use std::time::Duration;

use crate::{
    clock::Instant,
    durations::{LONGEST_NAP, LOOK, SHORTEST_SILENCE, STOOD_STILL},
    store::{StoreError, StoreErrorKind},
};

/// An answer is late after so many usual round trips.
const LATE: u32 = 4;
/// How much one answer changes the usual round trip: by an eighth, as TCP does (RFC 6298).
const SMOOTHING: u32 = 8;

/// Since when the server has not answered, as a pure function of time and events.
///
/// The server is silent from the first command that is sent after its last answer, until its next
/// answer; an error of the server itself is an answer. That is an [`Outage`] once a command has failed
/// meanwhile: neither commands in flight nor a process that sends nothing make one.
#[derive(Debug, Clone, Default)]
// ADR 0013
pub struct OutageState {
    heard_at: Option<Instant>,
    /// Since when it answers without a silence that shows, and without a refusal that lasts.
    answering_since: Option<Instant>,
    /// Its last answer, if that is a refusal.
    refusal: Option<StoreError>,
    silent_since: Option<Instant>,
    /// When the sender of a command gave up last.
    given_up_at: Option<Instant>,
    in_flight: usize,
    outage: Option<Outage>,
    /// How long an answer usually takes; `None` before the first.
    round_trip: Option<Duration>,
    /// Since when the server is asked how it is if nothing is heard of it.
    looks_since: Option<Instant>,
    /// When it was asked last.
    looked_at: Option<Instant>,
}

/// A server that does not answer, as seen at one moment.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Outage {
    /// When the first command was sent that was not answered.
    pub since: Instant,
    /// How many commands have failed without an answer.
    pub unanswered: u64,
    /// Why the last of them failed.
    pub last_error: StoreError,
}

impl OutageState {
    pub(super) fn sent(&mut self, now: Instant) {
        self.in_flight += 1;
        self.silent_since.get_or_insert(now);
    }

    /// A command of `sent_at` was answered at `now`; returns since when there was an outage, which this
    /// ends.
    pub(super) fn answered(&mut self, sent_at: Instant, now: Instant) -> Option<Instant> {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.refusal = None;
        if self.answering_since.is_none() || self.shown_silence(now).is_some() {
            self.answering_since = Some(now);
        }
        let took = now.saturating_since(sent_at);
        let usual = self.round_trip.unwrap_or(took);
        self.round_trip = Some((usual * (SMOOTHING - 1) + took) / SMOOTHING);
        self.heard_at = self.heard_at.max(Some(now));
        // For the commands that are still in flight, the server is silent from now on.
        self.silent_since = (self.in_flight > 0).then_some(now);
        self.outage.take().map(|outage| outage.since)
    }

    /// The last answer was this refusal: if only an operator can lift it, the server serves nothing until it
    /// answers otherwise. One of the key of a lock says nothing about the server.
    pub(super) fn refused(&mut self, error: &StoreError) {
        if error.is_refused_login() || error.kind() == StoreErrorKind::Config {
            self.answering_since = None;
        }
        self.refusal =
            (error.kind() != StoreErrorKind::Corrupt).then(|| error.clone().for_no_lock());
    }

    /// A command of `sent_at` was not answered, or not sent: ignored if another was answered since.
    pub(super) fn unanswered(&mut self, sent_at: Instant, error: StoreError) {
        if self.heard_at.is_some_and(|heard_at| heard_at > sent_at) {
            return self.leave();
        }
        self.in_flight = self.in_flight.saturating_sub(1);
        let since = *self.silent_since.get_or_insert(sent_at);
        let unanswered = self.outage.take().map_or(1, |outage| outage.unanswered + 1);
        // It is shown to callers that wait for other locks.
        self.outage = Some(Outage { since, unanswered, last_error: error.for_no_lock() });
    }

    /// The sender of a command gave up at `now`: its outcome is unknown.
    pub(super) fn given_up(&mut self, now: Instant) {
        self.given_up_at = Some(now);
        self.leave();
    }

    /// A command is no longer in flight; its outcome says nothing about the server.
    fn leave(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if self.in_flight == 0 && self.outage.is_none() {
            self.silent_since = None;
        }
    }

    /// Since when the server is silent; `None` when every command was answered or given up.
    pub fn silent_since(&self) -> Option<Instant> {
        self.silent_since
    }

    /// Whether the server has answered any command at `at` or later.
    pub fn heard_since(&self, at: Instant) -> bool {
        self.heard_at.is_some_and(|heard_at| heard_at >= at)
    }

    /// Whether the server was asked since `at`, and has not answered anything.
    pub fn has_been_silent_since(&self, at: Instant) -> bool {
        let was_asked =
            self.silent_since.is_some() || self.given_up_at.is_some_and(|left| left >= at);
        was_asked && !self.heard_since(at)
    }

    /// The present outage, if there is one.
    pub fn outage(&self) -> Option<&Outage> {
        self.outage.as_ref()
    }

    /// How long the server has been out of reach at `now`; zero when it is not.
    pub fn unreachable_for(&self, now: Instant) -> Duration {
        self.outage.as_ref().map_or(Duration::ZERO, |outage| now.saturating_since(outage.since))
    }

    /// The server has answered at `now`, before the first command was sent.
    pub(super) fn connected(&mut self, now: Instant) {
        self.heard_at = self.heard_at.max(Some(now));
        self.answering_since.get_or_insert(now);
    }

    /// When the server answered last.
    pub fn heard_at(&self) -> Option<Instant> {
        self.heard_at
    }

    /// The server is asked how it is from `now` on. Returns whether that is news.
    pub(super) fn begin_looks(&mut self, now: Instant) -> bool {
        let is_news = self.looks_since.is_none();
        self.looks_since.get_or_insert(now);
        is_news
    }

    pub(super) fn looked(&mut self, now: Instant) {
        self.looked_at = Some(now);
    }

    /// When the server is to be asked how it is, if nothing is heard of it by then; `None` while nobody
    /// wants to know.
    pub fn look_at(&self) -> Option<Instant> {
        let last = self.heard_at.max(self.looked_at);
        self.looks_since.map(|_| last.map(|last| last + LOOK).unwrap_or_default())
    }

    /// Since when the server is silent, if that is longer at `now` than it pauses when it is well; or since when
    /// this process hears nothing, if it would have asked.
    pub fn shown_silence(&self, now: Instant) -> Option<Instant> {
        self.unanswered_since(now).or_else(|| self.unheard_since(now))
    }

    fn unanswered_since(&self, now: Instant) -> Option<Instant> {
        let longest = self.allowance().max(STOOD_STILL);
        self.silent_since.filter(|&since| now.saturating_since(since) >= longest)
    }

    fn unheard_since(&self, now: Instant) -> Option<Instant> {
        let since = self.heard_at.max(self.looks_since).filter(|_| self.looks_since.is_some());
        let longest = self.allowance().max(LONGEST_NAP);
        since.filter(|&since| now.saturating_since(since) >= longest)
    }

    /// Since when nothing is heard at `now` because this process stands still: it does not even ask, or has
    /// just asked for the first time after that.
    pub fn stands_still_since(&self, now: Instant) -> Option<Instant> {
        let since = self.unheard_since(now)?;
        let asks = self.looked_at.is_some_and(|at| now.saturating_since(at) < LONGEST_NAP);
        let is_answer_late = asks && self.unanswered_since(now).is_some();
        (!is_answer_late).then_some(since)
    }

    /// The last answer of the server, if that is a refusal: one that may pass, as of a server that is full, or
    /// one that only an operator can lift. After the latter there is no [`answering_since`](Self::answering_since).
    pub fn refusal(&self) -> Option<&StoreError> {
        self.refusal.as_ref()
    }

    /// Since when the server answers; `None` before its first answer, while a silence
    /// [shows](Self::shown_silence), and while there is a [refusal](Self::refusal) that only an operator can lift.
    pub fn answering_since(&self, now: Instant) -> Option<Instant> {
        self.answering_since.filter(|_| self.shown_silence(now).is_none())
    }

    /// For how long an answer is awaited of a server that may be out of reach: four usual round trips,
    /// so that a slow line does not look like one.
    pub fn allowance(&self) -> Duration {
        (self.round_trip.unwrap_or_default() * LATE).max(SHORTEST_SILENCE)
    }

    /// Whether there is an outage that has lasted for longer than a call tolerates, and that may end: what
    /// only an operator can mend is told at once, by the answer to each command.
    pub fn has_lasted(&self, patience: Duration, now: Instant) -> bool {
        self.outage.as_ref().is_some_and(|outage| {
            now >= outage.since + patience && outage.last_error.kind().is_transient()
        })
    }

    /// Whether there is an outage, and no command in flight could show its end.
    pub fn needs_probe(&self) -> bool {
        self.outage.is_some() && self.in_flight == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::at(Duration::from_millis(millis))
    }

    fn error() -> StoreError {
        StoreError::new(StoreErrorKind::Indeterminate, "nothing was heard", "look there")
    }

    #[test]
    fn an_outage_begins_with_the_first_command_that_is_not_answered() {
        let mut state = OutageState::default();
        state.sent(at(100));
        assert_eq!(state.silent_since(), Some(at(100)));
        assert_eq!(state.unreachable_for(at(900)), Duration::ZERO);
        state.sent(at(200));
        state.unanswered(at(100), error());
        assert_eq!(state.outage().unwrap().since, at(100));
        state.unanswered(at(200), error());
        state.sent(at(1200));
        assert_eq!(state.unreachable_for(at(1500)), Duration::from_millis(1400));
        assert_eq!(state.outage().unwrap().unanswered, 2);
        assert_eq!(state.answered(at(1200), at(1600)), Some(at(100)));
        assert_eq!(state.unreachable_for(at(9999)), Duration::ZERO);
        assert!(state.silent_since().is_none() && state.heard_since(at(1600)));
        assert!(!state.heard_since(at(1601)));
    }

    #[test]
    fn a_refusal_that_lasts_is_no_answer_to_rely_on_until_the_next_answer() {
        let passing = StoreError::new(StoreErrorKind::Definite, "full", "wait").as_answer();
        let lasting = StoreError::new(StoreErrorKind::Config, "no right", "grant it").as_answer();
        for (refusal, is_ready) in
            [(&passing, true), (&lasting, false), (&passing.clone().refused_login(), false)]
        {
            let mut state = OutageState::default();
            state.sent(at(0));
            state.answered(at(0), at(1));
            state.refused(refusal);
            assert_eq!(state.answering_since(at(1)).is_some(), is_ready, "{refusal}");
            assert_eq!(state.refusal().map(StoreError::what), Some(refusal.what()));
            state.answered(at(2), at(3));
            assert!(state.answering_since(at(3)).is_some() && state.refusal().is_none());
        }
    }

    #[test]
    fn a_key_of_another_program_is_no_refusal_of_the_server() {
        let mut state = OutageState::default();
        state.answered(at(0), at(1));
        let full = StoreError::new(StoreErrorKind::Definite, "full", "wait").as_answer();
        for (error, is_refusal) in [(full, true), (StoreError::exhausted(), false)] {
            state.refused(&error);
            assert_eq!(state.refusal().is_some(), is_refusal, "{error}");
        }
    }

    #[test]
    fn an_old_command_that_fails_after_a_later_answer_is_no_outage() {
        let mut state = OutageState::default();
        state.sent(at(0));
        state.sent(at(10));
        assert!(state.answered(at(10), at(20)).is_none());
        assert_eq!(state.silent_since(), Some(at(20)));
        state.unanswered(at(0), error());
        assert!(state.outage().is_none() && state.silent_since().is_none());
    }

    #[test]
    fn a_process_that_sends_nothing_sees_no_outage() {
        let mut state = OutageState::default();
        state.sent(at(0));
        state.answered(at(0), at(1));
        assert_eq!(state.silent_since(), None);
        state.sent(at(500));
        state.given_up(at(510));
        assert!(state.has_been_silent_since(at(500)) && !state.has_been_silent_since(at(511)));
        assert_eq!((state.silent_since(), state.unreachable_for(at(9999))), (None, Duration::ZERO));
    }

    #[test]
    fn a_probe_is_needed_while_nothing_is_on_its_way() {
        let mut state = OutageState::default();
        state.sent(at(0));
        assert!(!state.needs_probe());
        state.unanswered(at(0), error());
        assert!(state.needs_probe());
        state.sent(at(2));
        assert!(!state.needs_probe());
        state.given_up(at(2));
        assert!(state.needs_probe());
        state.sent(at(3));
        state.answered(at(3), at(4));
        assert!(!state.needs_probe());
    }

    #[test]
    fn an_outage_has_lasted_once_the_patience_is_over_that_began_with_it() {
        let mut state = OutageState::default();
        let patience = Duration::from_secs(5);
        state.sent(at(100));
        assert!(!state.has_lasted(patience, at(60_000)), "nothing has failed");
        state.unanswered(at(100), error());
        assert!(!state.has_lasted(patience, at(5_099)) && state.has_lasted(patience, at(5_100)));
        let hopeless = StoreError::new(StoreErrorKind::Config, "no right", "grant it");
        state.sent(at(6_000));
        state.unanswered(at(6_000), hopeless);
        assert!(!state.has_lasted(patience, at(60_000)), "each command says what to mend");
    }

    #[test]
    fn an_answer_is_awaited_for_four_usual_round_trips() {
        let mut state = OutageState::default();
        assert_eq!(state.allowance(), SHORTEST_SILENCE);
        state.answered(at(0), at(400));
        assert_eq!(state.allowance(), Duration::from_millis(1_600));
        // One slow answer changes little.
        state.answered(at(1_000), at(2_200));
        assert_eq!(state.allowance(), Duration::from_secs(2));
        for _ in 0..100 {
            state.answered(at(3_000), at(3_001));
        }
        assert_eq!(state.allowance(), SHORTEST_SILENCE);
    }

    /// Looks go every 2 s: a process that hears nothing for 5 s does not run.
    #[test]
    fn a_process_that_hears_nothing_and_does_not_ask_stands_still() {
        let ready = |state: &OutageState, now| state.answering_since(at(now)).is_some();
        let stands_still = |state: &OutageState, now| state.stands_still_since(at(now));
        let mut state = OutageState::default();
        state.connected(at(0));
        assert!(ready(&state, 60_000), "nobody wanted to know, so it did not ask");
        assert!(state.begin_looks(at(60_000)) && !state.begin_looks(at(61_000)));
        assert_eq!(state.look_at(), Some(at(2_000)));
        // It is a busy machine that is late with a look.
        assert!(ready(&state, 64_999) && stands_still(&state, 64_999).is_none());
        assert!(!ready(&state, 65_000));
        assert_eq!(stands_still(&state, 65_000), Some(at(60_000)));
        assert_eq!(state.shown_silence(at(65_000)), Some(at(60_000)));
        // What it asks when it runs again is no answer yet.
        state.looked(at(65_000));
        state.sent(at(65_000));
        assert!(!ready(&state, 65_001) && stands_still(&state, 65_001).is_some());
        state.answered(at(65_000), at(65_002));
        assert_eq!(state.answering_since(at(65_002)), Some(at(65_002)));
        assert!(stands_still(&state, 65_002).is_none() && state.look_at() == Some(at(67_002)));
        // The calls of another tokio runtime give up.
        state.sent(at(69_000));
        assert!(!ready(&state, 70_002) && stands_still(&state, 70_002).is_some());
        state.given_up(at(70_002));
        assert!(!ready(&state, 70_003) && stands_still(&state, 70_003).is_some());
    }

    /// The control: it asks, and has no answer.
    #[test]
    fn a_silent_server_is_told_as_that() {
        let mut state = OutageState::default();
        state.connected(at(0));
        state.begin_looks(at(0));
        for look in (2_000..60_000).step_by(2_000) {
            state.looked(at(look));
            state.sent(at(look));
            assert!(state.answering_since(at(look + 600)).is_none(), "{look}");
            assert!(state.stands_still_since(at(look + 600)).is_none(), "{look}");
            state.unanswered(at(look), error());
            assert!(state.stands_still_since(at(look + 2_000)).is_none(), "{look}");
        }
        // A line that is that slow is silent for longer.
        let mut slow = OutageState::default();
        slow.begin_looks(at(0));
        slow.answered(at(0), at(1_800));
        assert!(
            slow.answering_since(at(8_999)).is_some() && slow.answering_since(at(9_001)).is_none()
        );
    }

    #[test]
    fn a_silence_shows_after_half_a_second_and_an_answer_ends_it() {
        let mut state = OutageState::default();
        assert!(state.answering_since(at(9)).is_none(), "nothing was heard so far");
        state.connected(at(10));
        assert_eq!(state.answering_since(at(60_000)), Some(at(10)));
        state.sent(at(60_000));
        assert!(state.shown_silence(at(60_499)).is_none());
        assert_eq!(state.shown_silence(at(60_500)), Some(at(60_000)));
        assert!(state.answering_since(at(60_500)).is_none());
        // Also when no command has failed.
        state.answered(at(60_000), at(61_000));
        assert_eq!(state.answering_since(at(61_000)), Some(at(61_000)));
        // A connection that is cut now and then is no silence.
        state.sent(at(70_000));
        state.unanswered(at(70_000), error());
        state.sent(at(70_300));
        state.answered(at(70_300), at(70_301));
        assert_eq!(state.answering_since(at(70_301)), Some(at(61_000)));
    }
}
