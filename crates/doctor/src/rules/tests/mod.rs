//! The rules, each with tables of facts.

mod groups;
mod not_examined;
mod replicas;
mod server;

use super::Rule;
use crate::{Finding, tests::Scene};

/// What some rules find in a scene.
fn find<const N: usize>(rules: [Rule; N], scene: &Scene) -> Vec<Finding> {
    rules.iter().filter_map(|rule| rule(scene.case())).collect()
}
