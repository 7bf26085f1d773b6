use std::time::Duration;

use leasehold_testkit::RedisServer;
use redis::{Client, Script, cmd};

use super::{channel::Channel, ear::Ear};
use crate::{
    Failure,
    site::Site,
    usage::{self, count, micros},
};

/// As long as the message of a grant usually is.
pub(super) const MESSAGE: [u8; 150] = [b'm'; 150];

/// Publishes so many messages, a batch at a time, and tells what one costs.
pub(super) fn measure(
    site: &Site,
    channel: Channel,
    messages: usize,
    batch: usize,
) -> Result<Vec<f64>, Failure> {
    let batches = messages.div_ceil(batch);
    let messages = batches * batch;
    let name = format!("wake-ups:{{{}}}", site.name_on_each("wake-up").swap_remove(0));
    let servers: Vec<&RedisServer> = site.masters().iter().chain(site.replicas()).collect();
    // A plain channel may be heard at any node, a sharded one only where its slot is.
    let place = match (channel, site.masters()) {
        (Channel::Plain, [_, other, ..]) => other,
        (_, masters) => &masters[0],
    };
    let mut sender = Sender::connect(servers[0], channel, &name)?;
    let ear = Ear::begin(place, channel, &name, messages + batch)?;
    // The other nodes hear of a subscriber a little later than the subscriber itself.
    sender.send(1, batch)?;
    let before = Used::of(&servers)?;
    sender.send(batches, batch)?;
    ear.end()?;
    let used = Used::of(&servers)?.since(&before);
    let each = |cpu: Duration| micros(cpu) / count(messages);
    let others: Duration = used.cpu[1..].iter().sum();
    let other = each(others) / count(used.cpu.len() - 1);
    Ok(vec![each(used.cpu[0]), other, each(used.cpu.iter().sum()), used.written / count(messages)])
}

/// What servers have used, and what the first one has written.
struct Used {
    cpu: Vec<Duration>,
    written: f64,
}

impl Used {
    fn of(servers: &[&RedisServer]) -> Result<Self, Failure> {
        let written = usage::written(servers[0])?;
        Ok(Self { cpu: servers.iter().map(|server| usage::cpu(server)).collect(), written })
    }

    fn since(&self, earlier: &Self) -> Self {
        let cpu = self.cpu.iter().zip(&earlier.cpu);
        let cpu = cpu.map(|(now, then)| now.saturating_sub(*then)).collect();
        Self { cpu, written: self.written - earlier.written }
    }
}

/// A connection on which scripts publish.
struct Sender<'a> {
    connection: redis::Connection,
    script: Script,
    channel: &'a str,
}

impl<'a> Sender<'a> {
    fn connect(server: &RedisServer, channel: Channel, name: &'a str) -> Result<Self, Failure> {
        let mut connection = Client::open(server.url())?.get_connection()?;
        let script = Script::new(channel.script());
        script.prepare_invoke().load(&mut connection)?;
        Ok(Self { connection, script, channel: name })
    }

    /// The key is the name of the channel, so that both share a slot.
    fn send(&mut self, batches: usize, batch: usize) -> Result<(), Failure> {
        let mut calls = redis::pipe();
        for _ in 0..batch {
            let mut call = cmd("EVALSHA");
            call.arg(self.script.get_hash()).arg(1).arg(self.channel);
            calls.add_command(call.arg(self.channel).arg(&MESSAGE[..]).clone());
        }
        for _ in 0..batches {
            calls.exec(&mut self.connection)?;
        }
        Ok(())
    }
}
