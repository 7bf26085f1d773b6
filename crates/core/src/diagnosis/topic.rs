use std::fmt;

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Topic {
    /// Whether the server can be reached, and is one that Leasehold can use.
    Reach,
    /// The version of the server.
    Version,
    /// The rights of the user.
    Rights,
    /// Whether scripts run.
    Scripts,
    /// What the server does when its memory is full.
    Eviction,
    /// What is left after a restart.
    Persistence,
    /// The replicas, and what a master does without them.
    Replicas,
    /// The Sentinels.
    Sentinels,
    /// The Cluster and its slots.
    Cluster,
    /// The nodes of a quorum: how many answer, and which of them stay out.
    Quorum,
    /// The server's clock beside that of this process.
    Clock,
    /// How long a round trip takes.
    Latency,
    /// What could not be examined.
    NotExamined,
}

impl Topic {
    /// The topic in a word or two.
    pub fn as_label(self) -> &'static str {
        match self {
            Self::Reach => "reach",
            Self::Version => "version",
            Self::Rights => "rights",
            Self::Scripts => "scripts",
            Self::Eviction => "eviction",
            Self::Persistence => "persistence",
            Self::Replicas => "replicas",
            Self::Sentinels => "sentinels",
            Self::Cluster => "cluster",
            Self::Quorum => "quorum",
            Self::Clock => "clock",
            Self::Latency => "latency",
            Self::NotExamined => "not examined",
        }
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_label())
    }
}
