use super::quorum_group::{QuorumGroup, address};
use crate::{
    FaultProxy,
    proxy::{Direction, Rule, RuleId},
};

/// What lies between the servers of a quorum and one client: a proxy before each server, so that
/// what happens to one client happens to no other.
#[derive(Debug)]
pub struct QuorumNetwork {
    proxies: Vec<FaultProxy>,
    is_tls: bool,
}

impl QuorumNetwork {
    pub(super) fn before(group: &QuorumGroup) -> Self {
        let is_tls = group.is_tls();
        let before = if is_tls { FaultProxy::before_tls } else { FaultProxy::before };
        Self { proxies: group.servers().map(before).collect(), is_tls }
    }

    /// The address of the quorum through this network.
    pub fn url(&self) -> String {
        self.url_with("")
    }

    /// The address with a login before the hosts, as in `user:password@`.
    pub fn url_with(&self, login: &str) -> String {
        address(self.is_tls, login, self.proxies.iter().map(FaultProxy::port))
    }

    /// The proxy before the server of a number.
    ///
    /// # Panics
    ///
    /// Panics if there is no server of this number.
    pub fn proxy(&self, number: usize) -> &FaultProxy {
        &self.proxies[number]
    }

    /// The proxies, in the order of their servers.
    pub fn proxies(&self) -> impl Iterator<Item = &FaultProxy> {
        self.proxies.iter()
    }

    /// Cuts this client off from some servers: nothing passes in either direction, and nothing is
    /// closed.
    ///
    /// # Panics
    ///
    /// Panics if there is no server of such a number.
    pub fn cut(&self, numbers: &[usize]) {
        for number in numbers {
            self.proxies[*number].black_hole(Direction::Both);
        }
    }

    /// Adds a rule to every proxy; the names that they have there.
    ///
    /// # Panics
    ///
    /// Panics as [`FaultProxy::inject`] does.
    pub fn inject(&self, rule: &Rule) -> Vec<RuleId> {
        self.proxies.iter().map(|proxy| proxy.inject(rule.clone())).collect()
    }

    /// Makes the network as good as new, see [`FaultProxy::heal`].
    pub fn heal(&self) {
        self.proxies.iter().for_each(FaultProxy::heal);
    }
}
