use crate::faulty::CommandKind;

/// A direction in which messages travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From clients to the server.
    ToServer,
    /// From the server to clients.
    ToClient,
    /// Either.
    Both,
}

/// Some of the connections that are open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// All of them.
    All,
    /// The n-th of those that are open, in the order in which they came, counted from 0.
    Nth(usize),
    /// Those that have carried a command of this kind.
    Carrying(CommandKind),
    /// Those that have subscribed to something.
    Subscribed,
}

/// In which directions nothing passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Hole {
    to_server: bool,
    to_client: bool,
}

impl Hole {
    /// Lets nothing pass in a direction any more.
    pub(super) fn swallow(&mut self, direction: Direction) {
        self.to_server |= direction != Direction::ToClient;
        self.to_client |= direction != Direction::ToServer;
    }

    /// Whether nothing passes in this direction.
    pub(super) fn swallows(self, direction: Direction) -> bool {
        match direction {
            Direction::ToServer => self.to_server,
            Direction::ToClient => self.to_client,
            Direction::Both => self.to_server && self.to_client,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hole_swallows_its_directions() {
        let mut hole = Hole::default();
        assert!(!hole.swallows(Direction::ToServer) && !hole.swallows(Direction::ToClient));
        hole.swallow(Direction::ToClient);
        assert!(!hole.swallows(Direction::ToServer) && hole.swallows(Direction::ToClient));
        hole.swallow(Direction::Both);
        assert!(hole.swallows(Direction::ToServer) && hole.swallows(Direction::Both));
    }
}
