use super::*;

fn plan(benchmark: Benchmark) -> PerfPlan {
    PerfPlan::new(benchmark, TransportService::Rc)
}

#[test]
fn a_transport_that_cannot_is_refused_with_those_that_can() {
    let refused = |benchmark, transport| {
        PerfPlan::new(benchmark, transport)
            .check()
            .map_err(|why| why.to_string())
    };
    for benchmark in Benchmark::OF_DEVICES {
        for transport in [
            TransportService::Rc,
            TransportService::Uc,
            TransportService::Ud,
        ] {
            let able = benchmark.transports().contains(&transport);
            assert_eq!(
                refused(benchmark, transport).is_ok(),
                able,
                "{benchmark:?} {transport:?}"
            );
        }
    }
    assert_eq!(
        refused(Benchmark::ReadBw, TransportService::Uc).unwrap_err(),
        "--transport uc: it has no RDMA reads, which read-bw needs; valid: rc"
    );
    assert_eq!(
        refused(Benchmark::WriteLat, TransportService::Ud).unwrap_err(),
        "--transport ud: it has no RDMA writes, which write-lat needs; valid: rc, uc"
    );
}

#[test]
fn options_that_mean_nothing_are_refused() {
    let wrong = |plan: PerfPlan| plan.check().unwrap_err().to_string();
    let lat = plan(Benchmark::WriteLat);
    assert!(
        wrong(PerfPlan {
            srq: true,
            ..lat.clone()
        })
        .starts_with("--srq is not for write-lat")
    );
    assert!(
        wrong(PerfPlan {
            qps: 2,
            ..lat.clone()
        })
        .starts_with("--qps is not for")
    );
    assert!(
        wrong(PerfPlan {
            bidirectional: true,
            ..lat.clone()
        })
        .starts_with("--bidirectional")
    );
    assert!(
        wrong(PerfPlan {
            mtu: Some(1500),
            ..lat.clone()
        })
        .contains("256, 512")
    );
    assert!(
        wrong(PerfPlan {
            size: Some(0),
            ..lat
        })
        .contains("at least one byte")
    );
    assert!(
        wrong(PerfPlan {
            inline: Some(8),
            ..plan(Benchmark::ReadLat)
        })
        .starts_with("--inline")
    );
    assert!(
        wrong(PerfPlan {
            size: Some(4),
            ..plan(Benchmark::AtomicLat)
        })
        .contains("8 bytes")
    );
    let deep = PerfPlan {
        tx_depth: Some(4),
        cq_mod: Some(8),
        ..plan(Benchmark::WriteBw)
    };
    assert!(wrong(deep).contains("--cq-mod 8 is more than --tx-depth 4"));
}

#[test]
fn sizes_are_powers_of_two_to_8_mib_and_of_datagrams_to_the_mtu() {
    let sizes = plan(Benchmark::WriteLat).sizes(2048).unwrap();
    assert_eq!((sizes[0], sizes.len(), sizes[22]), (2, 23, 8 << 20));
    let ud = PerfPlan::new(Benchmark::SendLat, TransportService::Ud);
    assert_eq!(ud.sizes(2048).unwrap().last(), Some(&2048));
    let long = PerfPlan {
        size: Some(4096),
        ..ud
    };
    assert!(
        long.sizes(2048)
            .unwrap_err()
            .to_string()
            .contains("at most 2048 bytes")
    );
    assert_eq!(plan(Benchmark::AtomicLat).sizes(2048).unwrap(), [8]);
}

#[test]
fn a_queue_never_waits_for_a_completion_without_a_signaled_request() {
    for depth in [1, 7, 128, 500] {
        for size in [8, 8192, 8193] {
            let plan = PerfPlan {
                tx_depth: Some(depth),
                ..plan(Benchmark::WriteBw)
            };
            assert!(plan.signal_every(size) <= plan.tx_depth());
        }
    }
    assert_eq!(plan(Benchmark::WriteBw).signal_every(8192), 100);
    assert_eq!(plan(Benchmark::WriteBw).signal_every(8193), 1);
    let every = PerfPlan {
        cq_mod: Some(300),
        ..plan(Benchmark::WriteBw)
    };
    assert_eq!(every.tx_depth(), 300);
}
