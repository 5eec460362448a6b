//! Procedures of MPI 1 for which the ABI has no equivalent procedure: each returns a part of the
//! result of `MPI_Type_get_extent`.

use super::type_facts::supported;
use crate::args::OutCount;
use crate::call_guard::Running;
use crate::error::Done;
use crate::handle::Datatype;

/// `MPI_Type_extent` (MPI 1.3, section 3.12.3).
pub fn type_extent(call: &Running, datatype: Datatype, extent: OutCount) -> Done {
    extent.set(supported(call, datatype)?.extent() as i64);
    Ok(())
}

/// `MPI_Type_lb` (MPI 1.3, section 3.12.4).
pub fn type_lb(call: &Running, datatype: Datatype, displacement: OutCount) -> Done {
    displacement.set(supported(call, datatype)?.lb() as i64);
    Ok(())
}

/// `MPI_Type_ub` (MPI 1.3, section 3.12.4).
pub fn type_ub(call: &Running, datatype: Datatype, displacement: OutCount) -> Done {
    displacement.set(supported(call, datatype)?.ub() as i64);
    Ok(())
}
