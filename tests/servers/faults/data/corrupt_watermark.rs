use leasehold::{
    error::StoreErrorKind::Corrupt,
    fencing::{Admitted, FenceGate, GateError},
};
use leasehold_testkit::RedisServer;

use super::scene::{assert_says, connect, dump, replace};
use crate::support::{matrix::row, storage, wait};

row! {
    corrupt_watermark: protected, control;
    fault: "the watermark of a gate is not a stamp, or has another type",
    right: "the gate refuses all writers with an error of its own; nothing is written",
    control: "a gate that treats an invalid number as no watermark",
}

const KEY: &str = "stock:{7}";
const WATERMARK: &str = "stock:{7}:watermark";
const STRANGE: [&[&str]; 6] = [
    &["SET", ""],
    &["SET", "forty-one"],
    &["SET", "1720000000000000"],
    &["SET", "99999999999999999999 somebody"],
    &["RPUSH", "41"],
    &["HSET", "fence", "41"],
];

fn protected() -> String {
    wait::on_one_thread(async {
        let server = RedisServer::start();
        let (gate, locks) = (storage::gate_at(&server.url()), connect(&server.url()).await);
        let lock = locks.lock("7").expect("a name");
        let stale = lock.acquire().await.expect("a lease");
        let older = stale.stamp();
        stale.release().await.expect("held to the end");
        let holder = lock.acquire().await.expect("a lease");
        assert_eq!(gate.set(KEY, "holder", holder.stamp()).await, Ok(Admitted::First));
        let mut refused = 0;
        for put in STRANGE {
            replace(&server, WATERMARK, put);
            let strange = dump(&server, WATERMARK);
            for stamp in [older, holder.stamp()] {
                let outcomes = [gate.set(KEY, "x", stamp).await, gate.advance(KEY, stamp).await];
                for outcome in outcomes {
                    let Err(GateError::Store(error)) = outcome else { panic!("{outcome:?}") };
                    assert_says(&error, Corrupt, &[&format!("the gate of {KEY:?}")]);
                    refused += 1;
                }
            }
            assert_eq!(dump(&server, WATERMARK), strange, "{put:?}");
        }
        assert_eq!(server.query::<String>(&["GET", KEY]), "holder");
        // As the error says: set to the stamp of the last holder, it goes on.
        server.command(&["SET", WATERMARK, &holder.stamp().to_string()]);
        assert!(matches!(gate.set(KEY, "x", older).await, Err(GateError::Stale(_))));
        assert_eq!(gate.set(KEY, "again", holder.stamp()).await, Ok(Admitted::Again));
        holder.release().await.expect("held to the end");
        format!("{refused} writes refused under {} watermarks; 0 accepted", STRANGE.len())
    })
}

const NAIVE: &str = "\
local seen = redis.pcall('GET', KEYS[2])
if tonumber(ARGV[1]) < (tonumber(seen) or 0) then return 'stale' end
redis.call('SET', KEYS[2], ARGV[1])
redis.call('SET', KEYS[1], ARGV[2])
return 'written'";

fn control() -> String {
    let server = RedisServer::start();
    let stale = || server.query::<String>(&["EVAL", NAIVE, "2", KEY, WATERMARK, "40", "stale"]);
    let mut written = 0;
    for put in STRANGE {
        replace(&server, WATERMARK, put);
        written += usize::from(stale() == "written");
    }
    assert!(written > 0, "the control came to no harm");
    format!("{written} stale writes accepted")
}
