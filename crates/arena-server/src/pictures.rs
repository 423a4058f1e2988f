//! Pictures of ended games as PNG files. They are drawn beside the threads that answer requests, one at a time, and
//! the latest ones are cached.

use std::sync::Arc;

use axum::body::Bytes;
use hashlink::LruCache;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

/// Number of cached pictures. Each has about 50 kB.
const CACHED: usize = 64;

/// The cached pictures, by the SHA-256 of their SVG.
pub(crate) struct Pictures {
    ready: Mutex<LruCache<[u8; 32], Bytes>>,
    places: Arc<Semaphore>,
}

impl Default for Pictures {
    fn default() -> Pictures {
        Pictures { ready: Mutex::new(LruCache::new(CACHED)), places: Arc::new(Semaphore::new(1)) }
    }
}

impl Pictures {
    /// Returns an SVG picture as a PNG file; `None` if it can't be drawn.
    pub(crate) async fn png(&self, svg: String) -> Option<Bytes> {
        let key: [u8; 32] = Sha256::digest(&svg).into();
        let cached = || self.ready.lock().get(&key).cloned();
        if let Some(file) = cached() {
            return Some(file);
        }
        let place = Arc::clone(&self.places).acquire_owned().await.ok()?;
        // Another request may have drawn it in the meantime.
        if let Some(file) = cached() {
            return Some(file);
        }
        let drawing = tokio::task::spawn_blocking(move || {
            // The place stays taken even if the client is gone.
            let _place = place;
            arena_report::png(&svg).map(Bytes::from)
        });
        let file = drawing.await.ok()??;
        self.ready.lock().insert(key, file.clone());
        Some(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_picture_is_drawn_once() {
        let pictures = Pictures::default();
        let svg = |width: usize| format!("<svg width='{width}' height='1'/>");
        let first = pictures.png(svg(1)).await.expect("a file");
        assert_eq!(pictures.png(svg(1)).await.expect("a file").as_ptr(), first.as_ptr());
        assert!(pictures.png("<svg".to_owned()).await.is_none());
        for width in 2..2 + CACHED {
            pictures.png(svg(width)).await.expect("a file");
        }
        assert_eq!(pictures.ready.lock().len(), CACHED);
    }
}
