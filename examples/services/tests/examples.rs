//! The examples of services end well, in one process and on real servers, and say what is wrong
//! with a wrong address.

#[path = "examples/accounts.rs"]
mod accounts;
#[path = "examples/program.rs"]
mod program;
#[path = "examples/servers.rs"]
mod servers;

use program::Program;
use servers::Servers;

#[test]
fn a_flash_sale_sells_every_piece_once() {
    let reported =
        ["pieces sold                           240", "stale sales refused", "all conditions hold"];
    Program::of("flash_sale").start().ends_well(&reported);
    let servers = Servers::start();
    // Twice: the second sale finds what the first has left behind, beside one on other data.
    let other = Program::of("flash_sale").on(&servers, "other").start();
    for _ in 0..2 {
        Program::of("flash_sale").on(&servers, "shop").start().ends_well(&reported);
    }
    other.ends_well(&reported);
    servers.leave_no_key_without_ttl();
}

#[test]
fn a_form_that_is_submitted_twice_takes_effect_once() {
    let reported = [
        "forms                                  26",
        "runs                                   32",
        "all conditions hold",
    ];
    Program::of("duplicate_submission").start().ends_well(&reported);
    let servers = Servers::start();
    // Twice: the doors of the first are still closed, beside one on other data.
    let other = Program::of("duplicate_submission").on(&servers, "other_forms").start();
    for _ in 0..2 {
        Program::of("duplicate_submission").on(&servers, "forms").start().ends_well(&reported);
    }
    other.ends_well(&reported);
    servers.leave_no_key_without_ttl();
}

#[test]
fn orders_are_done_in_the_sequence_of_each_customer() {
    let reported = [
        "orders                                320",
        "customers in sequence                   8",
        "all conditions hold",
    ];
    Program::of("order_sequence").start().ends_well(&reported);
    let servers = Servers::start();
    // Both want the locks of the same names, for other data.
    let other = Program::of("order_sequence").on(&servers, "other_orders").start();
    for _ in 0..2 {
        Program::of("order_sequence").on(&servers, "orders").start().ends_well(&reported);
    }
    other.ends_well(&reported);
    servers.leave_no_key_without_ttl();
}

#[test]
fn the_metrics_server_ends_well_on_a_server() {
    let servers = Servers::start();
    let address = program::free_address();
    let server = Program::of("metrics_server").arguments(&[&address, "4"]).on_redis(&servers);
    server.start().ends_well(&["losses provoked", "all conditions hold"]);
    servers.leave_no_key_without_ttl();
}

#[test]
fn a_trace_shows_the_calls_and_holds_of_each_request() {
    let reported = [
        "requests                                6",
        "leases acquired                         6",
        "locks found taken                       1",
        "leases lost                             1",
        "leasehold.outcome",
        "all conditions hold",
    ];
    Program::of("traces").start().ends_well(&reported);
    let servers = Servers::start();
    Program::of("traces").on_redis(&servers).start().ends_well(&reported);
    servers.leave_no_key_without_ttl();
}

/// The controls: what the examples check is not true by itself.
#[test]
fn without_the_fence_or_the_door_the_examples_show_the_damage() {
    let unfenced = Program::of("order_sequence").arguments(&["unfenced"]).start();
    unfenced.breaks(&["every customer's orders are 1..n", "the late order was refused"]);
    let ajar = Program::of("duplicate_submission").arguments(&["ajar"]).start();
    ajar.breaks(&["nothing ran that need not", "one user of each form was first"]);
    let untraced = Program::of("traces").arguments(&["off"]).start();
    untraced.breaks(&["the lost lease is an error", "one try found the lock taken"]);
}

#[test]
fn a_wrong_address_is_named_without_its_password() {
    let redis = "redis://bob:hush-hush@127.0.0.1:1";
    let postgres = "postgres://bob:hush-hush@127.0.0.1:1/shop";
    let address = program::free_address();
    let metrics = Program::of("metrics_server").arguments(&[&address, "1"]);
    for example in [metrics, Program::of("traces")] {
        example.with("REDIS_URL", redis).start().fails_with(&["REDIS_URL", "127.0.0.1:1"]);
    }

    let servers = Servers::start();
    for example in ["flash_sale", "duplicate_submission", "order_sequence"] {
        let on = || Program::of(example).on(&servers, "wrong");
        on().with("REDIS_URL", redis).start().fails_with(&["REDIS_URL", "127.0.0.1:1"]);
        on().with("DATABASE_URL", postgres)
            .start()
            .fails_with(&["DATABASE_URL: 127.0.0.1:1/shop", "refused"]);
        on().with("DATABASE_URL", "http://bob:hush-hush@example.org")
            .start()
            .fails_with(&["DATABASE_URL", "postgres://"]);
        on().with("DATABASE_URL", "").start().fails_with(&["REDIS_URL and DATABASE_URL"]);
    }
}
