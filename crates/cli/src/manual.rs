//! What the program writes about itself: the manual page, and scripts for shells.

use std::io::{self, Write};

use clap::CommandFactory;

use crate::{args::Program, ending::CliError, output::write_out};

pub(crate) fn completions(shell: clap_complete::Shell) -> Result<u8, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Program::command(), "leasehold", &mut script);
    write_out(&script)?;
    Ok(0)
}

/// The page of the program, then one section for each command.
pub(crate) fn man() -> Result<u8, CliError> {
    let mut page = Vec::new();
    render(&mut page)
        .map_err(|error| CliError::config(format!("the page cannot be made: {error}")))?;
    write_out(&page)?;
    Ok(0)
}

fn render(page: &mut Vec<u8>) -> io::Result<()> {
    let mut program = Program::command();
    program.build();
    let of_all = clap_mangen::Man::new(program.clone());
    of_all.render_title(page)?;
    of_all.render_name_section(page)?;
    of_all.render_synopsis_section(page)?;
    of_all.render_description_section(page)?;
    of_all.render_options_section(page)?;
    for command in program.get_subcommands().filter(|command| !command.is_hide_set()) {
        // The server's options stand above, in the page of the program.
        let own = command.clone().mut_args(|arg| {
            let is_of_server = arg.get_help_heading() == Some("Server");
            arg.hide(is_of_server)
        });
        let own = clap_mangen::Man::new(own);
        writeln!(page, ".SH \"LEASEHOLD {}\"", command.get_name().to_uppercase())?;
        let mut section = Vec::new();
        own.render_synopsis_section(&mut section)?;
        own.render_description_section(&mut section)?;
        own.render_options_section(&mut section)?;
        page.extend(demoted(&section));
    }
    Ok(())
}

/// The sections of a page as sections below another one.
fn demoted(section: &[u8]) -> Vec<u8> {
    String::from_utf8_lossy(section)
        .replace("\n.SH ", "\n.SS ")
        .replacen(".SH ", ".SS ", 1)
        .into_bytes()
}
