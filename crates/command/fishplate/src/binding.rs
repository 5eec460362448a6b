//! The options of `fishplate run` that bind ranks to cores.

use clap::Args;
use launch::{BindTo, BindingRequest, CpuList, MapBy};
use results::arguments::{ANY, whole_number};

#[derive(Args)]
#[command(next_help_heading = "Binding to cores")]
pub(crate) struct BindingArguments {
    /// Bind each rank to a core, hwthread, l3cache, numa, socket, or none of them; core:2 is two
    /// cores each. Without this the launcher chooses equal shares of the cores
    #[arg(long, value_name = "PART[:COUNT]", conflicts_with = "fabric")]
    bind_to: Option<BindTo>,

    /// Distribute ranks over parts of each host: slot (in order), core, hwthread, l3cache, numa,
    /// socket, or ppr:COUNT:PART (COUNT ranks on each); socket:PE=4 gives each rank four cores
    #[arg(long, value_name = "PART[:PE=COUNT]", conflicts_with = "fabric")]
    map_by: Option<MapBy>,

    /// Use only these hardware threads of each host, such as 0-3,8
    #[arg(long, value_name = "LIST", conflicts_with = "fabric")]
    cpu_set: Option<CpuList>,

    /// Cores of each rank, as :PE=COUNT of --map-by
    #[arg(long, visible_alias = "cpus-per-rank", value_name = "COUNT", conflicts_with = "fabric",
        value_parser = |word: &str| whole_number::<usize>(word, ANY))]
    cpus_per_proc: Option<usize>,

    /// Print the binding of each rank
    #[arg(long)]
    report_bindings: bool,
}

impl BindingArguments {
    /// The binding that the user requests. An error is the text for the user.
    pub(crate) fn request(self) -> Result<BindingRequest, String> {
        let mut map_by = self.map_by;
        if let Some(count) = self.cpus_per_proc {
            if count == 0 {
                return Err("--cpus-per-proc 0: a rank needs at least one core".into());
            }
            let map = map_by.get_or_insert(MapBy {
                level: None,
                ranks_each: None,
                cores_each: None,
            });
            if map.cores_each.is_some_and(|other| other != count) {
                return Err(format!(
                    "--cpus-per-proc {count} and --map-by with PE= name different numbers of cores: \
                     leave one out"
                ));
            }
            map.cores_each = Some(count);
        }
        Ok(BindingRequest {
            bind_to: self.bind_to,
            map_by,
            cpus: self.cpu_set,
            report: self.report_bindings,
        })
    }
}
