use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};

use super::{
    book::{LinkState, Shared},
    line::Line,
    link::{Link, reset},
    upstream::Upstream,
};

/// Takes connections for as long as it is polled; each is a task of the runtime it runs on.
pub(super) async fn listen(listener: TcpListener, raw: bool, shared: Arc<Shared>) {
    let mut next = 0;
    loop {
        // Too many open files, for one; others may be closed meanwhile.
        let Ok((client, _)) = listener.accept().await else {
            tokio::task::yield_now().await;
            continue;
        };
        if shared.book().refuses {
            refuse(&shared, &client);
            continue;
        }
        next += 1;
        let Some(upstream) = shared.book().next_upstream() else { continue };
        tokio::spawn(serve(next, client, upstream, raw, Arc::clone(&shared)));
    }
}

fn refuse(shared: &Shared, client: &TcpStream) {
    shared.book().counts.refused += 1;
    reset(client);
}

async fn serve(id: u64, client: TcpStream, upstream: Upstream, raw: bool, shared: Arc<Shared>) {
    let Ok(server) = upstream.connect().await else {
        return refuse(&shared, &client);
    };
    // Small messages go at once; a socket that is closed already shows it soon.
    let _ = client.set_nodelay(true);
    shared.book().open(id);
    let open = Open { shared: &shared, id };
    Link { shared: &shared, id, raw, line: Line::default() }.run(client, server).await;
    drop(open);
}

/// An entry in the book for as long as the connection is there.
struct Open<'a> {
    shared: &'a Shared,
    id: u64,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let mut book = self.shared.book();
        book.links.remove(&self.id);
        book.counts.open = book.links.len() as u64;
    }
}

impl super::book::Book {
    fn open(&mut self, id: u64) {
        self.links.insert(id, LinkState::default());
        self.counts.accepted += 1;
        self.counts.open = self.links.len() as u64;
    }
}
