/// What a scripted peer answers to a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// A simple string, such as `OK`.
    Simple(String),
    /// An error with its code, such as `NOAUTH Authentication required.`
    Error(String),
    /// A number.
    Integer(i64),
    /// A bulk string.
    Bulk(String),
    /// Nothing, as in RESP2.
    Nil,
    /// Several replies in one.
    Array(Vec<Self>),
    /// A map, as in RESP3.
    Map(Vec<(Self, Self)>),
    /// No answer at all; the connection stays open.
    Silence,
    /// The connection is closed instead.
    Close,
}

impl Reply {
    /// `+OK`.
    pub fn ok() -> Self {
        Self::Simple("OK".into())
    }

    /// An error with its code.
    pub fn error(text: impl Into<String>) -> Self {
        Self::Error(text.into())
    }

    /// A bulk string.
    pub fn bulk(text: impl Into<String>) -> Self {
        Self::Bulk(text.into())
    }

    /// What a standalone master of this version answers to `HELLO`: a map for protocol 3, else a
    /// flat array.
    pub fn hello(version: &str, protocol: u8) -> Self {
        let pairs = vec![
            (Self::bulk("server"), Self::bulk("redis")),
            (Self::bulk("version"), Self::bulk(version)),
            (Self::bulk("proto"), Self::Integer(protocol.into())),
            (Self::bulk("id"), Self::Integer(1)),
            (Self::bulk("mode"), Self::bulk("standalone")),
            (Self::bulk("role"), Self::bulk("master")),
            (Self::bulk("modules"), Self::Array(Vec::new())),
        ];
        if protocol >= 3 {
            return Self::Map(pairs);
        }
        Self::Array(pairs.into_iter().flat_map(|(key, value)| [key, value]).collect())
    }

    /// The same answer to `HELLO`, from a server in another mode than `standalone`.
    #[must_use]
    pub fn in_mode(mut self, mode: &str) -> Self {
        let standalone = Self::bulk("standalone");
        let parts: Vec<&mut Self> = match &mut self {
            Self::Array(parts) => parts.iter_mut().collect(),
            Self::Map(pairs) => pairs.iter_mut().map(|(_, value)| value).collect(),
            _ => Vec::new(),
        };
        for part in parts.into_iter().filter(|part| **part == standalone) {
            *part = Self::bulk(mode);
        }
        self
    }

    /// The reply as it is sent; nothing for [`Reply::Silence`] and [`Reply::Close`].
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let line = match self {
            Self::Simple(text) => format!("+{text}\r\n"),
            Self::Error(text) => format!("-{text}\r\n"),
            Self::Integer(number) => format!(":{number}\r\n"),
            Self::Bulk(text) => format!("${}\r\n{text}\r\n", text.len()),
            Self::Nil => "$-1\r\n".into(),
            Self::Array(replies) => format!("*{}\r\n", replies.len()),
            Self::Map(pairs) => format!("%{}\r\n", pairs.len()),
            Self::Silence | Self::Close => return,
        };
        out.extend_from_slice(line.as_bytes());
        match self {
            Self::Array(replies) => replies.iter().for_each(|reply| reply.encode(out)),
            Self::Map(pairs) => pairs.iter().for_each(|(key, value)| {
                key.encode(out);
                value.encode(out);
            }),
            _ => {}
        }
    }
}
