use std::{fs, path::Path};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
};

/// A private certificate authority with one certificate, for 127.0.0.1 and `localhost`.
#[derive(Debug)]
pub(super) struct Authority {
    ca_pem: String,
}

impl Authority {
    /// Makes an authority and puts `ca.pem`, `server.pem` and `server.key` into `folder`.
    pub(super) fn found_in(folder: &Path) -> Result<Self, Box<dyn std::error::Error>> {
        let mut ca = CertificateParams::new(Vec::new())?;
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        ca.distinguished_name.push(DnType::CommonName, "Leasehold test authority");
        let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate()?)?;

        let key = KeyPair::generate()?;
        let names = vec!["127.0.0.1".into(), "localhost".into()];
        let certificate = CertificateParams::new(names)?.signed_by(&key, &ca)?;

        fs::write(folder.join("ca.pem"), ca.pem())?;
        fs::write(folder.join("server.pem"), certificate.pem())?;
        fs::write(folder.join("server.key"), key.serialize_pem())?;
        Ok(Self { ca_pem: ca.pem() })
    }

    /// Puts the certificates of another server into `folder`.
    pub(super) fn copied(other: &Path, folder: &Path) -> Result<Self, Box<dyn std::error::Error>> {
        for name in ["ca.pem", "server.pem", "server.key"] {
            fs::copy(other.join(name), folder.join(name))?;
        }
        Ok(Self { ca_pem: fs::read_to_string(folder.join("ca.pem"))? })
    }

    /// The certificate that a client has to trust, as PEM.
    pub(super) fn ca_pem(&self) -> &str {
        &self.ca_pem
    }
}
