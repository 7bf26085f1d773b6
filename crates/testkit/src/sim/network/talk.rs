use std::time::Duration;

use super::{
    letter::Happening,
    question::{Question, Reply, Told},
    wire::Wire,
};
use crate::sim::servers::News;

/// The shortest time that a write takes to a replica.
const LEAST_LAG: Duration = Duration::from_micros(20);

/// Questions, and what servers tell each other.
impl Wire {
    /// A process asks something.
    pub(in crate::sim) fn ask(&mut self, question: Question) {
        let weather = self.weather;
        if self.ends[question.process].dead || self.dice.chance(weather.lose_request) {
            return;
        }
        let at = self.now() + weather.delay(&self.dice);
        self.schedule(at, Happening::Question(question));
    }

    /// A Sentinel or a server answers.
    pub(in crate::sim) fn tell(&mut self, Question { process, answers, .. }: Question, told: Told) {
        let weather = self.weather;
        if !self.dice.chance(weather.lose_reply) {
            let at = self.now() + weather.delay(&self.dice);
            self.schedule(at, Happening::Told(Reply { process, told, answers }));
        }
    }

    /// Servers tell each other something, which takes so long.
    pub(in crate::sim) fn spread(&mut self, news: News, after: Duration) {
        let at = self.now() + after;
        self.schedule(at, Happening::News(news));
    }

    /// How long a message between servers takes that usually takes no longer than `usual`.
    pub(in crate::sim) fn lag(&self, usual: Duration) -> Duration {
        let slow = self.dice.chance(self.weather.slow);
        let most = if slow { self.weather.longest.max(usual) } else { usual };
        self.dice.spread(LEAST_LAG, most.max(LEAST_LAG))
    }
}
