use super::scene;
use crate::support::{
    crew::{Crew, Finished, Plan},
    matrix::row,
};

row! {
    partition_splits: protected, control;
    fault: "a partition: the holder reaches one of three servers, two other processes the other two",
    right: "the holder loses its lease, and the larger side goes on; its late write is refused",
    control: "a storage that does not compare fences",
}

fn protected() -> String {
    let finished = split(&Plan { processes: 1, ..Plan::PROTECTED });
    let summary = finished.history.check().unwrap_or_else(|found| panic!("{found:#?}"));
    assert!(summary.refused > 0 && summary.lost > 0, "{summary:?}");
    finished.right()
}

fn control() -> String {
    split(&Plan { processes: 1, ..Plan::UNGATED }).wrong()
}

/// Parts the servers under a holder in the midst of its section, and heals them when others have written.
fn split(plan: &Plan) -> Finished {
    let group = scene::group(3);
    let [small, large] = [group.network(), group.network()];
    let mut crew = Crew::start(plan, &small.url());
    crew.join(&large.url(), 2);
    crew.work(20);
    let read = crew.halt(0);
    small.cut(&[1, 2]);
    large.cut(&[0]);
    crew.until_above(read);
    crew.work(20);
    crew.resume(0);
    crew.work(20);
    small.heal();
    large.heal();
    crew.work(20);
    let finished = crew.finish();
    scene::leaves_nothing(&group);
    finished
}
