use leasehold_core::Stamp;

/// Judges a stamp against the highest one that a resource has seen.
///
/// A newer fence is admitted, and an equal one of the same lease; everything else is refused.
/// Every gate applies this rule; a gate of your own must do so in one atomic step with the write.
///
/// ```
/// # use leasehold_core::{AcquisitionId, FenceToken, RuntimeId};
/// # use leasehold_fencing::{Admitted, Stamp, Verdict, judge};
/// # let runtime = RuntimeId::new(uuid::Uuid::nil());
/// # let stamp = |fence: u64, number| -> Result<Stamp, leasehold_core::FenceTokenError> {
/// #     Ok(Stamp::new(FenceToken::try_from(fence)?, AcquisitionId::new(runtime, number)))
/// # };
/// let (older, newer) = (stamp(41, 1)?, stamp(42, 2)?);
/// assert_eq!(judge(Some(older), newer), Verdict::Admit(Admitted::Newer));
/// assert_eq!(judge(Some(newer), older), Verdict::Refuse { highest: newer });
/// # Ok::<(), leasehold_core::FenceTokenError>(())
/// ```
pub fn judge(watermark: Option<Stamp>, presented: Stamp) -> Verdict {
    match watermark {
        None => Verdict::Admit(Admitted::First),
        Some(highest) if highest == presented => Verdict::Admit(Admitted::Again),
        Some(highest) if highest.fence < presented.fence => Verdict::Admit(Admitted::Newer),
        Some(highest) => Verdict::Refuse { highest },
    }
}

/// What a gate decides about a stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a refused stamp must not write"]
pub enum Verdict {
    /// The writer may write, and its stamp becomes the watermark.
    Admit(Admitted),
    /// The writer must not write.
    Refuse {
        /// The highest stamp that was admitted.
        highest: Stamp,
    },
}

/// How an admitted stamp compares to the watermark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Admitted {
    /// The resource had no watermark: no fenced write came before, or the watermark was forgotten.
    First,
    /// The fence is newer than the watermark; earlier holders are shut out from now on.
    Newer,
    /// The same lease was admitted before.
    Again,
}

#[cfg(test)]
mod tests {
    use leasehold_testing::stamp;

    use super::*;

    #[test]
    fn only_a_newer_fence_or_the_same_lease_is_admitted() {
        let highest = stamp(42, 2);
        for (presented, verdict) in [
            (stamp(43, 3), Verdict::Admit(Admitted::Newer)),
            (stamp(43, 2), Verdict::Admit(Admitted::Newer)),
            (stamp(42, 2), Verdict::Admit(Admitted::Again)),
            (stamp(42, 3), Verdict::Refuse { highest }),
            (stamp(41, 2), Verdict::Refuse { highest }),
            (stamp(41, 1), Verdict::Refuse { highest }),
            (stamp(5, 1), Verdict::Refuse { highest }),
        ] {
            assert_eq!(judge(Some(highest), presented), verdict, "{presented}");
        }
        assert_eq!(judge(None, stamp(1, 1)), Verdict::Admit(Admitted::First));
    }

    #[test]
    fn fences_are_compared_as_numbers() {
        let refused = Verdict::Refuse { highest: stamp(10, 2) };
        assert_eq!(judge(Some(stamp(10, 2)), stamp(9, 3)), refused);
        assert_eq!(judge(Some(stamp(9, 3)), stamp(10, 2)), Verdict::Admit(Admitted::Newer));
    }
}
