//! The contract, kept by the embedded store under virtual time.

use leasehold_testkit::contract::MemorySubject;

leasehold_testkit::contract_suite!(MemorySubject);
