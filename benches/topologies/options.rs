/// What a task that queues is told, as the worker processes of another benchmark are.
#[derive(Debug)]
pub(crate) struct Options {
    /// The address of the server.
    pub(crate) redis: String,
    /// The name of the lock.
    pub(crate) name: String,
    /// How many tasks want it.
    pub(crate) workers: usize,
    /// Which of the contenders this is.
    pub(crate) process: usize,
}
