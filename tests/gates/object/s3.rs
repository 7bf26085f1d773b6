//! The S3 client of `object_store` before a server whose metadata are headers.

use std::sync::Arc;

use leasehold::fencing::{Admitted, ObjectGate};
use object_store::{
    Attribute, Attributes, ObjectStore, ObjectStoreExt, PutOptions, aws::AmazonS3, path::Path,
};

use super::words::{gate, metadata, of, path, read, refused_by, watermark};
use crate::s3::{Manner, S3Server, client};

/// How often the map of attributes is made anew: its order is random.
const TRIES: usize = 40;

async fn sound() -> (S3Server, Arc<AmazonS3>) {
    let server = S3Server::start(Manner::default()).await;
    let store = client(server.port());
    (server, store)
}

/// Attributes with which a caller names the watermark in letters of its own.
fn attributes_with(name: &'static str, fence: u64) -> Attributes {
    let watermark = of(fence).to_string();
    Attributes::from_iter([
        (Attribute::ContentType, "text/plain".to_owned()),
        (metadata(name), watermark),
        (metadata("owner"), "stock".to_owned()),
    ])
}

#[tokio::test]
async fn the_rule_holds_over_http() {
    let (_server, store) = sound().await;
    let gate = gate(&store);
    assert_eq!(gate.put(&path(), "a", of(40)).await, Ok(Admitted::First));
    assert_eq!(gate.put(&path(), "b", of(42)).await, Ok(Admitted::Newer));
    assert_eq!(gate.put(&path(), "c", of(42)).await, Ok(Admitted::Again));
    assert!(refused_by(&gate.put(&path(), "late", of(41)).await, of(42)));
    assert_eq!(gate.advance(&path(), of(43)).await, Ok(Admitted::Newer));
    assert!(refused_by(&gate.put(&path(), "late", of(42)).await, of(43)));
    assert_eq!(read(&*store).await.0, "c");
    assert_eq!(watermark(&*store).await, Some(of(43)));
}

#[tokio::test]
async fn metadata_in_other_letters_never_replace_the_watermark() {
    for name in ["Leasehold", "LEASEHOLD", "leaseHold"] {
        let mut accepted = 0;
        for _ in 0..TRIES {
            let (_server, store) = sound().await;
            let gate = gate(&store);
            let given = attributes_with(name, 40);
            gate.put_with(&path(), "9 left", given, of(42)).await.unwrap();
            if gate.put(&path(), "late", of(41)).await.is_ok() {
                accepted += 1;
                continue;
            }
            let (_, kept) = read(&*store).await;
            assert_eq!(&**kept.get(&metadata("owner")).unwrap(), "stock");
        }
        assert_eq!(accepted, 0, "{name}: of {TRIES} late writes so many were accepted");
    }
}

/// The damage: the same write without the gate's look at letters.
#[tokio::test]
async fn control_metadata_in_other_letters_replace_the_watermark_by_chance() {
    let mut accepted = 0;
    for _ in 0..TRIES {
        let (_server, store) = sound().await;
        let mut attributes = attributes_with("Leasehold", 40);
        attributes.insert(metadata("leasehold"), of(42).to_string().into());
        let options = PutOptions { attributes, ..PutOptions::default() };
        store.put_opts(&path(), "9 left".into(), options).await.unwrap();
        let late = gate(&store).put(&path(), "late", of(41)).await;
        accepted += usize::from(late.is_ok());
    }
    println!("  of {TRIES} late writes {accepted} were accepted");
    assert!(accepted > 0);
}

#[tokio::test]
async fn a_mark_of_a_placeholder_in_other_letters_is_taken_out_too() {
    let (_server, store) = sound().await;
    let given = Attributes::from_iter([(metadata("LeaseholdPlaceholder"), "1")]);
    gate(&store).put_with(&path(), "9 left", given, of(42)).await.unwrap();
    assert!(!ObjectGate::is_placeholder(&read(&*store).await.1));
}

#[tokio::test]
async fn a_path_without_a_name_is_refused_before_anything_is_sent() {
    let (server, store) = sound().await;
    for path in
        [Path::ROOT, Path::from("/"), Path::from("a".repeat(ObjectGate::MAX_PATH_BYTES + 1))]
    {
        assert!(gate(&store).put(&path, "a", of(1)).await.is_err());
        assert!(gate(&store).advance(&path, of(1)).await.is_err());
    }
    assert_eq!(server.objects(), 0);
    let longest = Path::from("a".repeat(ObjectGate::MAX_PATH_BYTES));
    assert_eq!(gate(&store).put(&longest, "a", of(1)).await, Ok(Admitted::First));
    assert_eq!(store.head(&longest).await.unwrap().size, 1);
}
