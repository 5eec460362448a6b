use super::*;

const FILE: &str = "\
    processor = \"A \\\"B\\\" # 1\" # a name\n\
    \n\
    [[messages]]\n\
    from = \"256K\"\n\
    cores = \"far\"\n\
    others_wait = false\n\
    packets_ps_per_byte = 183\n\
    read_ps_per_byte = 1_000\n\
    [[messages]] # longer ones\n\
    from = 1048576\n\
    cores = \"far\"\n\
    others_wait = false\n\
    packets_ps_per_byte = 200\n\
    cooperative_copy_ps_per_byte = 90\n";

fn fastest(table: &CostTable, len: usize, others_wait: bool) -> Option<CopyPath> {
    let costs = table.costs(len, CoreDistance::Far, others_wait)?;
    costs.fastest(|_| true)
}

#[test]
fn the_costs_of_a_length_are_those_from_the_greatest_one_below() {
    let table = CostTable::parse(FILE).unwrap();
    assert_eq!(table.processor(), Some("A \"B\" # 1"));
    assert_eq!(fastest(&table, (256 << 10) - 1, false), None);
    assert_eq!(fastest(&table, 256 << 10, false), Some(CopyPath::Packets));
    assert_eq!(
        fastest(&table, (1 << 20) - 1, false),
        Some(CopyPath::Packets)
    );
    let longer = Some(CopyPath::CooperativeCopy);
    assert_eq!(fastest(&table, 1 << 30, false), longer);
    assert_eq!(fastest(&table, 1 << 30, true), None);
    let costs = table.costs(1 << 20, CoreDistance::Far, false).unwrap();
    let no_help = |path| path != CopyPath::CooperativeCopy;
    assert_eq!(costs.fastest(no_help), Some(CopyPath::Packets));
    assert_eq!(costs.fastest(|path| path == CopyPath::Read), None);
}

#[test]
fn the_text_of_a_table_is_the_table() {
    let table = CostTable::parse(FILE).unwrap();
    assert_eq!(CostTable::parse(&table.to_string()), Ok(table));
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let row = "[[messages]]\nfrom = 1\ncores = \"far\"\nothers_wait = true\n";
    let whole = format!("{row}read_ps_per_byte = 5\n");
    let cases = [
        ("", 1, "no costs"),
        ("processor = \"x\"\n", 1, "no costs"),
        ("processor = 5\n", 1, "double quotes"),
        ("processor = \"x\"\nprocessor = \"x\"\n", 2, "twice"),
        ("from = 5\n", 1, "before the first [[messages]]"),
        ("[messages]\n", 1, "expected [[messages]]"),
        ("[[messages]]\n", 1, "no costs: expected at least one of"),
        ("[[messages]]\nform = 1\n", 2, "did you mean from?"),
        ("[[messages]]\nlatency = 1\n", 2, "valid are from, cores"),
        (
            "[[messages]]\ncores = \"close\"\n",
            2,
            "\"near\" or \"far\"",
        ),
        ("[[messages]]\nothers_wait = 1\n", 2, "true or false"),
        ("[[messages]]\nfrom = \"1 MB\"\n", 2, "a number of bytes"),
        ("[[messages]]\nfrom = \"1\n", 2, "a number of bytes"),
        ("processor = \"a\\n\"\n", 1, "backslash"),
        ("processor = \"a\n", 1, "double quotes"),
        ("[[messages]]\nread_ps_per_byte = 5\n", 1, "has no from"),
    ];
    for (text, line, why) in cases {
        let error = CostTable::parse(text).unwrap_err();
        assert_eq!(error.line, line, "{text:?}: {error}");
        assert!(error.why.contains(why), "{text:?}: {error}");
    }
    for bad in [
        "-5",
        "0",
        "1.5",
        "nan",
        "inf",
        "1e9",
        "1000000001",
        "007",
        "\"5\"",
        "_5",
        "+5",
    ] {
        let error = CostTable::parse(&format!("{row}read_ps_per_byte = {bad}\n")).unwrap_err();
        assert_eq!(error.line, 5, "{bad}: {error}");
        assert!(error.why.contains("whole number"), "{bad}: {error}");
    }
    let error = CostTable::parse(&format!("{whole}{whole}")).unwrap_err();
    assert_eq!(error.line, 6, "{error}");
    assert!(CostTable::parse(&whole).is_ok());
}

#[test]
fn learned_costs_replace_those_of_their_situation() {
    let of = |from, ps| CopyCosts {
        from: Bytes(from),
        cores: CoreDistance::Far,
        others_wait: false,
        ps_per_byte: ps,
    };
    let older = CostTable::parse(FILE).unwrap();
    let nothing = of(8 << 20, [None; 3]);
    let new = vec![of(1 << 20, [None, Some(0), Some(u32::MAX)]), nothing];
    let table = CostTable::learned("Other\n", new).over(older.clone());
    assert_eq!(table.processor(), Some("Other"));
    assert_eq!(table.messages.len(), 2);
    assert_eq!(table.messages[0], older.messages[0]);
    assert_eq!(
        table.messages[1].ps_per_byte,
        [None, Some(1), Some(SLOWEST)]
    );
    assert_eq!(CostTable::parse(&table.to_string()), Ok(table));
    assert!(CostTable::learned("Other", Vec::new()).is_empty());
}

#[test]
fn a_processor_has_its_name_in_cpuinfo() {
    let text = "processor\t: 0\nmodel name\t: A Processor @ 2 GHz\nflags : x\n";
    assert_eq!(processor_name(text), Some("A Processor @ 2 GHz"));
    assert_eq!(processor_name("processor : 0\n"), None);
}
