use crate::error::ResourceError;

/// The key of the watermark that guards a value, in the same cluster slot; see `RedisGate`.
///
/// No two values share one, none has the name of a lock's key, and none can be the key of a value.
// ADR 0041
pub(super) fn watermark_key(key: &str) -> Result<String, ResourceError> {
    match key {
        "" => Err(ResourceError::Empty),
        _ if key.contains('\0') => Err(ResourceError::ContainsNul(key.into())),
        _ if is_watermark(key) => Err(ResourceError::IsWatermark(key.into())),
        _ if has_hash_tag(key) => Ok(format!("{key}:watermark")),
        _ if key.contains('}') => Err(ResourceError::BreaksHashTag(key.into())),
        _ => Ok(format!("watermark:{{{key}}}")),
    }
}

/// Refuses `keys` that the resource does not guard, and watermarks also among the `others`.
pub(super) fn check_keys(
    resource: &str,
    keys: &[String],
    others: &[String],
) -> Result<(), ResourceError> {
    let all = || keys.iter().chain(others).map(String::as_str);
    if let Some(watermark) = [resource].into_iter().chain(all()).find(|key| is_watermark(key)) {
        return Err(ResourceError::IsWatermark(watermark.into()));
    }
    let within = |key: &str| key.strip_prefix(resource).is_some_and(|rest| rest.starts_with(':'));
    let foreign = keys.iter().find(|key| *key != resource && !within(key));
    let Some(key) = foreign else { return Ok(()) };
    let (key, resource) = (key.as_str().into(), resource.into());
    Err(ResourceError::ForeignKey { key, resource })
}

/// Whether [`watermark_key`] makes this key from the key of some value.
fn is_watermark(key: &str) -> bool {
    let tagged = key.strip_suffix(":watermark").is_some_and(has_hash_tag);
    let plain = key.strip_prefix("watermark:{").and_then(|rest| rest.strip_suffix('}'));
    tagged || plain.is_some_and(|value| !value.is_empty() && !value.contains('}'))
}

/// Whether Redis computes the slot from a part of the key: the text between the first `{` and the
/// next `}`, if it is not empty.
fn has_hash_tag(key: &str) -> bool {
    key.split_once('{')
        .and_then(|(_, rest)| rest.split_once('}'))
        .is_some_and(|(tag, _)| !tag.is_empty())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The part of a key that Redis hashes, by the cluster specification.
    fn hashed(key: &str) -> &str {
        let Some(open) = key.find('{') else { return key };
        match key[open + 1..].find('}') {
            Some(length) if length > 0 => &key[open + 1..open + 1 + length],
            _ => key,
        }
    }

    #[test]
    fn a_watermark_shares_the_slot_of_its_value_and_nothing_else() {
        let keys =
            ["a", "{a}", "a{b", "{", "{{a}", "x{a}y", "a{b}{c}", "orders:{42}", "{a}}", "}{a}"];
        let mut watermarks = BTreeSet::new();
        for key in keys {
            let watermark = watermark_key(key).unwrap();
            assert_eq!(hashed(&watermark), hashed(key), "{key}");
            assert!(watermarks.insert(watermark), "{key}");
        }
        assert!(watermarks.contains("orders:{42}:watermark"));
        assert!(watermarks.contains("watermark:{a}"));
    }

    #[test]
    fn the_key_of_a_watermark_is_that_of_no_value() {
        for key in ["a", "orders:{42}", "a{b", "{", "a{b}c"] {
            let watermark = watermark_key(key).unwrap();
            let refused = ResourceError::IsWatermark(watermark.as_str().into());
            assert_eq!(watermark_key(&watermark), Err(refused), "{key}");
        }
        // These look like watermarks, but are none.
        for key in ["watermark:b", "b:watermark", "watermark:{b}c", "xwatermark:{b}", "watermark"] {
            assert!(watermark_key(key).is_ok(), "{key}");
        }
    }

    #[test]
    fn a_key_belongs_to_a_resource_that_it_is_or_begins_with() {
        let check = |keys: &[&str]| {
            let keys: Vec<String> = keys.iter().copied().map(String::from).collect();
            check_keys("stock:{7}", &keys, &[])
        };
        assert_eq!(check(&["stock:{7}", "stock:{7}:log", "stock:{7}:"]), Ok(()));
        for key in ["stock:{7}x", "stock", "stock:{70}", "", "log:{7}"] {
            let refused = check(&["stock:{7}", key]);
            assert!(matches!(refused, Err(ResourceError::ForeignKey { .. })), "{key}");
        }
        let watermark = check(&["stock:{7}:watermark"]);
        assert_eq!(watermark, Err(ResourceError::IsWatermark("stock:{7}:watermark".into())));
    }

    #[test]
    fn keys_that_cannot_be_guarded_are_refused() {
        assert_eq!(watermark_key(""), Err(ResourceError::Empty));
        for key in ["}", "}a", "a}b", "a{}b", "{}", "{}{a}"] {
            assert_eq!(watermark_key(key), Err(ResourceError::BreaksHashTag(key.into())));
        }
        assert_eq!(watermark_key("a\0"), Err(ResourceError::ContainsNul("a\0".into())));
    }
}
