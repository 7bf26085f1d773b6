use std::{
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::Duration,
};

/// Lets a thread stand still until another has done its work, which takes longer than any lease.
#[derive(Debug, Clone, Default)]
pub struct Stall(Arc<(Mutex<Scene>, Condvar)>);

#[derive(Debug, Default)]
struct Scene {
    begun: bool,
    over: bool,
}

impl Stall {
    /// Longer than another ever takes.
    const LIMIT: Duration = Duration::from_secs(60);

    /// Stands still with the whole thread, the first time.
    pub fn once(&self) {
        let (scene, ended) = &*self.0;
        let mut scene = scene.lock().unwrap_or_else(PoisonError::into_inner);
        if !scene.begun {
            scene.begun = true;
            let _ = ended.wait_timeout_while(scene, Self::LIMIT, |scene| !scene.over);
        }
    }

    /// Lets it go on: another has done the work.
    pub fn end(&self) {
        let (scene, ended) = &*self.0;
        scene.lock().unwrap_or_else(PoisonError::into_inner).over = true;
        ended.notify_all();
    }
}
