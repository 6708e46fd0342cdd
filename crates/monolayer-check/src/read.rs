//! Reading files: bytes with their hash, strict JSON, safetensors. Nothing that they say is believed.

pub mod bytes;
pub mod json;
pub mod tensors;
