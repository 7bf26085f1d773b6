//! Fences and ids of leases as columns of a database, through sqlx: `BIGINT`, and text.

use sqlx::{Database, Decode, Encode, Type, encode::IsNull, error::BoxDynError};

use super::{AcquisitionId, Fence};

/// A type that is stored as another one.
macro_rules! column {
    ($of:ty, $stored:ty, $write:expr, $read:expr) => {
        impl<DB: Database> Type<DB> for $of
        where
            $stored: Type<DB>,
        {
            fn type_info() -> DB::TypeInfo {
                <$stored>::type_info()
            }

            fn compatible(ty: &DB::TypeInfo) -> bool {
                <$stored>::compatible(ty)
            }
        }

        impl<'q, DB: Database> Encode<'q, DB> for $of
        where
            $stored: Encode<'q, DB>,
        {
            fn encode_by_ref(&self, to: &mut DB::ArgumentBuffer) -> Result<IsNull, BoxDynError> {
                $write(self).encode(to)
            }
        }

        impl<'r, DB: Database> Decode<'r, DB> for $of
        where
            $stored: Decode<'r, DB>,
        {
            fn decode(value: DB::ValueRef<'r>) -> Result<Self, BoxDynError> {
                Ok($read(<$stored>::decode(value)?)?)
            }
        }
    };
}

column!(Fence, i64, |fence: &Fence| i64::from(*fence), Fence::try_from);
column!(AcquisitionId, String, AcquisitionId::to_string, |text: String| text
    .parse::<AcquisitionId>());
