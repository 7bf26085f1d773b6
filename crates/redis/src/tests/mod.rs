//! Whatever a server answers is read without a panic, and told in a text of bounded length.
//!
//! `PROPTEST_CASES` says how many answers are tried; `scripts/prove.sh fuzz` tries them for an hour.

pub(super) mod values;

use std::time::Duration;

use leasehold_core::{
    AcquisitionId, Fence, LockName, Namespace, RuntimeLabel, Stamp, Ttl, store::KeyScheme,
};
use proptest::prelude::*;
use redis::Value;

use self::values::{config, is_short, push_text, replies, text, value};
use super::{
    classify::{classify, classify_words},
    cluster::Redirect,
    decode,
    endpoint::Endpoint,
};

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_answer_of_a_script_is_read(reply in replies(), asked in 0..4_usize) {
        let ttl = Ttl::new(Duration::from_secs(30)).unwrap();
        is_short(decode::acquire(&reply, ttl));
        is_short(decode::hold(&reply));
        is_short(decode::release(&reply));
        is_short(decode::withdraw(&reply));
        is_short(decode::force_release(&reply));
        is_short(decode::scan(reply.clone()));
        is_short::<()>(decode::refusal(&reply).map_or(Ok(()), |words| Err(classify_words(&words))));
        for reply in [reply.clone(), Value::Array(vec![reply; asked])] {
            is_short(decode::renew(&reply, asked));
            match decode::inspect(&reply, asked) {
                Ok(each) => each.into_iter().for_each(is_short),
                failed => is_short(failed),
            }
        }
    }

    #[test]
    fn every_message_is_read(payload in push_text(), other in prop::collection::vec(any::<u8>(), 0..200)) {
        decode::push(payload.as_bytes());
        decode::push(&other);
    }

    #[test]
    fn every_refusal_is_read(code in "[A-Z]{0,12}", detail in text()) {
        let error = redis::make_extension_error(code, Some(detail.clone()));
        let error = classify(&error);
        let teller = Endpoint { host: "t".into(), port: 9 };
        Redirect::of(&error, &teller);
        is_short::<()>(Err(error));
        Endpoint::read(&detail, &teller);
    }

    #[test]
    fn every_text_of_a_server_is_read(told in text(), value in value()) {
        decode::text(&value);
        prop_assert!(decode::shown(&value).chars().count() <= 301);
        let error = told.parse::<Stamp>().map(drop).map_err(|error| error.to_string());
        let errors = [
            error,
            told.parse::<AcquisitionId>().map(drop).map_err(|error| error.to_string()),
            told.parse::<Fence>().map(drop).map_err(|error| error.to_string()),
        ];
        for error in errors.into_iter().filter_map(Result::err) {
            // Quoted, each character has up to ten.
            prop_assert!(error.chars().count() < 1_300, "{} characters", error.chars().count());
        }
        prop_assert!(RuntimeLabel::new(&told).as_str().len() <= RuntimeLabel::MAX_BYTES);
        let keys = KeyScheme::new(Namespace::default());
        keys.lock_of_lease(told.as_bytes());
        keys.lock_of_lease(format!("leasehold:{{{told}}}:lease").as_bytes());
        let _ = LockName::new(&told);
    }
}
