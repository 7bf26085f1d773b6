/// Which settings of TLS the user has given, and what they are called.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TlsGiven {
    pub(super) names: TlsNames,
    /// Whether authorities were given that are trusted.
    pub(super) trusts: bool,
    /// Whether a client certificate was given.
    pub(super) shows: bool,
}

/// What the settings are called where the user writes them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TlsNames {
    /// The certificate authority.
    pub(crate) ca: &'static str,
    /// The client's certificate.
    pub(crate) certificate: &'static str,
    /// The key of that certificate.
    pub(crate) key: &'static str,
}

impl Default for TlsNames {
    fn default() -> Self {
        let client = "tls_client_certificate()";
        Self { ca: "tls_root_ca()", certificate: client, key: client }
    }
}
