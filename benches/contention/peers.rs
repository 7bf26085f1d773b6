use crate::{
    Failure,
    options::Options,
    output::Output,
    subjects::{
        floor_one_script, floor_push, floor_queue,
        leasehold::{self, Returning},
        rslock, tokio_mutex,
    },
    worker::measure,
};

/// Lets the tasks of the peer that is asked for contend.
pub(crate) async fn run(options: &Options) -> Result<Output, Failure> {
    match options.peer.as_str() {
        "leasehold" | "leasehold-drop" => {
            let returning = match options.peer.as_str() {
                "leasehold" => Returning::Released,
                _ => Returning::Dropped,
            };
            let (locks, tasks) = leasehold::connect(options, returning).await?;
            let output = measure(options, tasks).await;
            leasehold::leave(&locks).await;
            output
        }
        "rslock" => measure(options, rslock::tuned(options)).await,
        "rslock-default" => measure(options, rslock::default(options)).await,
        "tokio-mutex" => measure(options, tokio_mutex::tasks(options)).await,
        "floor-one-script" => measure(options, floor_one_script::connect(options).await?).await,
        "floor-push" => measure(options, floor_push::connect(options).await?).await,
        "floor-queue" => {
            measure(options, floor_queue::connect(options, floor_queue::Channels::Plain).await?)
                .await
        }
        unknown => Err(format!("there is no peer {unknown}").into()),
    }
}
