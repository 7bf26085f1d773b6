use super::down;
use crate::support::matrix::Row;

const ROW: Row = Row {
    id: "two-of-five-down",
    fault: "two of five servers hang; when all are well again, two others are killed",
    right: "processes at work go on; no increment is lost",
    control: "a client of one of the servers",
};

#[test]
fn two_of_five_down() {
    ROW.run(|| down::goes_on(5, 2), || down::stops(5, 2));
}
