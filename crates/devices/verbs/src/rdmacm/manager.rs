//! The kernel's connection manager, through librdmacm.

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

use crate::library::{functions, open};
use crate::sys::*;
use device::{Error, Result};

functions! {
    Manager, "librdmacm":
    create_event_channel = c"rdma_create_event_channel": fn() -> *mut rdma_event_channel;
    destroy_event_channel = c"rdma_destroy_event_channel": fn(*mut rdma_event_channel) -> ();
    create_id = c"rdma_create_id": fn(*mut rdma_event_channel, *mut *mut rdma_cm_id, *mut c_void, rdma_port_space) -> c_int;
    destroy_id = c"rdma_destroy_id": fn(*mut rdma_cm_id) -> c_int;
    bind_addr = c"rdma_bind_addr": fn(*mut rdma_cm_id, *mut libc::sockaddr) -> c_int;
    listen = c"rdma_listen": fn(*mut rdma_cm_id, c_int) -> c_int;
    get_src_port = c"rdma_get_src_port": fn(*mut rdma_cm_id) -> u16;
    resolve_addr = c"rdma_resolve_addr": fn(*mut rdma_cm_id, *mut libc::sockaddr, *mut libc::sockaddr, c_int) -> c_int;
    resolve_route = c"rdma_resolve_route": fn(*mut rdma_cm_id, c_int) -> c_int;
    connect = c"rdma_connect": fn(*mut rdma_cm_id, *mut rdma_conn_param) -> c_int;
    accept = c"rdma_accept": fn(*mut rdma_cm_id, *mut rdma_conn_param) -> c_int;
    reject = c"rdma_reject": fn(*mut rdma_cm_id, *const c_void, u8) -> c_int;
    get_cm_event = c"rdma_get_cm_event": fn(*mut rdma_event_channel, *mut *mut rdma_cm_event) -> c_int;
    ack_cm_event = c"rdma_ack_cm_event": fn(*mut rdma_cm_event) -> c_int;
    event_str = c"rdma_event_str": fn(rdma_cm_event_type) -> *const std::ffi::c_char;
}

pub(super) fn manager() -> Result<&'static Manager> {
    static MANAGER: OnceLock<std::result::Result<Manager, String>> = OnceLock::new();
    let manager = MANAGER.get_or_init(|| {
        let advice = "Install it (Debian: librdmacm1); without it no iWARP device can be used";
        Manager::find(open(c"librdmacm.so.1", advice)?)
    });
    manager.as_ref().map_err(|why| Error::System(why.clone()))
}
