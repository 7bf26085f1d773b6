/// Defines a label whose values are the variants of an enum.
macro_rules! label {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident => $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $name {
            /// The values of the label, in the order of the variants.
            pub(super) const LABELS: &'static [&'static str] = &[$($text,)+];

            /// The value of the label.
            pub const fn as_label(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }
    };
}

label! {
    /// How an acquire call ended.
    AcquireOutcome {
        /// It got a new lease.
        Acquired => "acquired",
        /// It re-entered a lease of the same owner.
        Reentered => "reentered",
        /// The lock was taken and the caller did not want to wait.
        Busy => "busy",
        /// The wait was over before the lock was free.
        Timeout => "timeout",
        /// The server did not answer.
        Unavailable => "unavailable",
        /// The caller dropped the future.
        Cancelled => "cancelled",
        /// The owner's lease had been lost.
        Lost => "lost",
        /// The store refused, or the runtime was shut down.
        Error => "error",
    }
}

label! {
    /// How the time of holding a lease ended.
    HoldEnd {
        /// By an explicit release.
        Released => "released",
        /// By dropping the last guard.
        Dropped => "dropped",
        /// By losing the lease.
        Lost => "lost",
    }
}

label! {
    /// How a renewal ended.
    RenewalOutcome {
        /// The lease was extended.
        Renewed => "renewed",
        /// The attempt failed without effect; the lease stands until its deadline.
        Held => "held",
        /// Whether it was extended is unknown; the lease stands until its deadline.
        Unknown => "unknown",
        /// The lease is gone.
        Lost => "lost",
    }
}

label! {
    /// How a release ended.
    ReleaseOutcome {
        /// The lease has ended on the server.
        Released => "released",
        /// The lease has ended, and the lock stays closed for a while.
        Kept => "kept",
        /// It had ended before.
        Gone => "gone",
        /// The server could not be told; the lease ends with its ttl.
        Unconfirmed => "unconfirmed",
    }
}

label! {
    /// Which way a release was asked for.
    ReleaseVia {
        /// By `release()`.
        Explicit => "explicit",
        /// By dropping the guard.
        Drop => "drop",
        /// By taking back an acquire that was dropped.
        Withdraw => "withdraw",
        /// By the watchdog, at the end of `max_hold`.
        MaxHold => "max_hold",
        /// By the runtime's shutdown.
        Shutdown => "shutdown",
    }
}

label! {
    /// How it went on with an idle turn: one that was kept after its last lease.
    KeptOutcome {
        /// A task of this process took it.
        Reused => "reused",
        /// Another process wanted the lock.
        Recalled => "recalled",
        /// It ended by itself: its time was over, or the runtime did not keep it any longer.
        Lapsed => "lapsed",
    }
}

label! {
    /// How a waiter learned that it was its turn.
    WakeSource {
        /// A message of the store.
        Push => "push",
        /// The answer to a command of its runtime.
        Heartbeat => "heartbeat",
        /// Another task of its runtime, which had the lock before.
        Local => "local",
    }
}

label! {
    /// What became of a message on the channel of the runtime.
    MessageOutcome {
        /// It proved that it comes from the store.
        Believed => "believed",
        /// It did not, and was dropped.
        Unproven => "unproven",
        /// No script of this store sends such a message, and it was dropped.
        Unexpected => "unexpected",
        /// It is not understood, and was dropped.
        Unreadable => "unreadable",
    }
}
