//! The one public face.
