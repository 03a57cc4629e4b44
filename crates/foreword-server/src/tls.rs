//! Which implementation of TLS this process uses: ring, which the container engine's client brings along anyway.

/// Chooses it, for every client of the process; to be called before the first one is made. A choice made before stays.
pub fn choose_tls() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}
