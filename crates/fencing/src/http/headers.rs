use std::str::FromStr;

use http::{HeaderMap, HeaderName, HeaderValue};
use leasehold_core::Stamp;

/// The header with the fence of the sender's lease, a decimal number.
pub(super) const FENCE: HeaderName = HeaderName::from_static("leasehold-fence");

/// The header with the id of the sender's lease, `<runtime-uuid>:<number>`.
pub(super) const LEASE: HeaderName = HeaderName::from_static("leasehold-lease");

/// Puts a stamp on a request, and replaces an earlier one.
///
/// ```
/// # use leasehold_core::{AcquisitionId, Fence, RuntimeId, Stamp};
/// # use leasehold_fencing::http::{put_stamp, read_stamp};
/// # let lease = AcquisitionId::new(RuntimeId::new(uuid::Uuid::nil()), 3);
/// # let stamp = Stamp::new(Fence::try_from(41_u64)?, lease); // guard.stamp()
/// let mut request = http::Request::put("/articles/7").body("9 left")?;
/// put_stamp(request.headers_mut(), stamp);
///
/// assert_eq!(request.headers()["leasehold-fence"], "41");
/// assert_eq!(read_stamp(request.headers()), Ok(stamp));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn put_stamp(headers: &mut HeaderMap, stamp: Stamp) {
    headers.insert(FENCE, HeaderValue::from(stamp.fence.get()));
    headers.insert(LEASE, visible(&stamp.lease.to_string()));
}

/// Reads the stamp from a request.
///
/// The headers have to be exactly as [`put_stamp`] writes them, each once: another program might
/// read a number with a sign or leading zeros, or a repeated header, in another way.
///
/// # Errors
///
/// - [`HeaderError::Missing`] when one of the two headers is missing.
/// - [`HeaderError::Malformed`] when one is not a valid fence or lease id.
/// - [`HeaderError::Repeated`] when one is there more than once.
pub fn read_stamp(headers: &HeaderMap) -> Result<Stamp, HeaderError> {
    let fence = read(headers, &FENCE)?;
    let lease = read(headers, &LEASE)?;
    Ok(Stamp::new(fence, lease))
}

fn read<T: FromStr>(headers: &HeaderMap, name: &HeaderName) -> Result<T, HeaderError> {
    let header = || Box::from(name.as_str());
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Err(HeaderError::Missing { header: header() });
    };
    if values.next().is_some() {
        return Err(HeaderError::Repeated { header: header() });
    }
    let malformed = || HeaderError::Malformed { header: header(), value: beginning(value) };
    let text = value.to_str().map_err(|_| malformed())?;
    text.parse().map_err(|_| malformed())
}

/// Why the stamp of a request cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// A header is missing.
    #[error(
        "the request has no header {header:?}; acquire the lock of the resource and send the fence \
         and the id of the lease with every write"
    )]
    Missing {
        /// The name of the header.
        header: Box<str>,
    },
    /// A header is not a valid fence or lease id.
    #[error(
        "the header {header:?} holds {value:?}; leasehold-fence is a whole number from 1 to \
         9007199254740991, and leasehold-lease is <runtime-uuid>:<number>, as the lease tells them"
    )]
    Malformed {
        /// The name of the header.
        header: Box<str>,
        /// Its value, or the beginning of it.
        value: Box<str>,
    },
    /// A header is there more than once, so it is not clear which one counts.
    #[error("the header {header:?} is there more than once; send it once")]
    Repeated {
        /// The name of the header.
        header: Box<str>,
    },
}

fn beginning(value: &HeaderValue) -> Box<str> {
    String::from_utf8_lossy(value.as_bytes()).chars().take(80).collect()
}

/// A value of digits, letters, hyphens and colons, which every header can hold.
fn visible(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("the id of a lease is visible ASCII")
}

#[cfg(test)]
mod tests {
    use leasehold_testing::stamp;
    use proptest::{collection::vec, prelude::*};

    use super::*;

    const SOME_LEASE: &str = "00000000-0000-0000-0000-000000000007:3";

    fn headers(of: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in of {
            headers.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        headers
    }

    #[test]
    fn a_stamp_reads_back_and_the_last_one_counts() {
        let mut headers = HeaderMap::new();
        put_stamp(&mut headers, stamp(41, 1));
        put_stamp(&mut headers, stamp(9_007_199_254_740_991, 2));
        assert_eq!(read_stamp(&headers), Ok(stamp(9_007_199_254_740_991, 2)));
        assert_eq!(headers.len(), 2);
    }

    #[test]
    fn half_a_stamp_is_none() {
        for (given, missing) in [
            (headers(&[]), "leasehold-fence"),
            (headers(&[("leasehold-fence", "41")]), "leasehold-lease"),
            (headers(&[("leasehold-lease", SOME_LEASE)]), "leasehold-fence"),
        ] {
            let error = read_stamp(&given).unwrap_err();
            assert_eq!(error, HeaderError::Missing { header: missing.into() });
            assert!(error.to_string().contains("acquire the lock"));
        }
    }

    #[test]
    fn what_others_could_read_otherwise_is_malformed() {
        let fences = ["", "0", "-1", "+41", "041", "41 ", "4.1e1", "0x29", "41, 42", "ä"];
        for fence in fences.into_iter().chain(["9007199254740992", "99999999999999999999"]) {
            let given = headers(&[("leasehold-fence", fence), ("leasehold-lease", SOME_LEASE)]);
            let malformed =
                HeaderError::Malformed { header: "leasehold-fence".into(), value: fence.into() };
            assert_eq!(read_stamp(&given), Err(malformed));
        }
        let upper = "ABCDEF00-0000-0000-0000-000000000007:3";
        let bare = "00000000000000000000000000000007:3";
        for lease in
            ["", "7:3", upper, bare, &SOME_LEASE[..37], "{00000000-0000-0000-0000-000000000007}:3"]
        {
            let given = headers(&[("leasehold-fence", "41"), ("leasehold-lease", lease)]);
            let error = read_stamp(&given).unwrap_err();
            assert!(matches!(error, HeaderError::Malformed { .. }), "{lease}: {error}");
        }
        let twice = [("leasehold-fence", "41"), ("leasehold-fence", "41")];
        let repeated = HeaderError::Repeated { header: "leasehold-fence".into() };
        assert_eq!(read_stamp(&headers(&twice)), Err(repeated));
    }

    #[test]
    fn a_message_does_not_repeat_a_long_value() {
        let long = "9".repeat(5000);
        let error = read_stamp(&headers(&[("leasehold-fence", &long)])).unwrap_err();
        assert!(error.to_string().len() < 400, "{error}");
    }

    fn value() -> impl Strategy<Value = Vec<u8>> {
        let stamps = "[0-9]{0,20}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:[0-9]{0,20}";
        prop_oneof![
            2 => stamps.prop_map(String::into_bytes),
            1 => vec(any::<u8>(), 0..2_000),
        ]
    }

    proptest! {
        #![proptest_config(crate::gate::fuzzed())]

        #[test]
        fn every_header_is_read(given in vec((any::<bool>(), value()), 0..4)) {
            let mut headers = HeaderMap::new();
            for (is_fence, value) in &given {
                let Ok(value) = HeaderValue::from_bytes(value) else { continue };
                headers.append(if *is_fence { FENCE } else { LEASE }, value);
            }
            match read_stamp(&headers) {
                Ok(stamp) => {
                    let mut again = HeaderMap::new();
                    put_stamp(&mut again, stamp);
                    prop_assert_eq!(headers, again, "one text for each stamp");
                }
                Err(error) => prop_assert!(error.to_string().chars().count() < 1_300, "{error}"),
            }
        }
    }
}
