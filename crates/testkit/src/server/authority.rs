use std::{fs, path::Path};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
};

/// What a client of a server with TLS needs, as PEM.
#[derive(Debug, Clone)]
pub struct ClientPems {
    /// The authority to trust.
    pub ca: String,
    /// The client's certificate.
    pub certificate: String,
    /// The key of that certificate.
    pub key: String,
}

fn names() -> Vec<String> {
    vec!["127.0.0.1".into(), "localhost".into()]
}

fn authority(
    names: Vec<String>,
) -> Result<CertifiedIssuer<'static, KeyPair>, Box<dyn std::error::Error>> {
    let mut ca = CertificateParams::new(names)?;
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    ca.distinguished_name.push(DnType::CommonName, "Leasehold test authority");
    Ok(CertifiedIssuer::self_signed(ca, KeyPair::generate()?)?)
}

/// A private certificate authority with one certificate, for 127.0.0.1 and `localhost`.
#[derive(Debug)]
pub(super) struct Authority {
    ca_pem: String,
}

impl Authority {
    /// Makes an authority and puts `ca.pem`, `server.pem` and `server.key` into `folder`.
    pub(super) fn found_in(folder: &Path) -> Result<Self, Box<dyn std::error::Error>> {
        let (ca, key) = (authority(Vec::new())?, KeyPair::generate()?);
        let certificate = CertificateParams::new(names())?.signed_by(&key, &ca)?;

        fs::write(folder.join("ca.pem"), ca.pem())?;
        fs::write(folder.join("server.pem"), certificate.pem())?;
        fs::write(folder.join("server.key"), key.serialize_pem())?;
        Ok(Self { ca_pem: ca.pem() })
    }

    /// The same of a server that shows the authority's own certificate.
    pub(super) fn alone_in(folder: &Path) -> Result<Self, Box<dyn std::error::Error>> {
        let ca = authority(names())?;
        fs::write(folder.join("ca.pem"), ca.pem())?;
        fs::write(folder.join("server.pem"), ca.pem())?;
        fs::write(folder.join("server.key"), ca.key().serialize_pem())?;
        Ok(Self { ca_pem: ca.pem() })
    }

    /// Makes a new authority, and puts `ca.pem` and a `server.pem` for the same key into `folder`. Returns what
    /// a client needs then.
    pub(super) fn renewed_in(
        folder: &Path,
        server_key: &str,
    ) -> Result<ClientPems, Box<dyn std::error::Error>> {
        let (ca, key) = (authority(Vec::new())?, KeyPair::generate()?);
        let server_key = KeyPair::from_pem(server_key)?;
        let server = CertificateParams::new(names())?.signed_by(&server_key, &ca)?;
        let client = CertificateParams::new(Vec::new())?.signed_by(&key, &ca)?;
        fs::create_dir_all(folder)?;
        fs::write(folder.join("ca.pem"), ca.pem())?;
        fs::write(folder.join("server.pem"), server.pem())?;
        Ok(ClientPems { ca: ca.pem(), certificate: client.pem(), key: key.serialize_pem() })
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
