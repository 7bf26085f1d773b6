use leasehold_testkit::RedisServer;

use super::kind::Kind;

/// Servers of which one is the master of a lock, and another takes over when it fails.
pub(super) trait Site: Sync {
    /// The address of all.
    fn url(&self) -> String;

    fn servers(&self) -> &[RedisServer];

    /// The name of the lock for a round.
    fn lock(&self, round: usize) -> &'static str;

    /// The number of the master that has a key, as soon as there is one.
    fn master_of(&self, key: &str) -> usize;

    /// The numbers of the servers that may take over from a master.
    fn heirs(&self, master: usize) -> Vec<usize>;

    /// Has another server take over, and returns when it has.
    fn replace(&self, master: usize);

    /// Whether the servers take a master for dead.
    fn have_noticed(&self, master: usize) -> bool;

    /// Returns when every server is there, and follows its master.
    fn heal(&self);

    /// The heirs of a master hear of nothing that is written from now on.
    fn cut_off_heirs(&self, master: usize) {
        self.heirs(master).iter().for_each(|heir| self.servers()[*heir].cut_off());
    }

    /// Lets them follow whichever master there is.
    fn rejoin_heirs(&self, master: usize) {
        self.heirs(master).iter().for_each(|heir| self.servers()[*heir].rejoin());
    }

    fn strike(&self, master: usize, kind: Kind) {
        match kind {
            Kind::Killed => self.servers()[master].kill(),
            Kind::Hung => self.servers()[master].stop_signal(),
            Kind::Replaced => self.replace(master),
        }
    }

    /// The master that was struck is there again.
    fn wake(&self, master: usize, kind: Kind) {
        match kind {
            Kind::Killed => self.servers()[master].restart(),
            Kind::Hung => self.servers()[master].cont_signal(),
            Kind::Replaced => {}
        }
    }
}
