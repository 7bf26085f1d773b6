use std::collections::VecDeque;

use leasehold_core::{FenceToken, Stamp};
use tokio::sync::oneshot;

use crate::rule::{Verdict, judge};

/// The message to a waiting request: its turn has come, or a newer stamp shuts it out.
pub(super) type Told = Result<(), Stamp>;

/// Why a request does not enter a lane.
#[derive(Debug)]
pub(super) enum NoPlace {
    /// The gate has admitted this stamp already.
    Stale(Stamp),
    /// The lane has the largest allowed number of requests with this fence or newer ones.
    Full,
}

/// A request that has entered a lane.
#[derive(Debug)]
pub(super) struct Entered {
    pub(super) number: u64,
    /// Whether its stamp is newer than those of all others in the lane, and than the highest stamp
    /// that the gate has reported. So its lease has taken over from theirs.
    pub(super) outranks: bool,
}

/// The answer to a request that asks for its turn.
#[derive(Debug)]
pub(super) enum Turn {
    Now(Told),
    Later(oneshot::Receiver<Told>),
}

/// The requests for one resource, in the order in which they came. At most one of them has its
/// turn.
///
/// A mutex guards the lane. Messages are sent after the mutex is released, because a waker may
/// poll at once.
#[derive(Debug, Default)]
pub(super) struct Lane {
    requests: VecDeque<Request>,
    entered: u64,
    has_turn: Option<u64>,
    /// The highest stamp that the gate has reported to a request in the lane. It is forgotten with
    /// the lane, and refused requests do not enter the lane. So if an operator sets the watermark
    /// back, that takes effect as soon as the requests in the lane have left it.
    highest: Option<Stamp>,
}

#[derive(Debug)]
struct Request {
    number: u64,
    presented: Stamp,
    /// Set while it waits for its turn.
    waits: Option<oneshot::Sender<Told>>,
}

/// A message for a request that waits.
#[must_use = "the request waits for it"]
#[derive(Debug)]
pub(super) struct Message(oneshot::Sender<Told>, Told);

impl Message {
    pub(super) fn send(self) {
        // If the request is gone, its dropped place passes the turn on.
        let _ = self.0.send(self.1);
    }
}

impl Lane {
    /// Enters the lane, unless the stamp is stale or the lane has `most` requests whose fence is
    /// not older. Requests with older fences do not count, so a former holder cannot fill the lane
    /// of the new one.
    pub(super) fn enter(&mut self, presented: Stamp, most: usize) -> Result<Entered, NoPlace> {
        if let Verdict::Refuse { highest } = judge(self.highest, presented) {
            return Err(NoPlace::Stale(highest));
        }
        let fences = self.requests.iter().map(|request| request.presented.fence);
        if fences.clone().filter(|fence| *fence >= presented.fence).count() >= most {
            return Err(NoPlace::Full);
        }
        let newest: Option<FenceToken> = fences.chain(self.highest.map(|told| told.fence)).max();
        let outranks = newest.is_some_and(|newest| newest < presented.fence);
        self.entered += 1;
        let number = self.entered;
        self.requests.push_back(Request { number, presented, waits: None });
        Ok(Entered { number, outranks })
    }

    /// Asks for the turn of a request that has entered.
    pub(super) fn ask(&mut self, number: u64) -> Turn {
        let mut requests = self.requests.iter_mut();
        let Some(request) = requests.find(|request| request.number == number) else {
            // Not reached: a request asks while it is in the lane.
            return Turn::Now(Ok(()));
        };
        if let Verdict::Refuse { highest } = judge(self.highest, request.presented) {
            return Turn::Now(Err(highest));
        }
        if *self.has_turn.get_or_insert(number) == number {
            return Turn::Now(Ok(()));
        }
        let (tell, told) = oneshot::channel();
        request.waits = Some(tell);
        Turn::Later(told)
    }

    /// Notes a stamp that the gate has reported, and returns refusals for waiting requests that
    /// are older.
    pub(super) fn on_told(&mut self, stamp: Stamp) -> Vec<Message> {
        if self.highest.is_some_and(|highest| highest.fence >= stamp.fence) {
            return Vec::new();
        }
        self.highest = Some(stamp);
        let is_stale = |presented| matches!(judge(Some(stamp), presented), Verdict::Refuse { .. });
        let stale = self.requests.iter_mut().filter(|request| is_stale(request.presented));
        stale.filter_map(|request| Some(Message(request.waits.take()?, Err(stamp)))).collect()
    }

    /// A request leaves. If it had the turn, the first waiting request gets it.
    pub(super) fn leave(&mut self, number: u64) -> Option<Message> {
        self.requests.retain(|request| request.number != number);
        if self.has_turn != Some(number) {
            return None;
        }
        let next = self.requests.iter_mut().find(|request| request.waits.is_some());
        self.has_turn = next.as_ref().map(|next| next.number);
        Some(Message(next?.waits.take()?, Ok(())))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use leasehold_testing::stamp;

    use super::*;

    fn enter(lane: &mut Lane, fence: u64) -> u64 {
        lane.enter(stamp(fence, fence), 9).unwrap().number
    }

    fn wait(lane: &mut Lane, number: u64) -> oneshot::Receiver<Told> {
        match lane.ask(number) {
            Turn::Later(told) => told,
            Turn::Now(told) => panic!("has its turn: {told:?}"),
        }
    }

    #[test]
    fn turns_go_by_the_order_of_entering_among_those_that_wait() {
        let mut lane = Lane::default();
        let [first, second, third] = [5; 3].map(|fence| enter(&mut lane, fence));
        assert!(matches!(lane.ask(first), Turn::Now(Ok(()))));
        let mut third_told = wait(&mut lane, third);
        let mut second_told = wait(&mut lane, second);
        lane.leave(first).unwrap().send();
        assert_eq!(second_told.try_recv(), Ok(Ok(())));
        assert!(third_told.try_recv().is_err());
        lane.leave(second).unwrap().send();
        assert_eq!(third_told.try_recv(), Ok(Ok(())));
        assert!(lane.leave(third).is_none());
        assert!(lane.is_empty());
    }

    #[test]
    fn one_that_does_not_wait_yet_holds_nobody_up() {
        let mut lane = Lane::default();
        let [first, tells, third] = [5; 3].map(|fence| enter(&mut lane, fence));
        assert!(matches!(lane.ask(first), Turn::Now(Ok(()))));
        let mut third_told = wait(&mut lane, third);
        lane.leave(first).unwrap().send();
        assert_eq!(third_told.try_recv(), Ok(Ok(())));
        let mut told = wait(&mut lane, tells);
        lane.leave(third).unwrap().send();
        assert_eq!(told.try_recv(), Ok(Ok(())));
    }

    #[test]
    fn a_newer_stamp_sends_away_those_that_wait_with_an_older_one() {
        let mut lane = Lane::default();
        let [first, older, newer] = [5, 5, 6].map(|fence| enter(&mut lane, fence));
        assert!(matches!(lane.ask(first), Turn::Now(Ok(()))));
        let (mut older_told, mut newer_told) = (wait(&mut lane, older), wait(&mut lane, newer));
        for message in lane.on_told(stamp(6, 6)) {
            message.send();
        }
        assert_eq!(older_told.try_recv(), Ok(Err(stamp(6, 6))));
        assert!(lane.on_told(stamp(5, 5)).is_empty());
        assert!(matches!(lane.ask(older), Turn::Now(Err(highest)) if highest == stamp(6, 6)));
        lane.leave(first).unwrap().send();
        assert_eq!(newer_told.try_recv(), Ok(Ok(())));
    }
}
