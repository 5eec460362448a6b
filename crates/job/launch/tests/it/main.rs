//! Tests of the launcher's structure. Tests of its behaviour stand beside pure code, and in
//! `tests/robust`, `tests/launchers` and `tests/messages`, which run real jobs.

mod layers;
