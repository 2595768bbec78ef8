// Prints completion scripts for shells. They are generated from the command table, so a command's
// options are defined in one place.
import { fail } from "../../../model/error.ts";
import { type CliCommand, COMMON_OPTIONS, EXIT_CODES } from "../../support/command.ts";
import { bashScript } from "../../completion/bash.ts";
import { fishScript } from "../../completion/fish.ts";
import type { CompletedCommand } from "../../completion/completion-data.ts";
import { zshScript } from "../../completion/zsh.ts";
import { print, printJson } from "../../format/terminal.ts";

const SHELLS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;

type CommandTable = Readonly<
  Record<
    string,
    { readonly summary: string; readonly load: () => Promise<{ readonly command: CliCommand }> }
  >
>;

/**
 * Creates the command.
 * @param commands The table that contains this command.
 */
export const createCompletionCommand = (commands: CommandTable): CliCommand => ({
  usage: "completion <bash|zsh|fish>",
  description:
    "Prints the completion script of a shell. Source it, or save it where the shell " +
    "looks for completions.",
  options: {},
  positionals: { least: 1, most: 1 },
  examples: [
    "tollgate completion bash > ~/.local/share/bash-completion/completions/tollgate",
    "tollgate completion zsh > ~/.zfunc/_tollgate",
    "tollgate completion fish > ~/.config/fish/completions/tollgate.fish",
  ],
  async run(given) {
    const shell = given.positionals[0]!;
    if (!Object.hasOwn(SHELLS, shell))
      return fail("invalid", `The shell must be one of ${Object.keys(SHELLS).join(", ")}.`, {
        code: "usage",
      });
    const text = SHELLS[shell as keyof typeof SHELLS](await loadCompletedCommands(commands));
    if (given.json) printJson({ shell, text });
    else print(text.trimEnd());
    return EXIT_CODES.ok;
  },
});

/** Loads all commands and returns their options and subcommands. */
export async function loadCompletedCommands(
  commands: CommandTable,
): Promise<readonly CompletedCommand[]> {
  return Promise.all(
    Object.entries(commands).map(async ([name, { summary, load }]) => {
      const { command } = await load();
      const parts = Object.entries(command.subcommands ?? {}).map(([part, of]) => ({
        name: `${name} ${part}`,
        summary: of.summary,
        options: { ...of.options, ...COMMON_OPTIONS },
        subcommands: [],
      }));
      const own = command.subcommands
        ? command.subcommands[command.defaultSubcommand ?? ""]?.options
        : command.options;
      return { name, summary, options: { ...own, ...COMMON_OPTIONS }, subcommands: parts };
    }),
  );
}
