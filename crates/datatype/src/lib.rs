//! Datatypes: flattening, packing, extents, and the arithmetic of predefined operations. Pure.
