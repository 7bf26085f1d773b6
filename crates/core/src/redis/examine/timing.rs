use std::time::Duration;

use redis::cmd;

use super::asker::Asker;
use crate::diagnosis::{
    ClockOffset,
    facts::{NotRead, Reading, Timing},
};

/// How many round trips are timed.
const TRIPS: usize = 5;

/// One round trip, and what the clocks showed.
#[derive(Debug, Clone, Copy)]
struct Sample {
    trip: Duration,
    /// Our time of day when the command was sent.
    sent_at: Duration,
    /// The server's time of day at some moment after that.
    server: Duration,
}

/// Times a few round trips, and reads the server's clock.
pub(super) async fn timing(asker: &Asker) -> Reading<Timing> {
    let mut samples = Vec::with_capacity(TRIPS);
    for _ in 0..TRIPS {
        match sample(asker).await {
            Ok(sample) => samples.push(sample),
            Err(why) if samples.is_empty() => return Err(why),
            Err(_) => break,
        }
    }
    of(samples).ok_or(NotRead::Silent)
}

async fn sample(asker: &Asker) -> Reading<Sample> {
    let (begun_at, sent_at) = (asker.clock.now(), asker.clock.unix_time());
    let (seconds, micros): (u64, u64) = asker.ask_for(&cmd("TIME")).await?;
    let trip = asker.clock.now().saturating_since(begun_at);
    Ok(Sample {
        trip,
        sent_at,
        server: Duration::from_secs(seconds).saturating_add(Duration::from_micros(micros)),
    })
}

/// The median of the round trips, and the offset of the shortest: there the server read its clock
/// nearest to the middle.
fn of(mut samples: Vec<Sample>) -> Option<Timing> {
    samples.sort_by_key(|sample| sample.trip);
    let round_trip = samples.get(samples.len() / 2)?.trip;
    let Sample { trip, sent_at, server } = *samples.first()?;
    let offset = ClockOffset::between(server, sent_at + trip / 2);
    Some(Timing { round_trip, offset, margin: trip / 2 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_round_trip_tells_the_offset() {
        let millis = Duration::from_millis;
        let sample = |trip, server| Sample {
            trip: millis(trip),
            sent_at: millis(1000),
            server: millis(server),
        };
        let told = of(vec![sample(40, 1033), sample(4, 1012), sample(10, 1014)]).unwrap();
        assert_eq!(told.round_trip, millis(10));
        assert_eq!((told.offset, told.margin), (ClockOffset::Ahead(millis(10)), millis(2)));
        assert_eq!(of(vec![sample(4, 992)]).unwrap().offset, ClockOffset::Behind(millis(10)));
        assert_eq!(of(Vec::new()), None);
    }
}
