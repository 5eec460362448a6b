//! Shell completions that the definition of the command line does not give: the names of modelled
//! machines, and the launcher's options with one hyphen.

use ::fabric::System;
use ::fabric::catalogue::Catalogue;
use ::fabric::components::Part;
use clap::Command;
use clap::builder::PossibleValuesParser;
use clap_complete::Shell;

/// The options that name modelled machines.
const MACHINES: [&str; 2] = ["fabric", "fabrics"];
/// The commands whose argument names a modelled machine.
const SHOWN: [&str; 2] = ["show", "explain"];

/// The completion script of a shell for `command` under the name `name`. With `has_habits` it
/// contains the options of other launchers.
pub(crate) fn script(shell: Shell, command: Command, name: &str, has_habits: bool) -> String {
    let catalogue = Catalogue::builtin();
    let systems = catalogue.entries().filter(|one| one.kind == System::KIND);
    // The names are leaked: the process ends after this.
    let names = systems.map(|system| &*system.name.to_owned().leak());
    let names: Vec<&'static str> = names.collect();
    let longs: Vec<String> = long_names(&command);
    let mut command = with_machines(command, &names);
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut text);
    let text = String::from_utf8_lossy(&text).into_owned();
    let text = match shell {
        Shell::Bash => lists_of_machines(&text, &names),
        _ => text,
    };
    match shell {
        Shell::Bash if has_habits => with_one_hyphen(&text, &longs),
        Shell::Fish if has_habits => old_options(&text, &longs),
        _ => text,
    }
}

fn long_names(command: &Command) -> Vec<String> {
    let options = command.get_arguments();
    let names = options.flat_map(|option| {
        let aliases = option.get_visible_aliases().unwrap_or_default();
        option.get_long().into_iter().chain(aliases)
    });
    names.map(str::to_owned).collect()
}

/// The command, with the names of the catalogue as the only values of options that name a machine.
/// It is for completions only: its parser would refuse files.
fn with_machines(mut command: Command, names: &[&'static str]) -> Command {
    let values = || PossibleValuesParser::new(names.iter().copied());
    for id in MACHINES {
        if command.get_arguments().any(|own| own.get_id() == id) {
            command = command.mut_arg(id, |option| option.value_parser(values()));
        }
    }
    let is_of_machine = command.get_arguments().any(|own| own.get_id() == "name");
    if is_of_machine && SHOWN.contains(&command.get_name()) {
        command = command.mut_arg("name", |argument| argument.value_parser(values()));
    }
    command.mut_subcommands(|inner| with_machines(inner, names))
}

/// For bash: completes a list of machines after its last comma, and its first item also as a file.
fn lists_of_machines(text: &str, names: &[&str]) -> String {
    let mut lines: Vec<&str> = Vec::new();
    let mut is_of_machines = false;
    for line in text.lines() {
        let place = line.trim_start();
        let completed = is_of_machines && place.starts_with("COMPREPLY=");
        lines.push(if completed {
            "_fishplate_machines"
        } else {
            line
        });
        is_of_machines = MACHINES.iter().any(|name| place == format!("--{name})"));
    }
    format!(
        "_fishplate_machines() {{
    local before=\"\"
    [[ ${{cur}} != *,* ]] || before=\"${{cur%,*}},\"
    COMPREPLY=($(compgen -P \"${{before}}\" -W \"{}\" -- \"${{cur##*,}}\"))
    [[ -n ${{before}} ]] || COMPREPLY+=($(compgen -f -- \"${{cur}}\"))
}}

{}
",
        names.join(" "),
        lines.join("\n")
    )
}

/// For bash: completes a word with one hyphen to the options of any launcher, and the value of such
/// an option as that of ours.
fn with_one_hyphen(text: &str, longs: &[String]) -> String {
    let habits = crate::mpiexec::habits().map(|name| format!("-{name}"));
    let own = longs.iter().map(|name| format!("-{name}"));
    let mut names: Vec<String> = habits.chain(own).collect();
    names.sort_unstable();
    names.dedup();
    let test = "            if [[ ${cur} == -* ";
    let own = format!(
        "            [[ ${{cur}} != -[!-]* ]] || opts=\"${{opts}} {}\"
            [[ ${{prev}} != -[!-]?* ]] || prev=\"-${{prev}}\"
{test}",
        names.join(" ")
    );
    text.replacen(test, &own, 1)
}

/// For fish: defines each long option also with a single hyphen.
fn old_options(text: &str, longs: &[String]) -> String {
    let mut text = text.to_owned();
    for name in longs {
        let long = format!(" -l {name} ");
        text = text.replace(&long, &format!(" -l {name} -o {name} "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_machines_alone_offer_machines() {
        let text = "x)\n  --fabric)\n    COMPREPLY=(a)\n  --file)\n    COMPREPLY=(b)\n";
        let text = lists_of_machines(text, &["qdr", "fdr"]);
        assert!(text.contains("-W \"qdr fdr\""), "{text}");
        let rest = "x)\n  --fabric)\n_fishplate_machines\n  --file)\n    COMPREPLY=(b)\n";
        assert!(text.ends_with(rest), "{text}");
    }

    #[test]
    fn fish_knows_options_with_one_hyphen() {
        let text = old_options("complete -c m -l np -d 'x'\n", &["np".into()]);
        assert_eq!(text, "complete -c m -l np -o np -d 'x'\n");
    }
}
