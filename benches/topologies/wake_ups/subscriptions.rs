use redis::{Client, Connection, ConnectionLike, Value, cmd};

use super::channel::Channel;
use crate::{
    Failure,
    lengths::Lengths,
    site::Site,
    usage::{self, count, micros},
};

/// Subscribes to channels and ends that again, a batch at a time, and tells what one costs.
pub(super) fn measure(
    site: &Site,
    channel: Channel,
    lengths: Lengths,
    batch: usize,
) -> Result<Vec<f64>, Failure> {
    let server = &site.masters()[0];
    let mut connection = Client::open(server.url())?.get_connection()?;
    let channels = lengths.messages;
    let names: Vec<String> = (0..channels).map(|number| format!("runtime:{{{number}}}")).collect();
    let (cpu, memory) = (usage::cpu(server), usage::memory(server));
    send(&mut connection, channel.subscribe(), &names, batch)?;
    let bytes = usage::memory(server) - memory;
    send(&mut connection, channel.unsubscribe(), &names, batch)?;
    let cpu = usage::cpu(server).saturating_sub(cpu);
    Ok(vec![micros(cpu) / count(channels), bytes / count(channels)])
}

/// Sends a command for each channel.
fn send(
    connection: &mut Connection,
    command: &str,
    names: &[String],
    batch: usize,
) -> Result<(), Failure> {
    for names in names.chunks(batch) {
        let commands = names.iter().flat_map(|name| cmd(command).arg(name).get_packed_command());
        let commands: Vec<u8> = commands.collect();
        for answer in connection.req_packed_commands(&commands, 0, names.len())? {
            if let Value::ServerError(error) = answer {
                return Err(format!("{error:?}").into());
            }
        }
    }
    Ok(())
}
