use std::{
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::Duration,
};

/// Stalls a thread until another has done its work, which takes longer than any lease.
#[derive(Debug, Clone, Default)]
pub struct Stall(Arc<(Mutex<Scene>, Condvar)>);

#[derive(Debug, Default)]
struct Scene {
    begun: bool,
    over: bool,
}

impl Stall {
    /// Longer than the other thread ever takes.
    const LIMIT: Duration = Duration::from_secs(60);

    /// Blocks the whole thread, the first time it is called.
    pub fn once(&self) {
        let (scene, ended) = &*self.0;
        let mut scene = scene.lock().unwrap_or_else(PoisonError::into_inner);
        if !scene.begun {
            scene.begun = true;
            let _ = ended.wait_timeout_while(scene, Self::LIMIT, |scene| !scene.over);
        }
    }

    /// Ends the stall: another has done the work.
    pub fn end(&self) {
        let (scene, ended) = &*self.0;
        scene.lock().unwrap_or_else(PoisonError::into_inner).over = true;
        ended.notify_all();
    }
}
