use std::fmt;

use super::{cases, scene::Scene, subject::GateSubject};
use crate::contract::Task;

/// One thing that every gate must do.
#[derive(Clone, Copy)]
pub struct GateCase {
    /// What it must do.
    pub name: &'static str,
    /// The part of the suite.
    pub part: &'static str,
    play: for<'a> fn(&'a Scene) -> Task<'a>,
}

impl GateCase {
    /// Whether the case needs something between the gate and its storage that can go wrong.
    pub fn needs_faults(&self) -> bool {
        self.part == "faults"
    }
}

impl fmt::Debug for GateCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{}", self.part, self.name)
    }
}

/// Plays a case with a subject of its own.
///
/// # Panics
///
/// Panics if the gate does not do what the case wants, if the case needs faults that the subject
/// does not have, or if there is no such case.
///
/// # Cancel safety
///
/// Dropping the future drops the subject.
pub async fn run<S: GateSubject>(name: &str) {
    let case = GATE_CASES.iter().find(|case| case.name == name);
    let case = case.unwrap_or_else(|| panic!("there is no case {name}"));
    let subject = S::start().await;
    let has_faults = subject.faults().is_some();
    assert!(has_faults || !case.needs_faults(), "{case:?} needs faults, and {subject:?} has none");
    (case.play)(&Scene::new(subject)).await;
}

/// Expects that nothing can go wrong between a gate and its storage, so that no case is left out.
///
/// # Panics
///
/// Panics if something can.
///
/// # Cancel safety
///
/// Dropping the future drops the subject.
pub async fn assert_without_faults<S: GateSubject>() {
    let subject = S::start().await;
    assert!(subject.faults().is_none(), "{subject:?} has faults: use gate_suite!");
}

/// Hands the names of all cases to a macro.
#[doc(hidden)]
#[macro_export]
macro_rules! gate_cases {
    ([$($macro:tt)+] $($given:tt)*) => {
        $($macro)+! { $($given)*
            rule {
                only_a_newer_fence_or_the_same_lease_writes,
                control_without_the_gate_a_late_write_stands,
                fences_are_compared_as_numbers,
                an_advance_shuts_out_and_changes_nothing_else,
                an_advance_shuts_out_where_nothing_is,
                a_repeat_undoes_nothing_newer,
                writes_in_any_order_leave_the_newest,
                racing_writers_leave_the_newest,
                of_leases_with_one_fence_one_writes,
                a_refusal_tells_what_stands_in_the_way,
            }
            names {
                a_name_is_taken_or_refused_as_one,
                an_advance_reaches_what_is_written_by_that_name,
                one_thing_is_one_resource,
                one_thing_is_one_resource_in_the_other_order,
            }
            faults {
                a_write_whose_answer_is_lost_may_be_repeated,
                control_without_the_gate_a_repeat_overwrites_what_is_newer,
                a_write_that_arrives_late_is_refused,
                control_without_the_gate_a_write_that_arrives_late_lands,
                a_write_that_was_given_up_undoes_nothing_newer,
                a_write_that_hangs_holds_up_no_other_resource,
                a_writer_that_crashes_leaves_no_value_without_its_watermark,
                control_a_value_and_a_watermark_in_two_steps_come_apart,
            }
        }
    };
}

macro_rules! case_table {
    ($($part:ident { $($name:ident,)* })*) => {
        &[$($(GateCase {
            name: stringify!($name),
            part: stringify!($part),
            play: |scene| Box::pin(cases::$part::$name(scene)),
        },)*)*]
    };
}

/// Every case.
pub const GATE_CASES: &[GateCase] = gate_cases!([case_table]);

/// Makes a test of every case for one kind of subject: `gate_suite!(redis_set, SetSubject);` is a
/// module of tests. A subject without faults fails the cases that need some.
#[macro_export]
macro_rules! gate_suite {
    ($module:ident, $subject:ty) => {
        $crate::gate_cases!([$crate::gate_suite] @ $module, $subject;);
    };
    (@ $module:ident, $subject:ty; $($part:ident { $($name:ident,)* })*) => {
        mod $module {
            $($(
                #[tokio::test]
                async fn $name() {
                    $crate::gates::run::<$subject>(stringify!($name)).await;
                }
            )*)*
        }
    };
}

/// Makes a test of every case for a subject that has no [`Faults`](crate::gates::Faults), and one
/// that it has none.
#[macro_export]
macro_rules! gate_suite_without_faults {
    ($module:ident, $subject:ty) => {
        $crate::gate_cases!([$crate::gate_suite_without_faults] @ $module, $subject;);
    };
    (@ $module:ident, $subject:ty;
        rule { $($rule:ident,)* } names { $($name:ident,)* } faults { $($fault:ident,)* }
    ) => {
        mod $module {
            $(
                #[tokio::test]
                async fn $rule() {
                    $crate::gates::run::<$subject>(stringify!($rule)).await;
                }
            )*
            $(
                #[tokio::test]
                async fn $name() {
                    $crate::gates::run::<$subject>(stringify!($name)).await;
                }
            )*
            #[tokio::test]
            async fn nothing_can_go_wrong_between_gate_and_storage() {
                $crate::gates::assert_without_faults::<$subject>().await;
            }
        }
    };
}
