use leasehold_core::store::Command;

use super::{
    network::{About, Happening, Letter, Outcome, Question, Reply, Told},
    server::refusal,
    servers::{Layout, State, place_of},
    trace::Step,
    world::{World, lock},
};
use crate::faulty::CommandFacts;

/// What arrives, and what the servers do with it.
impl World {
    pub(super) fn deliver(&mut self) {
        loop {
            let Some(happening) = lock(&self.wire).take_due() else { return };
            let Some(happening) = self.unless_asleep(happening) else { continue };
            match happening {
                Happening::Arrival(letter) => self.arrive(letter),
                Happening::Reply { lane, call, slot, outcome } => {
                    let mut wire = lock(&self.wire);
                    if wire.delivers(lane) {
                        wire.note(|| Step::Answered { process: lane.process, call });
                        let delivery = Box::new(move || slot.fill(outcome));
                        self.processes[lane.process].deliver(delivery);
                    }
                }
                Happening::Push { process, push } => {
                    let mut wire = lock(&self.wire);
                    wire.note(|| Step::Heard { process, push: push.clone() });
                    let Some(listener) = wire.listener(process) else { continue };
                    self.processes[process].deliver(Box::new(move || {
                        if let Some(listener) = listener.upgrade() {
                            listener.on_push(push);
                        }
                    }));
                }
                Happening::Subscription { process } => self.subscribe(process),
                Happening::Question(question) => self.answer(question),
                Happening::Told(Reply { process, told, answers }) => {
                    // It matters not whether the process still listens.
                    self.processes[process].deliver(Box::new(move || drop(answers.send(told))));
                }
                Happening::News(news) => self.hear(news),
                Happening::Visit(deed) => deed(self.now()),
            }
        }
    }

    fn arrive(&mut self, letter: Letter) {
        let Letter { lane, call, ref command, is_asking, refused, loses_reply, .. } = letter;
        let (acks, mut write) = (command.acks(), 0);
        let is_misled = lock(&self.wire).is_misled(lane.process);
        let admitted = lock(&self.fleet).admits(lane.node, command, is_asking);
        let outcome = match (admitted, refused, is_misled) {
            (Err(refused), ..) => Err(refused),
            (_, true, _) => Err(refusal("the server is loading")),
            (.., true) => lock(&self.fleet).nodes[lane.node].server.answer_as_replica(command),
            (..) => {
                let (outcome, number) = self.execute(lane.node, command);
                write = number;
                outcome
            }
        };
        let mut wire = lock(&self.wire);
        wire.note(|| Step::Executed {
            process: lane.process,
            node: lane.node,
            call,
            command: command.clone(),
            answer: outcome.clone(),
        });
        if acks.are_asked() && outcome.is_ok() {
            drop(wire);
            return self.wait(letter, outcome, write, acks);
        }
        if let Some(slot) = letter.slot.filter(|_| !loses_reply) {
            wire.reply(lane, call, slot, outcome);
        }
    }

    pub(super) fn execute(&mut self, node: usize, command: &Command) -> (Outcome, u64) {
        let (outcome, pushes, number) = lock(&self.fleet).execute(node, command);
        self.spy_on(node, command, &outcome, &pushes);
        self.replicate(node, number, command);
        let mut wire = lock(&self.wire);
        for (process, push) in pushes {
            wire.push(node, process, &push);
        }
        (outcome, number)
    }

    /// A process subscribes where its store leads.
    fn subscribe(&mut self, process: usize) {
        let fleet = lock(&self.fleet);
        let node = match fleet.layout {
            Layout::One => Some(0),
            Layout::Group { .. } => self.routers[process].master(),
            // Not always at the same one.
            Layout::Cluster { masters, .. } => Some(process % masters),
        };
        let stands = |node: &usize| {
            let node = &fleet.nodes[*node];
            node.is_master && node.state == State::Awake
        };
        let node = match (node.filter(stands), &fleet.layout) {
            (None, Layout::Cluster { masters, .. }) => (0..*masters).find(stands),
            (node, _) => node,
        };
        let mut wire = lock(&self.wire);
        match node {
            Some(node) => wire.subscribe(process, node),
            None => wire.subscribe_later(process),
        }
    }

    /// A Sentinel or a server answers a question.
    fn answer(&self, question: Question) {
        let fleet = lock(&self.fleet);
        let is_dead = |node: usize| fleet.nodes[node].state == State::Dead;
        let told = match question.about {
            About::Role { node } | About::Slots { node } if is_dead(node) => Told::Nobody,
            About::Master { sentinel } => Told::Master(place_of(fleet.named_by(sentinel))),
            About::Role { node } => Told::Role(fleet.nodes[node].is_master),
            About::Slots { node } => Told::Slots { node, view: fleet.view(node) },
        };
        lock(&self.wire).tell(question, told);
    }
}
