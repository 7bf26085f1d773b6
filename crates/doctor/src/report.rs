use std::{cmp::Reverse, fmt, time::Duration};

use super::{
    Expected, Finding, Severity, Topic,
    facts::{ClockOffset, Facts, ServerFacts, ServerTold},
    rules,
};

/// What was found on the servers of a lock runtime, the worst first.
///
/// It is shown as a short list for people.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a diagnosis does nothing itself, look at its findings"]
pub struct Diagnosis {
    /// The address of the runtime; `None` if there is no server.
    address: Option<String>,
    findings: Vec<Finding>,
    servers: Vec<ExaminedServer>,
}

impl Diagnosis {
    /// The diagnosis where there is no server to examine.
    #[doc(hidden)]
    pub fn without_server() -> Self {
        Self { address: None, findings: Vec::new(), servers: Vec::new() }
    }

    /// Applies all rules to the facts of an address. The address has no password.
    pub(crate) fn of(address: String, facts: &Facts, expected: &Expected) -> Self {
        let mut findings = Vec::<Finding>::new();
        for finding in rules::judge(facts, expected) {
            match findings.iter_mut().find(|known| known.is_also(&finding)) {
                Some(known) => known.servers.extend(finding.servers),
                None => findings.push(finding),
            }
        }
        // Stable: findings about one topic stay in the order of the servers.
        findings.sort_by_key(|finding| (Reverse(finding.severity), finding.topic));
        let servers = facts.servers.iter().map(ExaminedServer::of).collect();
        Self { address: Some(address), findings, servers }
    }

    /// A diagnosis that could not be made.
    pub(crate) fn not_made(address: String, what: &'static str, cure: &'static str) -> Self {
        let finding = Finding::new(Severity::Danger, Topic::NotExamined, &[], what, cure);
        Self { address: Some(address), findings: vec![finding], servers: Vec::new() }
    }

    /// Writes each finding to the log, with the target `leasehold::diagnosis`: a danger as `ERROR`,
    /// a warning as `WARN`, a notice as `INFO`.
    pub fn log(&self) {
        for finding in &self.findings {
            finding.log();
        }
    }

    /// What was found, the worst first.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The masters that were examined; none if there is no server, or none was found.
    pub fn servers(&self) -> &[ExaminedServer] {
        &self.servers
    }

    /// Whether there is a server: locks in memory, and in a store of your own, have none that can be
    /// examined.
    pub fn has_server(&self) -> bool {
        self.address.is_some()
    }

    /// The severity of the worst finding; `None` if there is no finding.
    pub fn worst(&self) -> Option<Severity> {
        self.findings.first().map(|finding| finding.severity)
    }

    /// The findings that are more than a notice.
    pub fn warnings(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.severity >= Severity::Warning)
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(address) = &self.address else {
            return f.write_str("there is no server to examine");
        };
        match self.findings.len() {
            0 => write!(f, "nothing found at {address}")?,
            1 => write!(f, "1 finding at {address}")?,
            many => write!(f, "{many} findings at {address}")?,
        }
        for finding in &self.findings {
            write!(f, "\n\n{}", finding.head())?;
            write!(f, "\n    found: {}", finding.what)?;
            write!(f, "\n    cure:  {}", finding.cure)?;
        }
        if !self.servers.is_empty() {
            f.write_str("\n\nexamined:")?;
        }
        for server in &self.servers {
            write!(f, "\n    {server}")?;
        }
        Ok(())
    }
}

/// A server that was examined, and what it said about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExaminedServer {
    /// Where it listens, as `host:port`, or its unix socket.
    pub server: String,
    /// Its name and version, as `redis 7.0.15`; `None` if it could not be reached.
    pub version: Option<String>,
    /// How many replicas it sees.
    pub replicas: Option<usize>,
    /// The median of a few round trips.
    pub round_trip: Option<Duration>,
    /// How far its clock is from that of this process.
    pub clock: Option<ClockOffset>,
}

impl ExaminedServer {
    pub(super) fn of(facts: &ServerFacts) -> Self {
        let told = facts.told.as_ref().ok();
        let timing = told.and_then(|told| told.timing.as_ref().ok());
        Self {
            server: facts.place.clone(),
            version: told.map(|told| told.version.clone()),
            replicas: told.and_then(ServerTold::replicas),
            round_trip: timing.map(|timing| timing.median),
            clock: timing.map(|timing| timing.offset),
        }
    }
}

/// Shows the server in one line.
impl fmt::Display for ExaminedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, version, replicas, round_trip, clock } = self;
        let Some(version) = version else { return write!(f, "{server}: not reached") };
        write!(f, "{server}: {version}")?;
        match replicas {
            Some(1) => f.write_str(", 1 replica")?,
            Some(replicas) => write!(f, ", {replicas} replicas")?,
            None => f.write_str(", replicas unknown")?,
        }
        if let Some(round_trip) = round_trip {
            write!(f, ", round trip {round_trip:.1?}")?;
        }
        if let Some(clock) = clock {
            write!(f, ", clock {clock}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        facts::{Deployment, NotRead},
        tests::{Scene, healthy, set},
    };
    use leasehold_core::{StoreError, StoreErrorKind};

    fn diagnosis(servers: impl IntoIterator<Item = Result<ServerTold, StoreError>>) -> Diagnosis {
        let server = |(number, told)| ServerFacts { place: format!("h{number}:6379"), told };
        let servers = (1..).zip(servers).map(server).collect();
        let facts = Facts { deployment: Deployment::Server, servers };
        Diagnosis::of("redis://h1:6379/0".into(), &facts, &Scene::of(healthy()).expected)
    }

    fn evicting() -> ServerTold {
        let mut told = healthy();
        set(&mut told, "maxmemory-policy", "allkeys-lru");
        told
    }

    #[test]
    fn what_several_servers_share_is_one_finding() {
        let diagnosis = diagnosis([Ok(evicting()), Ok(healthy()), Ok(evicting())]);
        let [finding] = diagnosis.findings() else { panic!("{diagnosis}") };
        assert_eq!(finding.servers, ["h1:6379", "h3:6379"]);
        assert_eq!(diagnosis.servers().len(), 3);
    }

    #[test]
    fn the_worst_finding_is_the_first() {
        let gone = StoreError::new(StoreErrorKind::Definite, "it is gone", "start it");
        let mut silent = healthy();
        silent.settings = Err(NotRead::Denied);
        let diagnosis = diagnosis([Ok(silent), Ok(evicting()), Err(gone)]);
        let severities: Vec<_> = diagnosis.findings().iter().map(|one| one.severity).collect();
        assert_eq!(severities, [Severity::Danger, Severity::Warning, Severity::Notice]);
        assert_eq!(diagnosis.worst(), Some(Severity::Danger));
        assert_eq!(diagnosis.warnings().count(), 2);
    }

    #[test]
    fn a_diagnosis_is_a_list_for_people() {
        let gone = StoreError::new(StoreErrorKind::Definite, "it is gone", "start it");
        let shown = diagnosis([Ok(healthy()), Err(gone)]).to_string();
        let expected = "1 finding at redis://h1:6379/0\n\n\
            danger: reach at h2:6379\n    found: it is gone\n    cure:  start it\n\n\
            examined:\n    h1:6379: redis 7.0.15, 0 replicas, round trip 200.0µs, \
            clock less than 1ms off\n    h2:6379: not reached";
        assert_eq!(shown, expected);
        assert_eq!(Diagnosis::without_server().to_string(), "there is no server to examine");
    }
}
