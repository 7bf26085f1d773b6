use redis::{Value, aio::MultiplexedConnection};

use crate::{Failure, library, options::Options, worker::Contender};

const NAMESPACE: &str = "floor";
const TTL: u64 = 30_000;
const CLAIM_WINDOW: u64 = 3_000;
const RETENTION: u64 = 604_800_000;
const LABEL: &str = "host/1/bench";
const RUNTIME: &str = "00000000-0000-4000-8000-000000000000";

/// One task that hands the lock to itself with the library's release script, which ends a lease
/// and grants the next one: a round trip for each, without Leasehold.
pub(crate) async fn connect(options: &Options) -> Result<Vec<Task>, Failure> {
    if options.workers != 1 {
        return Err("this floor has one worker".into());
    }
    let connection = super::client(&options.redis)?.get_multiplexed_async_connection().await?;
    let mut task = Task {
        connection,
        keys: library::keys(NAMESPACE, &options.name),
        name: options.name.clone(),
        number: 0,
        fence: String::new(),
    };
    task.begin().await?;
    Ok(vec![task])
}

/// The task, which always has the lock.
#[derive(Debug)]
pub(crate) struct Task {
    connection: MultiplexedConnection,
    keys: [String; 4],
    name: String,
    /// The number of the acquisition that holds the lock.
    number: u64,
    /// The first token of its block.
    fence: String,
}

impl Task {
    async fn begin(&mut self) -> Result<(), Failure> {
        let mut call = library::acquire().prepare_invoke();
        let id = self.id();
        self.write_keys(&mut call, &id);
        call.arg(&id).arg(TTL).arg(0).arg(RETENTION).arg(LABEL);
        call.arg(format!("{NAMESPACE}:runtime:")).arg(&self.name);
        let answer = call.invoke_async(&mut self.connection).await?;
        self.fence = granted(&answer, "granted")?;
        Ok(())
    }

    async fn pass_on(&mut self) -> Result<(), Failure> {
        let old = self.id();
        self.number += 1;
        let new = self.id();
        let mut call = library::release().prepare_invoke();
        self.write_keys(&mut call, &new);
        call.arg(old).arg(&self.fence).arg(0).arg(RETENTION);
        call.arg(format!("{NAMESPACE}:runtime:")).arg(&self.name);
        call.arg(new).arg(TTL).arg(&self.fence).arg(LABEL).arg(self.number).arg(CLAIM_WINDOW);
        let answer = call.invoke_async(&mut self.connection).await?;
        self.fence = granted(&answer, "next-granted")?;
        Ok(())
    }

    fn id(&self) -> String {
        format!("{RUNTIME}:{}", self.number)
    }

    fn write_keys(&self, call: &mut redis::ScriptInvocation<'_>, asker: &str) {
        for key in &self.keys {
            call.key(key);
        }
        call.key(library::withdrawn(NAMESPACE, &self.name, asker));
    }
}

/// The first token of a grant.
fn granted(answer: &Value, wanted: &str) -> Result<String, Failure> {
    let Value::Array(fields) = answer else { return Err(format!("{answer:?}").into()) };
    match fields.as_slice() {
        [Value::BulkString(what), Value::BulkString(first), ..] if what == wanted.as_bytes() => {
            Ok(String::from_utf8(first.clone())?)
        }
        _ => Err(format!("{answer:?}").into()),
    }
}

impl Contender for Task {
    type Held = ();

    async fn acquire(&mut self) -> Result<(), Failure> {
        self.pass_on().await
    }

    async fn release(&mut self, (): ()) -> Result<(), Failure> {
        Ok(())
    }
}
