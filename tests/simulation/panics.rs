use std::{cell::RefCell, panic, sync::Once};

thread_local! {
    static PANICS: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

static HOOK: Once = Once::new();

/// Keeps the panics of this thread from now on: those of background tasks show nowhere else.
pub(crate) fn forget() {
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let kept = PANICS.with_borrow_mut(|panics| {
                panics.as_mut().map(|panics| panics.push(format!("a task panicked: {info}")))
            });
            if kept.is_none() {
                usual(info);
            }
        }));
    });
    PANICS.set(Some(Vec::new()));
}

/// The panics that were kept; further ones show as usual.
pub(crate) fn take() -> Vec<String> {
    PANICS.take().unwrap_or_default()
}
