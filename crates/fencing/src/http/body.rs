use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use http_body::{Body, Frame, SizeHint};

/// The body of an answer of a [`FenceService`](super::FenceService): that of the service behind it,
/// or the reason of a refusal.
// ADR 0020
pub struct FencedBody<B: Body>(Content<B>);

enum Content<B: Body> {
    /// Boxed, so that it can be polled without being pinned here.
    Service(Pin<Box<B>>),
    /// `None` when it was read.
    Refusal(Option<B::Data>, u64),
}

// Nothing is pinned in it.
impl<B: Body> Unpin for FencedBody<B> {}

impl<B: Body> FencedBody<B> {
    pub(super) fn of_service(body: B) -> Self {
        Self(Content::Service(Box::pin(body)))
    }

    pub(super) fn of_refusal(text: String) -> Self
    where
        B::Data: From<String>,
    {
        let bytes = text.len() as u64;
        Self(Content::Refusal(Some(B::Data::from(text)), bytes))
    }
}

impl<B: Body> Body for FencedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        match &mut self.0 {
            Content::Service(body) => body.as_mut().poll_frame(cx),
            Content::Refusal(text, _) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Content::Service(body) => body.is_end_stream(),
            Content::Refusal(text, _) => text.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Service(body) => body.size_hint(),
            Content::Refusal(text, bytes) => {
                SizeHint::with_exact(text.as_ref().map_or(0, |_| *bytes))
            }
        }
    }
}

impl<B: Body> fmt::Debug for FencedBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FencedBody").finish_non_exhaustive()
    }
}
