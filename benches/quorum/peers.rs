use crate::{
    Failure,
    options::Options,
    output::Output,
    subjects::{
        leasehold::{self, Returning},
        rslock,
    },
    worker::measure,
};

/// Lets the tasks of the peer that is asked for take locks.
pub(crate) async fn run(options: &Options) -> Result<Output, Failure> {
    match options.peer.as_str() {
        "leasehold" | "leasehold-kept" | "leasehold-one" => {
            let (locks, tasks) = leasehold::connect(options, Returning::Released).await?;
            let output = measure(options, tasks).await;
            leasehold::leave(&locks).await;
            output
        }
        "rslock" => measure(options, rslock::tuned(options)).await,
        "rslock-default" => measure(options, rslock::default(options)).await,
        unknown => Err(format!("there is no peer {unknown}").into()),
    }
}
