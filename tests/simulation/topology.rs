use std::time::Duration;

use leasehold::redis::Replication;
use leasehold_testkit::sim::{Dice, Fall, Forsaken, Layout, Stranger, Weather};

use super::{
    kind::Kind,
    plan::{Act, Habits, Plan, millis},
};

/// The longest time in which a slot has some of its keys here and some there.
const TORN: Duration = millis(20);
/// How much longer than that the pause before a repetition may be.
const TORN_PAUSE: Duration = millis(40);
/// How much more than the difference of the clocks an outage takes.
const OUTAGE: Duration = millis(3);
/// How long it takes until processes have found a new master, and listen there: a look, its pause,
/// its answers, and the longest pause before a subscription.
const SWITCH: Duration = millis(200 + 20 + 100 + 200);

impl Plan {
    /// Makes a plan of a storm one of a master with replicas and Sentinels.
    pub(crate) fn become_group(&mut self, dice: &Dice) {
        let replicas = dice.from_to(1, 2);
        let acks = if dice.below(2) == 0 { 0 } else { dice.from_to(1, replicas) };
        let most = dice.pick(&[millis(0), millis(0), millis(5), millis(100)]);
        let mut behind = vec![Duration::ZERO];
        for _ in 0..replicas {
            behind.push(dice.time(Duration::ZERO, most));
        }
        let lags: &[Duration] =
            if acks > 0 { &[millis(1), millis(5)] } else { &[millis(1), millis(5), millis(50)] };
        let lag = dice.pick(lags);
        let has_liar = dice.below(3) == 0;
        let acks = u8::try_from(acks).unwrap_or(0);
        self.layout = Layout::Group { behind, lag, has_acks: acks > 0, has_liar };
        self.asks = acks;
        self.acks_within = millis(dice.pick(&[30, 50, 200]));
        let mut at = Duration::ZERO;
        // Where no lease may be lost, no clock may be ahead of the one before.
        let times = if acks > 0 && !most.is_zero() { 1 } else { dice.from_to(1, 3) };
        for _ in 0..times {
            at += dice.time(millis(20), self.span / 2);
            at = self.draw_failover(at, most, (acks, u64::from(acks) == replicas), dice);
        }
        self.settle_acts(at);
    }

    /// A failover that begins at some time; when it is over.
    ///
    /// If a master dies alone, the replica that is furthest has every grant that one has
    /// acknowledged. If it goes on beside its successor, only all of them together keep it from
    /// granting more.
    fn draw_failover(
        &mut self,
        at: Duration,
        behind: Duration,
        (acks, are_all): (u8, bool),
        dice: &Dice,
    ) -> Duration {
        let falls: &[Fall] = if acks > 0 && !are_all {
            &[Fall::Dies]
        } else {
            &[Fall::Dies, Fall::Dies, Fall::Sleeps, Fall::IsCutOff]
        };
        let (fall, is_any) = (dice.pick(falls), are_all);
        let while_ = |most: u64| dice.spread(millis(1), millis(most));
        let promoted = at + behind + OUTAGE + while_(300);
        let forsaken = match fall {
            _ if acks > 0 => Forsaken::Nothing,
            Fall::Dies => Forsaken::Lost,
            Fall::Sleeps | Fall::IsCutOff => Forsaken::Everything,
        };
        let slowness = while_(300);
        // Often they lag when it matters.
        if dice.below(3) > 0 {
            let (from, longest) = (at.saturating_sub(while_(60)), while_(300));
            self.acts.push((from, Act::Stall { time: at.saturating_sub(from) + longest }));
        }
        self.acts.push((at, Act::Fall { fall }));
        self.acts.push((promoted, Act::Promote { is_any, slowness, forsaken }));
        let mut over = promoted + while_(600);
        if fall == Fall::Sleeps {
            self.acts.push((over, Act::Wake));
            over += while_(600);
        }
        self.acts.push((over, Act::Rejoin));
        over + slowness
    }

    /// Makes a plan of a storm one of a Cluster whose slots move.
    pub(crate) fn become_cluster(&mut self, is_calm: bool, dice: &Dice) {
        let masters = dice.from_to(2, 3);
        let nodes = usize::try_from(masters).unwrap_or(2);
        // Dice of their own: the other seeds stay what they were.
        let own_dice = Dice::new(self.seed ^ 0x7374_7261_6e67_6572);
        let stranger = match own_dice.below(4) {
            0 | 1 if !is_calm => Some(Stranger::New),
            2 => Some(Stranger::OfAnother),
            _ => None,
        };
        let names = self.names.clone();
        self.layout = Layout::Cluster { masters: nodes, stranger, names };
        if is_calm {
            self.calm_down(dice);
        }
        let mut end = Duration::ZERO;
        let leaver = usize::try_from(dice.below(masters)).unwrap_or(0);
        for name in 0..self.names.len() {
            let mut at = Duration::ZERO;
            for _ in 0..dice.from_to(1, 3) {
                at += dice.time(millis(20), self.span / 2);
                let to = usize::try_from(dice.below(masters)).unwrap_or(0);
                at = self.draw_move(at, name, to, dice);
            }
            // Nothing is left on the server that leaves.
            let to = (leaver + 1) % nodes;
            at = self.draw_move(at + millis(1), name, to, dice);
            end = end.max(at);
        }
        if stranger == Some(Stranger::New) {
            end += own_dice.time(millis(1), millis(300));
            self.acts.push((end, Act::Doze));
            end += own_dice.time(millis(50), millis(600));
            self.acts.push((end, Act::Wake));
        }
        if dice.below(2) == 0 {
            end += dice.time(millis(1), millis(300));
            self.acts.push((end, Act::Leave { node: leaver }));
            end += SWITCH;
        }
        self.settle_acts(end);
    }

    fn draw_move(&mut self, at: Duration, name: usize, to: usize, dice: &Dice) -> Duration {
        let longest = dice.pick(&[millis(5), self.claim_window, self.ttls[0]]);
        let while_ = || dice.spread(Duration::from_micros(10), longest);
        let torn = at + while_();
        let moved = torn + dice.time(Duration::ZERO, TORN);
        let owned = moved + while_();
        let slowness = while_();
        self.acts.push((at, Act::BeginMove { name, to }));
        self.acts.push((torn, Act::Tear { name }));
        self.acts.push((moved, Act::MoveKeys { name }));
        self.acts.push((owned, Act::EndMove { name, slowness }));
        owned + slowness
    }

    /// Nothing but the slots moves, and all who ask stay and are polled.
    fn calm_down(&mut self, dice: &Dice) {
        self.weather = Weather::calm();
        self.acts.clear();
        self.claim_window = millis(dice.pick(&[400, 400, 1_000]));
        let ttl = self.claim_window.max(millis(1_000));
        self.ttls = [ttl, ttl * 2];
        self.command_timeout = millis(400);
        let Habits { drops, half_releases, reenters, writes, other_ttls, .. } = self.habits;
        let longest = self.claim_window;
        self.habits = Habits {
            drops,
            half_releases,
            reenters,
            writes,
            other_ttls,
            longest_think: self.habits.longest_think.min(longest),
            longest_hold: self.habits.longest_hold.min(longest),
            ..Habits::none()
        };
    }

    fn settle_acts(&mut self, end: Duration) {
        self.acts.retain(|(_, act)| !matches!(act, Act::Flush));
        self.acts.sort_by_key(|(at, _)| *at);
        self.span = self.span.max(end + millis(50));
    }

    /// What servers that move add to the time in which a task waits in vain.
    pub(crate) fn in_vain_on_its_way(&self, way: Duration) -> Duration {
        match self.kind {
            // A look, the question for the role, and the command.
            Kind::Group => way * 8 + self.acknowledging(),
            Kind::Cluster { .. } => TORN + TORN_PAUSE + way * 8,
            _ => Duration::ZERO,
        }
    }

    /// How long replicas take to acknowledge what stands in line when nothing goes wrong.
    fn acknowledging(&self) -> Duration {
        match self.layout {
            Layout::Group { has_acks: true, lag, .. } => lag * 8,
            _ => Duration::ZERO,
        }
    }

    /// The clock of the first master is behind all others.
    pub(crate) fn set_first_clock_back(&mut self) {
        if let Layout::Group { behind, .. } = &mut self.layout {
            behind.fill(Duration::ZERO);
            behind[0] = self.ttls[0];
        }
    }

    /// The clock of each new master is behind the one before by more than any outage, and no replica
    /// has acknowledged the last fences.
    pub(crate) fn set_new_clocks_back(&mut self) {
        if let Layout::Group { behind, has_acks: false, .. } = &mut self.layout {
            for (number, behind) in behind.iter_mut().enumerate() {
                *behind = millis(10_000) * u32::try_from(number).unwrap_or(0);
            }
        }
    }

    /// What the runtimes ask of replicas.
    pub(crate) fn replication(&self) -> Replication {
        let (replicas, timeout) = (self.asks, self.acks_within);
        if replicas == 0 {
            return Replication::NONE;
        }
        Replication::wait(replicas, timeout).expect("in range")
    }

    /// What they add to a recovery.
    pub(crate) fn switch(&self) -> Duration {
        match &self.layout {
            Layout::One => Duration::ZERO,
            Layout::Group { behind, .. } => {
                SWITCH + behind.iter().copied().max().unwrap_or_default() * 3
            }
            Layout::Cluster { .. } => SWITCH,
        }
    }

    /// Whether two masters may serve at once, and nobody asks replicas: then nothing is promised of
    /// their tokens.
    pub(crate) fn may_split(&self) -> bool {
        let goes_on = |(_, act): &(Duration, Act)| {
            matches!(act, Act::Promote { forsaken: Forsaken::Everything, .. })
        };
        self.acts.iter().any(goes_on)
    }
}
