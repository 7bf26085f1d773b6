use super::down;
use crate::support::matrix::row;

row! {
    one_of_three_down: || down::goes_on(3, 1), || down::stops(3, 1);
    fault: "one of three servers hangs; when all are well again, another one is killed",
    right: "processes at work go on; no increment is lost",
    control: "a client of one of the servers",
}
