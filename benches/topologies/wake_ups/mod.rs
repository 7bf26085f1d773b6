//! What a message costs on the bus of a Cluster: by a plain channel, which every node hears, and by a
//! sharded one, which only the nodes of its slot do.

mod channel;
mod ear;
mod messages;
mod subscriptions;

use channel::Channel;

use crate::{
    Failure,
    lengths::Lengths,
    site::Topology,
    table::{Column, Key, Table},
};

/// Servers that pass messages on, in the order of the tables.
const TOPOLOGIES: [Topology; 5] = [
    Topology::One,
    Topology::Cluster(1),
    Topology::Cluster(3),
    Topology::Cluster(6),
    Topology::Replicated,
];

/// How many messages are sent before an answer is awaited.
const LOADS: [(&str, usize); 2] = [("alone", 1), ("64 side by side", 64)];

const LEGEND: &str = "\
Medians of interleaved rounds (least..most). A script publishes 150 bytes, as a grant does, at one node;
the subscriber is connected to another node, or at a sharded channel to the one that owns the slot. µs:
processor time for a message, of the node that publishes, of each other node (the mean of all), of all
nodes. A message on a sharded channel goes to the replicas of that master alone. bytes: what the
publishing node writes for a message, to other nodes, to the subscriber and to the sender. no message:
the same script without one.";

const COLUMNS: &[Column] = &[
    ("publisher µs", "publisher_micros", 1),
    ("other node µs", "other_node_micros", 1),
    ("all nodes µs", "all_nodes_micros", 1),
    ("bytes", "bytes_written", 0),
];

const OF_SUBSCRIPTIONS: &str = "\
Medians of rounds (least..most). A connection subscribes to channels, and ends all subscriptions again.
µs: processor time of the server for the two. bytes: memory of the server for a subscription.";

const COLUMNS_OF_SUBSCRIPTIONS: &[Column] =
    &[("server µs", "server_micros", 1), ("bytes", "bytes", 0)];

/// Runs rounds of all channels on all topologies.
pub(crate) fn measure(lengths: Lengths) -> Result<Vec<Table>, Failure> {
    let title = "a message on the bus of a Cluster";
    let mut table = Table::new("wake-ups", title, COLUMNS, None, LEGEND);
    let title = "subscriptions to channels of a Cluster";
    let mut others =
        Table::new("subscriptions", title, COLUMNS_OF_SUBSCRIPTIONS, None, OF_SUBSCRIPTIONS);
    let sites = TOPOLOGIES.map(Topology::start);
    for round in 1..=lengths.rounds {
        for site in &sites {
            for (load, batch) in LOADS {
                for channel in Channel::ALL.into_iter().filter(|one| one.exists_at(site)) {
                    let values = messages::measure(site, channel, lengths.messages, batch)?;
                    table.add(Key::new(&site.topology, &load, channel.name()), values);
                }
            }
            if site.topology == Topology::Cluster(1) {
                for (load, batch) in LOADS {
                    for channel in [Channel::Plain, Channel::Sharded] {
                        if channel.exists_at(site) {
                            let key = Key::new(&site.topology, &load, channel.name());
                            let values = subscriptions::measure(site, channel, lengths, batch)?;
                            others.add(key, values);
                        }
                    }
                }
            }
        }
        eprintln!("wake-ups: round {round} of {}", lengths.rounds);
    }
    Ok(vec![table, others])
}
