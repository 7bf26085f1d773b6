use super::down;
use crate::support::matrix::row;

row! {
    two_of_five_down: || down::goes_on(5, 2), || down::stops(5, 2);
    fault: "two of five servers hang; when all are well again, two others are killed",
    right: "processes at work go on; no increment is lost",
    control: "a client of one of the servers",
}
