//! Pages to read. They exist in the documentation only; in the repository they are in `docs`.
//!
//! - To begin: [`in_a_service`], [`using`], [`migrating`], [`testing`], [`deadlocks`], [`health`],
//!   [`tracing`], [`sizing`], [`kept_turns`], [`sharing`], [`topologies`], [`quorum`], [`faq`].
//! - Tasks: [`duplicate_submission`], [`scheduled_jobs`], [`leader`], [`flash_sale`],
//!   [`orders_in_sequence`].
//! - Fenced writes: in [`postgres`], before [`http`] services, on an [`object_store`].
//! - Operation: [`command_line`], [`operations`], [`security`], [`metrics`], [`monitoring`].
//! - Promises, tests and design: [`guarantees`], [`fault_matrix`], [`reliability`],
//!   [`performance`], [`performance_topologies`], [`performance_quorum`], [`stability`],
//!   [`architecture`], [`protocol`].

/// Where the links of a page lead to in this documentation; the first definition of a link counts.
macro_rules! pages {
    ($($(#[$attribute:meta])* $name:ident = $file:literal, $summary:literal;)*) => { $(
        #[doc = $summary]
        #[doc = ""]
        #[doc = include_str!("guide/links.md")]
        #[doc = include_str!(concat!("../", $file))]
        $(#[$attribute])*
        pub mod $name {}
    )* };
}

pages! {
    #[cfg(any(not(doctest), feature = "axum"))]
    in_a_service = "docs/guides/in-a-service.md", "A handler, the answers for its clients, and a complete service.";
    using = "docs/guides/using.md", "Guards, tries, closures, re-entry, connections, fenced writes.";
    migrating = "docs/guides/migrating.md", "From rslock, Redlock crates and Redisson.";
    #[cfg(any(not(doctest), feature = "testing"))]
    testing = "docs/guides/testing.md", "Tests without a server, lost leases, virtual time.";
    deadlocks = "docs/guides/deadlocks.md", "How deadlocks arise, how to find them, and how to take several locks at once.";
    command_line = "docs/guides/command-line.md", "Commands under locks, and an incident, step by step.";
    health = "docs/guides/health.md", "What a liveness, readiness and startup probe asks.";
    tracing = "docs/guides/tracing.md", "Spans for calls and leases in the traces of a service.";
    sizing = "docs/guides/sizing.md", "Commands, connections and memory of a service, as a worked example.";
    kept_turns = "docs/guides/kept-turns.md", "Locks that stay with the process that uses them again and again.";
    sharing = "docs/guides/sharing.md", "Locks that many read at once and one writes: what is promised, what it costs.";
    topologies = "docs/guides/topologies.md", "One server, Sentinel, or a Cluster: addresses, settings, what each cannot promise, how much it carries.";
    quorum = "docs/guides/quorum.md", "A majority of independent servers: what it promises, when to use it, how to run it.";
    faq = "docs/guides/faq.md", "Questions, and when to use something else.";

    duplicate_submission = "docs/guides/duplicate-submission.md", "Work that is done once, even if a client asks for it several times.";
    scheduled_jobs = "docs/guides/scheduled-jobs.md", "A job that one instance of a fleet runs.";
    leader = "docs/guides/leader.md", "One instance leads, and another takes over.";
    #[cfg(any(not(doctest), feature = "postgres"))]
    flash_sale = "docs/guides/flash-sale.md", "Many buyers, few pieces, and no piece sold twice.";
    #[cfg(any(not(doctest), feature = "postgres"))]
    orders_in_sequence = "docs/guides/orders-in-sequence.md", "The orders of each customer, one after another.";

    #[cfg(any(not(doctest), feature = "postgres"))]
    postgres = "docs/guides/postgres.md", "Fenced writes in PostgreSQL, and mistakes that break them.";
    #[cfg(any(not(doctest), feature = "tower"))]
    http = "docs/guides/http.md", "Fences before an HTTP service, with a `tower` layer.";
    #[cfg(any(not(doctest), feature = "object-store"))]
    object_store = "docs/guides/object-store.md", "Fences on an object store.";

    guarantees = "docs/guarantees.md", "Each promise, why it holds, and what is not promised.";
    operations = "docs/operations.md", "Server settings, rights, keys, costs, timeouts, and what to do when something is wrong.";
    security = "SECURITY.md", "Who can do what with which rights on the server, and how to report a fault.";
    metrics = "docs/metrics.md", "Every series with its labels and meaning.";
    monitoring = "docs/monitoring/README.md", "A dashboard, alert rules, and what to do about each alert.";
    performance = "docs/performance.md", "Measurements, each with its date and machine.";
    performance_topologies = "docs/performance-topologies.md", "Measurements with Sentinels and on Clusters.";
    performance_quorum = "docs/performance-quorum.md", "Measurements of quorums, beside those of other libraries.";
    reliability = "docs/reliability.md", "Results of the long test runs, and how to repeat them.";
    fault_matrix = "docs/fault-matrix.md", "Every fault that is tested, the result, and the damage without the protection.";
    stability = "docs/stability.md", "What 0.x promises, and what two versions do on one server.";
    architecture = "docs/architecture.md", "The crates, and how a lock is acquired and handed over.";
    protocol = "docs/protocol.md", "The contract of the wire, for clients in other languages.";
}
