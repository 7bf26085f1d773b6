use super::Case;
use crate::diagnosis::{Finding, Severity, Topic};

/// Whether the server has the commands that the settings need. One that is too old for all of them
/// is refused when a connection is made.
pub(super) fn judge(case: Case<'_>) -> Vec<Finding> {
    let Case { told, expected, .. } = case;
    if !expected.acks.on_disk() || told.version.is_at_least(7, 2) {
        return Vec::new();
    }
    let what = format!("{} has no WAITAOF, so no acquire can succeed", told.version);
    let cure = "use Redis 7.2 or newer, or ask for Replication::wait";
    vec![Finding::new(Severity::Danger, Topic::Version, what, cure)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnosis::{
        facts::Version,
        rules::support::{Scene, disks, healthy, replicas, seen},
    };

    #[test]
    fn an_old_server_cannot_wait_for_disks() {
        for (number, acks, found) in [
            ("7.0.15", disks(1), 1),
            ("7.0.15", replicas(1), 0),
            ("7.2.0", disks(1), 0),
            ("8.0", disks(1), 0),
            ("10.0.0", disks(1), 0),
        ] {
            let mut told = healthy();
            told.version = Version { product: "redis".into(), number: number.into() };
            let scene = Scene::of(told).asking(acks);
            assert_eq!(seen(&judge(scene.case())).len(), found, "{number} {acks}");
        }
    }
}
