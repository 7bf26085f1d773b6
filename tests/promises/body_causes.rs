//! The error of a body reaches the caller, whatever its type, and its cause with it.

use std::{error::Error, fmt, io};

use leasehold::{LockRuntime, error::WithError};

/// An error with a source.
#[derive(Debug)]
struct Unpaid(io::Error);

impl fmt::Display for Unpaid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the order is not paid")
    }
}

impl Error for Unpaid {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

fn unpaid() -> Unpaid {
    Unpaid(io::Error::other("the bank is closed"))
}

type Boxed = Box<dyn Error + Send + Sync>;

async fn fail<E>(error: E) -> WithError<E> {
    let lock = LockRuntime::embedded().unwrap().lock("orders/42").unwrap();
    lock.with(async |_lease| Err::<(), _>(error)).await.unwrap_err()
}

fn chain(error: &anyhow::Error) -> Vec<String> {
    error.chain().map(ToString::to_string).collect()
}

/// What a caller returns who writes `?`, and who writes `into_cause`.
macro_rules! both {
    ($error:expr, $into:ty) => {{
        let plain = async { Ok::<(), $into>(Err(fail($error).await)?) }.await.unwrap_err();
        let cause: $into = fail($error).await.into_cause();
        (plain, cause)
    }};
}

#[tokio::test]
async fn a_body_of_an_error_keeps_its_type_and_its_source() {
    let (plain, cause) = both!(unpaid(), anyhow::Error);
    assert_eq!(chain(&plain), ["the order is not paid"]);
    assert_eq!(chain(&cause), ["the order is not paid", "the bank is closed"]);
    assert!(cause.downcast_ref::<Unpaid>().is_some());
    let (plain, cause) = both!(unpaid(), Boxed);
    assert!(plain.to_string() == "the order is not paid" && cause.source().is_some());
}

#[tokio::test]
async fn a_body_of_an_error_without_a_source_keeps_its_type() {
    let (plain, cause) = both!(io::Error::other("no room"), anyhow::Error);
    assert_eq!((chain(&plain), chain(&cause)), (vec!["no room".into()], vec!["no room".into()]));
    assert!(cause.downcast_ref::<io::Error>().is_some());
}

#[tokio::test]
async fn a_body_of_anyhow_keeps_its_chain() {
    let error = || anyhow::Error::new(unpaid()).context("order 42");
    let (plain, cause) = both!(error(), anyhow::Error);
    assert_eq!(chain(&plain), ["order 42"]);
    assert_eq!(chain(&cause), ["order 42", "the order is not paid", "the bank is closed"]);
    assert!(cause.downcast_ref::<Unpaid>().is_some());
}

#[tokio::test]
async fn a_body_of_a_string_converts() {
    let (plain, cause) = both!("no room".to_owned(), Boxed);
    assert_eq!((plain.to_string(), cause.to_string()), ("no room".into(), "no room".into()));
}

#[tokio::test]
async fn a_body_of_a_box_keeps_what_is_in_it() {
    let (plain, cause) = both!(Boxed::from(unpaid()), Boxed);
    assert_eq!(plain.to_string(), "the order is not paid");
    assert!(cause.is::<Unpaid>() && cause.source().is_some());
}
