//! The contract, kept by the store on real servers, one for each case.

use leasehold_testkit::contract::RedisSubject;

leasehold_testkit::contract_suite!(RedisSubject);
