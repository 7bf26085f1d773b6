//! One contract for every gate: memory, Redis, PostgreSQL, object stores, HTTP, each with its hostile names,
//! late and lost writes, and the controls that show the damage without the gate.
//!
//! `crates/testkit/src/gates` has the cases. A file here is a gate before its storage.

#![cfg(all(feature = "object-store", feature = "postgres", feature = "tower"))]

#[path = "gates_contract/http.rs"]
mod http;
#[path = "gates_contract/memory.rs"]
mod memory;
#[path = "gates_contract/mutants.rs"]
mod mutants;
#[path = "gates_contract/object.rs"]
mod object;
#[path = "gates_contract/object_stores.rs"]
mod object_stores;
#[path = "gates_contract/postgres.rs"]
mod postgres;
#[path = "gates_contract/redis.rs"]
mod redis;
#[path = "s3_support/mod.rs"]
mod s3_support;
#[allow(dead_code, reason = "the suite steers a sound store only")]
#[path = "gate_object/steered.rs"]
mod steered;
#[path = "gates_contract/words.rs"]
mod words;

use leasehold_testkit::{gate_suite, gate_suite_without_faults};

gate_suite_without_faults!(in_memory, crate::memory::MemorySubject);
gate_suite!(redis_set, crate::redis::SetSubject);
gate_suite!(redis_script, crate::redis::ScriptSubject);
gate_suite!(postgres_rows, crate::postgres::RowsSubject);
gate_suite!(postgres_table, crate::postgres::TableSubject);
gate_suite!(object_in_memory, crate::object::InMemorySubject);
gate_suite!(object_s3, crate::object::S3Subject);
gate_suite!(object_s3_etags_of_bytes, crate::object::S3OfBytesSubject);
gate_suite!(http_layer, crate::http::HttpSubject);
