//! Which stores a gate can rest on, and what it says of the others.

use std::sync::Arc;

use leasehold::{
    error::{StoreError, StoreErrorKind},
    fencing::{Admitted, GateError, NotShutOut},
};
use object_store::{
    ObjectStore, ObjectStoreExt, local::LocalFileSystem, memory::InMemory, path::Path,
};

use super::{
    steered::{Kind, Steered},
    words::{gate, of, path, read, refused_by, watermark},
};
use crate::s3::{Manner, S3Server, client};

fn assert_config(error: &StoreError, words: &[&str]) {
    assert_eq!(error.kind(), StoreErrorKind::Config, "{error}");
    let text = error.to_string();
    for word in words {
        assert!(text.contains(word), "{word}: {text}");
    }
}

fn store_error(result: Result<Admitted, GateError>) -> StoreError {
    match result {
        Err(GateError::Store(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_store_in_memory_has_all_that_is_needed() {
    let store = Arc::new(InMemory::new());
    assert_eq!(gate(&store).check(&Path::from("trials")).await, Ok(()));
    let left = store.list_with_delimiter(Some(&Path::from("trials"))).await.unwrap();
    assert!(left.objects.is_empty());
}

#[tokio::test]
async fn local_files_have_no_metadata_and_no_conditions() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(LocalFileSystem::new_with_prefix(folder.path()).unwrap());
    let gate = gate(&store);
    let words = ["needs metadata and conditional writes", "LocalFileSystem"];
    assert_config(&store_error(gate.put(&path(), "a", of(1)).await), &words);
    assert_config(&store_error(gate.advance(&path(), of(1)).await), &words);
    assert_config(&gate.check(&Path::from("trials")).await.unwrap_err(), &words);

    store.put(&path(), "from before".into()).await.unwrap();
    assert_config(&store_error(gate.put(&path(), "a", of(1)).await), &words);
    assert_eq!(read(&*store).await.0, "from before");
}

#[tokio::test]
async fn a_check_names_what_a_store_lacks() {
    for (kind, words) in [
        (Kind::WithoutMetadata, "keeps no metadata"),
        (Kind::WithoutConditions, "creates an object twice"),
        (Kind::WithoutVersions, "neither an ETag nor a version"),
        (Kind::EtagsOfBytes, "when the same bytes are written again"),
        (Kind::IgnoresIfMatch, "no longer the one to replace"),
        (Kind::IgnoresIfMatchEtagsOfBytes, "no longer the one to replace"),
    ] {
        let store = Steered::of(kind);
        let error = gate(&store).check(&Path::from("trials")).await.unwrap_err();
        assert_config(&error, &[words, "\"trials\""]);
        let left = store.list_with_delimiter(Some(&Path::from("trials"))).await.unwrap();
        assert!(left.objects.is_empty(), "{kind:?}");
    }
}

#[tokio::test]
async fn a_store_that_tells_no_version_is_refused() {
    let store = Steered::of(Kind::WithoutVersions);
    let gate = gate(&store);
    assert_eq!(gate.put(&path(), "a", of(1)).await, Ok(Admitted::First));
    let error = store_error(gate.put(&path(), "b", of(2)).await);
    assert_config(&error, &["neither an ETag nor a version"]);
    assert_eq!(read(&*store).await.0, "a");
}

/// Whether a writer that is paused after its look is shut out by a newer one that writes `bytes`
/// in place of "9 left", and what the newer one was told.
async fn shut_out(bytes: &'static str) -> (bool, Result<Admitted, GateError>) {
    let store = Steered::of(Kind::EtagsOfBytes);
    let gate = gate(&store);
    gate.put(&path(), "9 left", of(40)).await.unwrap();
    let (pause, paused) = (store.pause_next(), gate.clone());
    let late = tokio::spawn(async move { paused.put(&path(), "late", of(41)).await });
    pause.reached().await;
    let newer = gate.put(&path(), bytes, of(42)).await;
    pause.end();
    (refused_by(&late.await.unwrap(), of(42)), newer)
}

#[tokio::test]
async fn where_etags_are_made_of_bytes_the_bytes_have_to_differ() {
    assert_eq!(shut_out("8 left").await, (true, Ok(Admitted::Newer)));

    // The damage, and the error that tells of it.
    let (was_shut_out, newer) = shut_out("9 left").await;
    assert!(!was_shut_out);
    assert_config(
        &store_error(newer),
        &["the write took place", "let the bytes differ", "SSE-KMS"],
    );
}

#[tokio::test]
async fn where_etags_are_made_of_bytes_advance_says_that_it_is_not_enough() {
    let store = Steered::of(Kind::EtagsOfBytes);
    for bytes_differ in [false, true] {
        let gate = gate(&store).bytes_differ(bytes_differ);
        store.delete(&path()).await.unwrap();
        // Where nothing is there is no ETag to stay the same.
        assert_eq!(gate.advance(&path(), of(39)).await, Ok(Admitted::First));
        gate.put(&path(), "9 left", of(40)).await.unwrap();
        let told = gate.advance(&path(), of(41)).await.unwrap_err();
        let resource = path().as_ref().into();
        assert_eq!(told, GateError::NotShutOut(NotShutOut { presented: of(41), resource }));
        for words in
            ["\"stock/7\" has moved to 41", "can still replace", "by put() alone", "SSE-KMS"]
        {
            assert!(told.to_string().contains(words), "{words}: {told}");
        }
        assert_eq!(watermark(&*store).await, Some(of(41)));
        assert!(refused_by(&gate.put(&path(), "late", of(40)).await, of(41)));
        // As the guide does without an advance.
        assert_eq!(gate.put(&path(), "8 left", of(42)).await, Ok(Admitted::Newer));
    }
}

/// The damage of which `NotShutOut` tells: who has looked already writes after the advance.
#[tokio::test]
async fn control_where_etags_are_made_of_bytes_a_holder_who_looked_before_the_advance_writes() {
    let store = Steered::of(Kind::EtagsOfBytes);
    let gate = gate(&store).bytes_differ(true);
    gate.put(&path(), "9 left", of(40)).await.unwrap();
    let (pause, paused) = (store.pause_next(), gate.clone());
    let late = tokio::spawn(async move { paused.put(&path(), "late", of(41)).await });
    pause.reached().await;
    let told = gate.advance(&path(), of(42)).await;
    assert!(matches!(told, Err(GateError::NotShutOut(_))), "{told:?}");
    pause.end();
    assert_eq!(late.await.unwrap(), Ok(Admitted::Newer));
    assert_eq!(read(&*store).await.0, "late");
    assert_eq!(watermark(&*store).await, Some(of(41)));
}

#[tokio::test]
async fn a_store_that_compares_versions_may_keep_its_etags() {
    let store = Steered::of(Kind::EtagsOfBytes);
    let gate = gate(&store).compares_versions(true);
    gate.put(&path(), "9 left", of(40)).await.unwrap();
    assert_eq!(gate.put(&path(), "9 left", of(41)).await, Ok(Admitted::Newer));
    let error = gate.check(&Path::from("trials")).await.unwrap_err();
    assert_config(&error, &["compares ETags", "compares_versions"]);
}

#[tokio::test]
async fn a_check_accepts_etags_of_bytes_from_a_user_whose_bytes_differ() {
    let check =
        async |kind| gate(&Steered::of(kind)).bytes_differ(true).check(&Path::from("trials")).await;
    assert_eq!(check(Kind::EtagsOfBytes).await, Ok(()));
    assert_eq!(check(Kind::Sound).await, Ok(()));
    for kind in [Kind::IgnoresIfMatch, Kind::IgnoresIfMatchEtagsOfBytes] {
        assert_config(&check(kind).await.unwrap_err(), &["no longer the one to replace"]);
    }
    // A gate goes on to look at each write.
    let gate = gate(&Steered::of(Kind::EtagsOfBytes)).bytes_differ(true);
    gate.put(&path(), "9 left", of(40)).await.unwrap();
    let same = gate.put(&path(), "9 left", of(41)).await;
    assert_config(&store_error(same), &["the write took place"]);
}

#[tokio::test]
async fn a_check_over_http_tells_the_same() {
    let check = async |manner, bytes_differ| {
        let server = S3Server::start(manner).await;
        let gate = gate(&client(server.port())).bytes_differ(bytes_differ);
        let checked = gate.check(&Path::from("trials")).await;
        assert_eq!(server.objects(), 0);
        checked
    };
    let sound = Manner::default();
    let of_bytes = Manner { etags_of_bytes: true, ..sound };
    assert_eq!(check(sound, false).await, Ok(()));
    assert_eq!(check(of_bytes, true).await, Ok(()));
    let error = check(of_bytes, false).await.unwrap_err();
    assert_config(&error, &["when the same bytes are written again", "bytes_differ"]);
    for etags_of_bytes in [false, true] {
        let ignoring = Manner { etags_of_bytes, ignores_if_match: true };
        let error = check(ignoring, true).await.unwrap_err();
        assert_config(&error, &["no longer the one to replace"]);
    }
}
