//! Reading and editing the prompt library.
