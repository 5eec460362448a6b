use proptest::prelude::*;

use super::*;

const OSU: &str = "\
[node1:4711] some line of a library
# OSU MPI Latency Test v5.6.2
# Size          Latency (us)
0                       1.07
1                       1.11
4096                    3.02

# OSU MPI Bandwidth Test v7.3
# Datatype: MPI_CHAR.
# Size      Bandwidth (MB/s)
1048576             12025.43
# OSU MPI Allreduce Latency Test v5.6.2
# Size       Avg Latency(us)
4                       4.61
8                       4.70
# OSU MPI Multiple Bandwidth / Message Rate Test v5.6.2
# [ pairs: 4 ] [ window size: 64 ]
# Size                  MB/s        Messages/s
8                      96.00       12000000.00
";

const IMB: &str = "\
#------------------------------------------------------------
#    Intel(R) MPI Benchmarks 2021.3, MPI-1 part
#------------------------------------------------------------
# Benchmarking PingPong
# #processes = 2
# ( 30 additional processes waiting in MPI_Barrier)
#---------------------------------------------------
       #bytes #repetitions      t[usec]   Mbytes/sec
            0         1000         1.20         0.00
         1024         1000         2.40       426.67

# Benchmarking Uniband
# #processes = 2
       #bytes #repetitions   Mbytes/sec      Msg/sec
            0         1000         0.00      3000000
         4096         1000      4096.00      1000000
# Benchmarking Uniband
# #processes = 4
       #bytes #repetitions   Mbytes/sec      Msg/sec
         4096         1000      8192.00      2000000
";

const PERFTEST: &str = "\
---------------------------------------------------------------------------------------
                    RDMA_Write BW Test
 Dual-port       : OFF\t\tDevice         : mlx5_0
 Number of qps   : 1\t\tTransport type : IB
 Connection type : RC\t\tUsing SRQ      : OFF
 Mtu             : 4096[B]
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
 65536      5000             11500.10            11400.00\t\t   0.182400
---------------------------------------------------------------------------------------
                    RDMA_Write Latency Test
 Connection type : RC
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]
Conflicting CPU frequency values detected: 1200.000000 != 2400.000000
 2       1000          0.85           3.70         0.89     \t       0.90        \t0.05\t\t1.0
                    Send BW Test
 Connection type : UD
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 4096       1000             80.00            79.00\t\t   2.4
                    RDMA_Read BW Test
 Connection type : RC
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 4096       1000             80.00            80.00\t\t   2.4
";

fn figures(text: &str) -> Vec<(&'static str, u64, f64, &'static str, usize)> {
    let found = read(text).unwrap().readings.into_iter();
    found
        .map(|one| {
            let value = (one.value * 1e6).round() / 1e6;
            (one.test, one.size, value, one.unit.name(), one.pairs)
        })
        .collect()
}

#[test]
fn outputs_of_osu_have_sections_and_pairs() {
    assert_eq!(
        figures(OSU),
        [
            ("osu_latency", 1, 1.11, "us", 1),
            ("osu_latency", 4096, 3.02, "us", 1),
            ("osu_bw", 1048576, 12025.43, "MB/s", 1),
            ("osu_mbw_mr", 8, 12.0, "M msg/s", 4),
        ]
    );
    let left_out = read(OSU).unwrap().left_out;
    assert_eq!(left_out.len(), 1, "{left_out:?}");
    assert!(
        left_out[0].0 == 14 && left_out[0].1.contains("Allreduce"),
        "{left_out:?}"
    );
}

#[test]
fn outputs_of_imb_have_bandwidths_from_their_messages() {
    assert_eq!(
        figures(IMB),
        [
            ("osu_latency", 1024, 2.4, "us", 1),
            ("osu_bw", 4096, 4096.0, "MB/s", 1),
        ]
    );
    let left_out = read(IMB).unwrap().left_out;
    assert!(left_out[0].1.contains("4 processes"), "{left_out:?}");
}

#[test]
fn outputs_of_perftest_have_columns_by_their_names() {
    let outputs = read(PERFTEST).unwrap();
    assert_eq!(
        figures(PERFTEST),
        [
            ("ib_write_bw", 65536, 11953.7664, "MB/s", 1),
            ("ib_write_lat", 2, 0.89, "us", 1),
            ("ib_read_bw", 4096, 10000.0, "MB/s", 1),
        ]
    );
    assert_eq!(outputs.mtu, Some((4096, 6)));
    assert!(
        outputs.left_out[0].1.contains("UD"),
        "{:?}",
        outputs.left_out
    );
}

#[test]
fn tables_name_their_columns() {
    let wide = "size;latency_us;bandwidth (GB/s);host\n8;1.5;;n1\n64K;12,;1;n1\n";
    let wrong = read(wide).unwrap_err();
    assert_eq!(wrong.line, 3, "{wrong:?}");
    let wide = wide.replace("12,", "12");
    let wanted = [
        ("osu_latency", 8, 1.5, "us", 1),
        ("osu_latency", 65536, 12.0, "us", 1),
        ("osu_bw", 65536, 1000.0, "MB/s", 1),
    ];
    assert_eq!(figures(&wide), wanted);
    let long =
        "id,test,msg_size,value,unit\n1,osu_latency,8,1.5,us\n2,ib_write_bw,1M,\"100\",Gb/s\n";
    let wanted = [
        ("osu_latency", 8, 1.5, "us", 1),
        ("ib_write_bw", 1048576, 12500.0, "MB/s", 1),
    ];
    assert_eq!(figures(long), wanted);
}

#[test]
fn wrong_lines_are_named() {
    let line = |text: &str| read(text).unwrap_err().line;
    assert_eq!(line("# OSU MPI Latency Test v5\n8 1.0\n16 fast\n"), 3);
    assert_eq!(line("size,latency_us\n8,1.0\nlarge,2\n"), 3);
    assert_eq!(line("size,latency_us\n8,1.0\n16,2.0,rest\n"), 3);
    assert_eq!(line("size,latency_us\n8,1.0\n16\n"), 3);
    assert_eq!(line("size,latency_furlongs\n8,1.0\n"), 1);
    assert_eq!(line("size,colour\n8,1.0\n"), 1);
    assert_eq!(line("id,test,msg_size,value,unit\n1,my_test,8,1.0,us\n"), 2);
    assert_eq!(line("RDMA_Write Latency Test\n8 1000 0.8 1.2 1.0\n"), 2);
    assert_eq!(line("8 1.0\n16 1.1\n"), 0);
    assert_eq!(line(""), 0);
    let why = read("# OSU MPI Allgather Latency Test v5\n8 1.0\n")
        .unwrap_err()
        .why;
    assert!(why.contains("Allgather"), "{why}");
}

proptest! {
    #[test]
    fn no_text_is_a_panic_and_figures_are_sound(text in "(# OSU MPI (Latency|Bandwidth) Test v5\n|#bytes #iterations t_typical\\[usec\\]\n|RDMA_Write Latency Test\n|size,lat\n|[0-9]{1,20}[ ,][0-9.e-]{1,6}\n|\\PC{0,20}\n){0,12}") {
        if let Ok(outputs) = read(&text) {
            prop_assert!(!outputs.readings.is_empty());
            let lines = text.lines().count();
            for one in outputs.readings {
                prop_assert!(one.size > 0 && one.value > 0.0 && one.value.is_finite());
                prop_assert!((1..=lines).contains(&one.line));
            }
        }
    }

    #[test]
    fn written_outputs_come_back(points in prop::collection::vec((1_u64..1 << 22, 1_u32..1_000_000), 1..20)) {
        let rows = points.iter().map(|(size, value)| format!("{size:<10}{:>20.2}\n", f64::from(*value) / 100.0));
        let text = format!("# OSU MPI Bandwidth Test v5.8\n# Size      Bandwidth (MB/s)\n{}", rows.collect::<String>());
        let found: Vec<_> = read(&text).unwrap().readings.iter().map(|one| (one.size, (one.value * 100.0).round() as u32)).collect();
        prop_assert_eq!(found, points);
    }
}

#[test]
fn a_slow_clock_is_noticed() {
    let text = "                    RDMA_Write BW Test\nConflicting CPU frequency values detected: 1500.000000 != 2450.000000. CPU Frequency is not max.\n\
                #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n 64 1000 100.0 90.0 1.5\n";
    let outputs = read(text).unwrap();
    assert_eq!(outputs.slow_clock, Some(2));
    assert_eq!(outputs.readings.len(), 1);
}
