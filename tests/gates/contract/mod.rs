//! One contract for every gate: memory, Redis, PostgreSQL, object stores, HTTP, each with its
//! hostile names, late and lost writes, and the controls that show the damage without the gate.
//!
//! `crates/testkit/src/gates` has the cases. A file here is a gate before its storage.

mod http;
mod memory;
mod mutants;
mod object;
mod object_stores;
mod postgres;
mod redis;
mod words;

use leasehold_testkit::{gate_suite, gate_suite_without_faults};

gate_suite_without_faults!(in_memory, crate::contract::memory::MemorySubject);
gate_suite!(redis_set, crate::contract::redis::SetSubject);
gate_suite!(redis_script, crate::contract::redis::ScriptSubject);
gate_suite!(postgres_rows, crate::contract::postgres::RowsSubject);
gate_suite!(postgres_table, crate::contract::postgres::TableSubject);
gate_suite!(object_in_memory, crate::contract::object::InMemorySubject);
gate_suite!(object_s3, crate::contract::object::S3Subject);
gate_suite!(object_s3_etags_of_bytes, crate::contract::object::S3OfBytesSubject);
gate_suite!(http_layer, crate::contract::http::HttpSubject);
