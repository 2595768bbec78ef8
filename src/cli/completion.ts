// Completion of a shell's command line, made from the table of commands: what a command takes is read from it, and stands nowhere else.
import { fail } from "../model/error.ts";
import { type CliCommand, COMMON, EXIT } from "./command.ts";
import { bash } from "./completion/bash.ts";
import { fish } from "./completion/fish.ts";
import type { CompletedCommand } from "./completion/words.ts";
import { zsh } from "./completion/zsh.ts";
import { say, sayJson } from "./terminal.ts";

const SHELLS = { bash, zsh, fish } as const;

type Commands = Readonly<
  Record<
    string,
    { readonly summary: string; readonly load: () => Promise<{ readonly command: CliCommand }> }
  >
>;

/** `commands`: the table that it stands in. */
export const completing = (commands: Commands): CliCommand => ({
  usage: "completion <bash|zsh|fish>",
  about:
    "Prints what a shell needs to complete commands and options: source it, or keep it where the shell looks for completions.",
  options: {},
  words: { least: 1, most: 1 },
  examples: [
    "tollgate completion bash > ~/.local/share/bash-completion/completions/tollgate",
    "tollgate completion zsh > ~/.zfunc/_tollgate",
    "tollgate completion fish > ~/.config/fish/completions/tollgate.fish",
  ],
  async run(given) {
    const shell = given.words[0]!;
    if (!Object.hasOwn(SHELLS, shell))
      return fail("invalid", `It is one of ${Object.keys(SHELLS).join(", ")}.`, { code: "usage" });
    const text = SHELLS[shell as keyof typeof SHELLS](await table(commands));
    if (given.json) sayJson({ shell, text });
    else say(text.trimEnd());
    return EXIT.fine;
  },
});

/** Each command's own words, all of them loaded. */
export async function table(commands: Commands): Promise<readonly CompletedCommand[]> {
  return Promise.all(
    Object.entries(commands).map(async ([name, { summary, load }]) => {
      const { command } = await load();
      const parts = Object.entries(command.parts ?? {}).map(([part, of]) => ({
        name: `${name} ${part}`,
        summary: of.summary,
        options: { ...of.options, ...COMMON },
        parts: [],
      }));
      const own = command.parts ? command.parts[command.usual ?? ""]?.options : command.options;
      return { name, summary, options: { ...own, ...COMMON }, parts };
    }),
  );
}
