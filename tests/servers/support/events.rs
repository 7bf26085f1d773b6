//! Events of a history as lines, for workers in other processes.

use std::{collections::BTreeMap, fmt::Debug, str::FromStr, time::Duration};

use leasehold::{
    Guard,
    time::{Clock, Instant, SystemClock},
};
use leasehold_testkit::{Event, history::Worker};

/// What begins the line of an event.
pub(crate) const PREFIX: &str = "event ";
/// What begins the line of an event of a named lock.
const OF: &str = "of ";

/// Prints an event for the parent to read.
pub(crate) fn tell(event: Event) {
    println!("{PREFIX}{}", line(event));
}

/// Tells of a grant, and until when its holder believes.
pub(crate) fn tell_granted(worker: Worker, guard: &Guard, asked_at: Instant) {
    let (fence, lease, granted_at) = (guard.fence(), guard.id(), SystemClock.now());
    tell(Event::Granted { worker, fence, lease, asked_at, granted_at });
    tell_believed(guard);
}

/// Tells until when a holder believes, if it still does.
pub(crate) fn tell_believed(guard: &Guard) {
    let (now, left) = (SystemClock.now(), guard.remaining());
    if !left.is_zero() {
        tell(Event::BelievedUntil { lease: guard.id(), until: now + left });
    }
}

/// Gives a lease back, and tells how it ended.
pub(crate) async fn release(guard: Guard) {
    let (lease, at) = (guard.id(), SystemClock.now());
    tell(match guard.release().await {
        Ok(_) => Event::Released { lease, at },
        Err(_) => Event::Lost { lease, at: SystemClock.now() },
    });
}

/// Prints an event of one of several locks for the parent to read.
pub(crate) fn tell_of(lock: &str, event: Event) {
    println!("{OF}{lock} {}", line(event));
}

/// The events of several locks among the lines of a child.
pub(crate) fn read_of<'a>(
    lines: impl IntoIterator<Item = &'a String>,
) -> BTreeMap<String, Vec<Event>> {
    let mut told = BTreeMap::<String, Vec<Event>>::new();
    for line in lines {
        if let Some((lock, line)) = line.strip_prefix(OF).and_then(|line| line.split_once(' ')) {
            told.entry(lock.into()).or_default().push(event(line));
        }
    }
    told
}

/// The events among the lines of a child.
pub(crate) fn read(lines: &[String]) -> impl Iterator<Item = Event> {
    lines.iter().filter_map(|line| line.strip_prefix(PREFIX)).map(event)
}

fn line(event: Event) -> String {
    match event {
        Event::Asked { worker, at } => format!("asked {worker} {}", nanos(at)),
        Event::Granted { worker, fence, lease, asked_at, granted_at } => {
            let (asked_at, granted_at) = (nanos(asked_at), nanos(granted_at));
            format!("granted {worker} {fence} {lease} {asked_at} {granted_at}")
        }
        Event::BelievedUntil { lease, until } => format!("until {lease} {}", nanos(until)),
        Event::Wrote { fence, lease, at, order, accepted } => {
            format!("wrote {fence} {lease} {} {order} {accepted}", nanos(at))
        }
        Event::Incremented { worker } => format!("incremented {worker}"),
        Event::CounterRead { value } => format!("counter {value}"),
        Event::Released { lease, at } => format!("released {lease} {}", nanos(at)),
        Event::Lost { lease, at } => format!("lost {lease} {}", nanos(at)),
        Event::GaveUp { worker, at } => format!("gave-up {worker} {}", nanos(at)),
        other => panic!("{other:?} is told by no process"),
    }
}

fn event(line: &str) -> Event {
    let mut words = Words(line.split(' '));
    match words.next() {
        "asked" => Event::Asked { worker: words.parse(), at: words.instant() },
        "granted" => Event::Granted {
            worker: words.parse(),
            fence: words.parse(),
            lease: words.parse(),
            asked_at: words.instant(),
            granted_at: words.instant(),
        },
        "until" => Event::BelievedUntil { lease: words.parse(), until: words.instant() },
        "wrote" => Event::Wrote {
            fence: words.parse(),
            lease: words.parse(),
            at: words.instant(),
            order: words.parse(),
            accepted: words.parse(),
        },
        "incremented" => Event::Incremented { worker: words.parse() },
        "counter" => Event::CounterRead { value: words.parse() },
        "released" => Event::Released { lease: words.parse(), at: words.instant() },
        "gave-up" => Event::GaveUp { worker: words.parse(), at: words.instant() },
        "lost" => Event::Lost { lease: words.parse(), at: words.instant() },
        other => panic!("not an event: {other}"),
    }
}

struct Words<'a>(std::str::Split<'a, char>);

impl<'a> Words<'a> {
    fn next(&mut self) -> &'a str {
        self.0.next().expect("a line has all its words")
    }

    fn parse<T: FromStr<Err: Debug>>(&mut self) -> T {
        self.next().parse().expect("a word means something")
    }

    fn instant(&mut self) -> Instant {
        Instant::at(Duration::from_nanos(self.parse()))
    }
}

fn nanos(at: Instant) -> u128 {
    at.since_origin().as_nanos()
}
