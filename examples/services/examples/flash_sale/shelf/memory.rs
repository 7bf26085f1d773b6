use std::sync::{Mutex, MutexGuard, PoisonError};

use leasehold::{Stamp, fencing::MemoryGate};

use super::resource;
use crate::sale::{ARTICLES, Books, Look, PIECES, Sale};

/// A shelf in the memory of this process, behind a gate.
#[derive(Debug)]
pub(crate) struct MemoryShelf {
    gate: MemoryGate,
    books: Mutex<Books>,
}

impl MemoryShelf {
    pub(crate) fn stocked() -> Self {
        let books = Books { left: vec![PIECES; ARTICLES], ..Books::default() };
        Self { gate: MemoryGate::new(), books: Mutex::new(books) }
    }

    pub(crate) fn books(&self) -> Books {
        self.lock().clone()
    }

    pub(super) fn look(&self, article: usize, stamp: Stamp) -> Look {
        let look = self.gate.write(&resource(article), stamp, || self.lock().left[article]);
        look.map_or_else(|_| self.shut_out(Look::ShutOut), Look::Left)
    }

    pub(super) fn book(
        &self,
        article: usize,
        left: u64,
        (shop, buyer): (usize, usize),
        stamp: Stamp,
    ) -> Sale {
        let booked = self.gate.write(&resource(article), stamp, || {
            let mut books = self.lock();
            books.left[article] = left;
            books.sales.push((article, shop, buyer));
        });
        booked.map_or_else(|_| self.shut_out(Sale::ShutOut), |()| Sale::Booked)
    }

    fn shut_out<T>(&self, answer: T) -> T {
        self.lock().refused += 1;
        answer
    }

    fn lock(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
