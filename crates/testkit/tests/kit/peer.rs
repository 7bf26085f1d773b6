use std::time::Duration;

use leasehold_testkit::{Patience, Reply, ScriptedPeer};
use redis::{RedisResult, Value, cmd};

/// Runs one command from another thread, on a connection of its own.
async fn ask(peer: &ScriptedPeer, words: &'static [&'static str]) -> RedisResult<Value> {
    let client = redis::Client::open(peer.url()).unwrap();
    let asked = tokio::task::spawn_blocking(move || {
        let mut connection = client.get_connection_with_timeout(Duration::from_secs(1))?;
        connection.set_read_timeout(Some(Duration::from_millis(100)))?;
        let mut command = cmd(words[0]);
        for word in &words[1..] {
            command.arg(*word);
        }
        command.query(&mut connection)
    });
    asked.await.unwrap()
}

#[tokio::test]
async fn a_script_answers_every_command() {
    let peer = ScriptedPeer::start(|command| match command[0].as_str() {
        "ECHO" => Reply::bulk(&command[1]),
        "MANY" => Reply::Array(vec![Reply::Integer(-1), Reply::Nil, Reply::ok()]),
        "MAP" => Reply::Map(vec![(Reply::bulk("k"), Reply::Integer(1))]),
        "CLOSE" => Reply::Close,
        "SILENCE" => Reply::Silence,
        _ => Reply::ok(),
    })
    .await
    .unwrap();
    assert_eq!(ask(&peer, &["ECHO", "a\r\nb"]).await.unwrap(), Value::BulkString(b"a\r\nb".into()));
    let many = Value::Array(vec![Value::Int(-1), Value::Nil, Value::Okay]);
    assert_eq!(ask(&peer, &["MANY"]).await.unwrap(), many);
    let map = Value::Map(vec![(Value::BulkString(b"k".into()), Value::Int(1))]);
    assert_eq!(ask(&peer, &["MAP"]).await.unwrap(), map);
    assert!(ask(&peer, &["CLOSE"]).await.unwrap_err().is_connection_dropped());
    assert!(ask(&peer, &["SILENCE"]).await.unwrap_err().is_timeout());
    assert_eq!(peer.connections(), 5);
    assert!(peer.commands().contains(&vec!["ECHO".into(), "a\r\nb".into()]));
}

#[tokio::test]
async fn a_table_imitates_servers_that_cannot_be_had() {
    let old = ScriptedPeer::of_table([
        ("CLIENT", Reply::ok()),
        ("HELLO", Reply::hello("6.0.16", 2)),
        ("EVAL", Reply::error("NOAUTH Authentication required.")),
    ])
    .await
    .unwrap();
    let Value::Array(hello) = ask(&old, &["hello", "2"]).await.unwrap() else {
        panic!("HELLO 2 is answered by an array")
    };
    assert_eq!(hello[3], Value::BulkString(b"6.0.16".into()));
    let refused = ask(&old, &["EVAL", "", "0"]).await.unwrap_err();
    assert_eq!(refused.code(), Some("NOAUTH"));
    let unknown = ask(&old, &["GET", "k"]).await.unwrap_err();
    assert!(unknown.to_string().contains("unknown command"), "{unknown}");
}

#[tokio::test]
async fn a_peer_may_close_or_say_nothing_and_ends_when_dropped() {
    let closing = ScriptedPeer::closing().await.unwrap();
    assert!(ask(&closing, &["PING"]).await.is_err());
    assert_eq!((closing.connections(), closing.commands().len()), (1, 0));

    let silent = ScriptedPeer::silent().await.unwrap();
    assert!(ask(&silent, &["PING"]).await.unwrap_err().is_timeout());

    let address = ("127.0.0.1", silent.port());
    drop(silent);
    let refused = Patience::of(Duration::from_secs(5)).until_async(|| async {
        tokio::net::TcpStream::connect(address).await.is_err().then_some(())
    });
    assert!(refused.await.is_some());
}
