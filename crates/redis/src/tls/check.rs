//! Whether a text in PEM can serve, and what it is if not.

use rustls::{
    Error, InconsistentKeys, RootCertStore,
    crypto::CryptoProvider,
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{self, PemObject as _, SectionKind},
    },
    sign::CertifiedKey,
};

/// Why a text cannot serve: what is wrong with it, and what to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unfit {
    pub(super) what: String,
    pub(super) remedy: &'static str,
}

fn unfit(what: impl Into<String>, remedy: &'static str) -> Unfit {
    Unfit { what: what.into(), remedy }
}

/// The certificates of a text. There is at least one.
pub(super) fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Unfit> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Err(error) => Err(unreadable(&error)),
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) if pem.trim_ascii().is_empty() => Err(empty()),
        Ok(_) if is_der(pem) => {
            Err(not_pem(pem, "convert it, as openssl x509 -inform der -in FILE -out FILE does"))
        }
        Ok(_) if has_key(pem) => Err(unfit(
            "has a key and no certificate",
            "give the certificate; the two may be swapped",
        )),
        Ok(_) => Err(unfit("has no certificate in PEM", BEGIN_CERTIFICATE)),
    }
}

/// Whether a client can trust the certificates of a text.
pub(super) fn anchors(pem: &[u8]) -> Result<(), Unfit> {
    let mut store = RootCertStore::empty();
    for certificate in certificates(pem)? {
        store.add(certificate).map_err(|error| damaged(&error))?;
    }
    Ok(())
}

/// The key of a text.
pub(super) fn key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, Unfit> {
    if pem.windows(ENCRYPTED.len()).any(|words| words == ENCRYPTED) {
        let remedy = "store it without a passphrase, as openssl pkey -in FILE -out FILE does";
        return Err(unfit("is encrypted", remedy));
    }
    if pem.trim_ascii().is_empty() {
        return Err(empty());
    }
    if is_der(pem) {
        let remedy = "convert it, as openssl pkey -inform der -in FILE -out FILE does";
        return Err(not_pem(pem, remedy));
    }
    PrivateKeyDer::from_pem_slice(pem).map_err(|error| match error {
        pem::Error::NoItemsFound if certificates(pem).is_ok() => {
            unfit("has a certificate and no key", "give the key; the two may be swapped")
        }
        pem::Error::NoItemsFound => {
            unfit("has no key in PEM", "give a text with a line -----BEGIN PRIVATE KEY-----")
        }
        error => unreadable(&error),
    })
}

/// Why a certificate and a key cannot serve together; `None` if they can.
pub(super) fn misfit(
    certificates: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Option<Unfit> {
    let provider = CryptoProvider::get_default()?;
    match CertifiedKey::from_der(certificates, key, provider) {
        Ok(_) => None,
        Err(Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
            Some(unfit("is not the key of the certificate", "give the key that belongs to it"))
        }
        // The library does not tell the two apart.
        Err(_) => Some(unfit(
            "is of a kind that is not supported, or damaged",
            "give a key of Ed25519, ECDSA (P-256 or P-384) or RSA (2048 bits or more), and its certificate",
        )),
    }
}

const BEGIN_CERTIFICATE: &str = "give a text with a line -----BEGIN CERTIFICATE-----";
/// In the first line of a key of PKCS #8, in the second one of an older format.
const ENCRYPTED: &[u8] = b"ENCRYPTED";

fn empty() -> Unfit {
    unfit("is empty", "write into it what belongs there, in PEM")
}

/// Why a text is no PEM. A key without line breaks stands whole in the error, in decimal bytes: its fields are
/// never told.
fn unreadable(error: &pem::Error) -> Unfit {
    use pem::Error::{IllegalSectionStart, MissingSectionEnd};
    match error {
        MissingSectionEnd { .. } | IllegalSectionStart { .. } => unfit(
            "has no line breaks, or its end is missing",
            "write it as openssl does, with each line on its own",
        ),
        other => damaged(other),
    }
}

fn damaged(error: &dyn std::fmt::Display) -> Unfit {
    unfit(format!("is damaged ({error})"), "write it anew")
}

/// Whether it begins as the outermost part of a certificate or a key does.
fn is_der(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x30])
}

/// What is DER: a remedy is for all but a file of PKCS#12.
fn not_pem(der: &[u8], remedy: &'static str) -> Unfit {
    if is_pkcs12(der) {
        let remedy = "convert it, as openssl pkcs12 -in FILE -nodes -out FILE does";
        return unfit("is PKCS#12, not PEM", remedy);
    }
    unfit("is DER, not PEM", remedy)
}

/// Whether a sequence begins with the version of PKCS#12, which no key has.
fn is_pkcs12(der: &[u8]) -> bool {
    let [_, length, rest @ ..] = der else { return false };
    // Of a long one, the number of the bytes of its length.
    let bytes = if *length < 0x80 { 0 } else { usize::from(length - 0x80) };
    rest.get(bytes..).is_some_and(|contents| contents.starts_with(&[2, 1, 3]))
}

fn has_key(pem: &[u8]) -> bool {
    use SectionKind::{EcPrivateKey, PrivateKey, RsaPrivateKey};
    // Not behind the first one that is damaged.
    let mut sections = <(SectionKind, Vec<u8>)>::pem_slice_iter(pem).map_while(Result::ok);
    sections.any(|(kind, _)| matches!(kind, PrivateKey | RsaPrivateKey | EcPrivateKey))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIFTzWT0xo4a5wO7ssQTN/8CCMo9mBRnU0u1T2hpEbQ3h\n-----END PRIVATE KEY-----\n";

    fn of_certificates(pem: impl AsRef<[u8]>) -> String {
        certificates(pem.as_ref()).unwrap_err().what
    }

    fn of_key(pem: impl AsRef<[u8]>) -> String {
        key(pem.as_ref()).unwrap_err().what
    }

    #[test]
    fn what_is_no_certificate_is_told_as_what_it_is() {
        assert_eq!(of_certificates(""), "is empty");
        assert_eq!(of_certificates(" \n"), "is empty");
        assert_eq!(of_certificates([0x30, 0x82, 1, 2]), "is DER, not PEM");
        assert_eq!(of_certificates(KEY), "has a key and no certificate");
        assert_eq!(of_certificates("hello"), "has no certificate in PEM");
        let torn = "-----BEGIN CERTIFICATE-----\nMIIB\n";
        assert_eq!(of_certificates(torn), "has no line breaks, or its end is missing");
        let odd = "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n";
        assert!(of_certificates(odd).contains("damaged"), "{}", of_certificates(odd));
    }

    /// Both a certificate and its key are in one, whichever of the two is asked for.
    #[test]
    fn pkcs12_is_told_with_what_converts_it() {
        // Of openssl: a length in one byte, in two, and in three; and of BER without a length.
        for start in [&[0x30, 0x40][..], &[0x30, 0x81, 0xf0], &[0x30, 0x82, 4, 1], &[0x30, 0x80]] {
            let pfx = [start, &[2, 1, 3, 0x30]].concat();
            for told in [certificates(&pfx).unwrap_err(), key(&pfx).unwrap_err()] {
                assert_eq!(told.what, "is PKCS#12, not PEM");
                assert!(told.remedy.contains("openssl pkcs12 -in FILE -nodes"), "{told:?}");
            }
            // Versions of keys are 0, 1 and 2; a certificate begins with another sequence.
            for other in [&[2, 1, 0, 0x30][..], &[2, 1, 1], &[0x30, 0x82, 2, 1, 3], &[]] {
                let der = [start, other].concat();
                assert_eq!(of_certificates(&der), "is DER, not PEM");
                assert_eq!(of_key(&der), "is DER, not PEM");
            }
        }
    }

    #[test]
    fn a_key_without_line_breaks_is_told_without_its_bytes() {
        let secret = "MC4CAQAwBQYDK2VwBCIEIFTzWT0xo4a5wO7ssQTN/8CCMo9mBRnU0u1T2hpEbQ3h";
        for pem in [KEY.replace('\n', ""), KEY.replace('\n', "\\n"), KEY.replace('\n', " ")] {
            let pem = pem.as_bytes();
            for told in [
                anchors(pem).unwrap_err(),
                certificates(pem).unwrap_err(),
                key(pem).unwrap_err(),
                key(&[&b"-----BEGIN X-----\n-----END X-----\n"[..], pem].concat()).unwrap_err(),
            ] {
                assert_eq!(told.what, "has no line breaks, or its end is missing");
                let text = format!("{told:?}");
                assert!(text.contains("each line on its own"), "{text}");
                // The base64, and its bytes in decimal.
                assert!(!text.contains(secret) && !text.contains("77, 67"), "{text}");
            }
        }
    }

    #[test]
    fn what_is_no_key_is_told_as_what_it_is() {
        assert_eq!(of_key(""), "is empty");
        assert_eq!(of_key([0x30, 0x82, 1, 2]), "is DER, not PEM");
        assert_eq!(of_key("hello"), "has no key in PEM");
        let certificate = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
        assert_eq!(of_key(certificate), "has a certificate and no key");
        for encrypted in [
            KEY.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY"),
            KEY.replacen('\n', "\nProc-Type: 4,ENCRYPTED\n", 1),
        ] {
            assert_eq!(of_key(encrypted), "is encrypted");
        }
        assert!(key(KEY.as_bytes()).is_ok());
    }
}
