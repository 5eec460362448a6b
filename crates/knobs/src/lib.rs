//! Every setting once: name, aliases, type, default, doc. Never reads the environment itself.
