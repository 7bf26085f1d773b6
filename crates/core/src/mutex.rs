use std::sync::{self, MutexGuard, PoisonError, TryLockError};

/// A mutex that goes on after a panic: what it guards is changed in steps that do not panic.
#[derive(Debug, Default)]
pub struct Mutex<T>(sync::Mutex<T>);

impl<T> Mutex<T> {
    /// A mutex around a value.
    pub const fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    /// Waits until no other thread uses the value.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`lock`](Self::lock), unless another thread uses the value, and is not there any more.
    ///
    /// In a fork a mutex stays locked for ever that another thread had. Whether this is one is asked
    /// only if the mutex is locked.
    pub fn lock_unless(&self, is_fork: impl FnOnce() -> bool) -> Option<MutexGuard<'_, T>> {
        match self.try_lock() {
            Some(value) => Some(value),
            None if is_fork() => None,
            None => Some(self.lock()),
        }
    }

    /// The value, unless another thread uses it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(value) => Some(value),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The value, which no other thread can use.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}
