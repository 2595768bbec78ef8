// Completions of real shells at the end of a line, after they loaded a completion script.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createTestFolder, runCliInProcess } from "../kit/process/command-line.ts";

export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

export const has = (shell: Shell): boolean => spawnSync(shell, ["--version"]).status === 0;

/** How each is run: a file next to `script`, `lines`, and `out`, and the command that runs it. */
const ASKED: Readonly<Record<Shell, { readonly file: string; readonly command: string[] }>> = {
  // Words are split like in bash, also at "=".
  bash: {
    command: ["bash", "--norc", "ask"],
    file: `source ./script
while IFS= read -r line; do
  read -ra COMP_WORDS <<<"\${line//=/ = }"
  [[ $line == *' ' ]] && COMP_WORDS+=('')
  COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
  _tollgate
  echo "\${COMPREPLY[*]}"
done <lines >out
`,
  },
  // Completion belongs to its line editor, which needs a terminal. The offers are intercepted
  // before the list.
  zsh: {
    command: [
      "zsh",
      "-f",
      "-c",
      "zmodload zsh/zpty; zpty in 'TERM=dumb zsh -f -i'; zpty -w in 'source ./ask'; while zpty -r in line; do :; done",
    ],
    file: `autoload -Uz compinit; compinit -D -u
zstyle ':completion:*' completer _complete
source ./script
typeset -ga offered
compadd() {
  local -a hits
  if [[ " \${@[1,(i)(-|--)]} " != *' '-[a-zA-Z]#[OAD]' '* ]]; then
    builtin compadd -A hits "$@"
    offered+=($hits)
  fi
  builtin compadd "$@"
}
look() { _main_complete; compstate[insert]= compstate[list]=; }
zle -C look complete-word look
each() {
  local line
  while IFS= read -r line; do
    offered=() BUFFER=$line CURSOR=$#line
    zle look
    print -r -- "\${(j: :)offered}"
  done <lines >out
  exit
}
zle -N zle-line-init each
`,
  },
  fish: {
    command: ["fish", "--no-config", "ask"],
    file: `source ./script
while read -d \\n line
  set words (complete -C $line | string split -f 1 \\t)
  echo "$words"
end <lines >out
`,
  },
};

/**
 * Offers at the end of each line, in the order of the words. Files are those of the folder: the
 * four that the test writes.
 */
export async function offered(
  shell: Shell,
  lines: readonly string[],
): Promise<readonly (readonly string[])[]> {
  const { file, command } = ASKED[shell];
  const { out: script } = await runCliInProcess(["completion", shell]);
  await using here = await createTestFolder({ script, ask: file, lines: `${lines.join("\n")}\n` });
  const [name, ...args] = command;
  const { stderr, stdout } = spawnSync(name!, args, {
    cwd: here.path,
    encoding: "utf8",
    timeout: 60_000,
  });
  const out = join(here.path, "out");
  if (stderr !== "" || !existsSync(out)) throw new Error(`${shell}: ${stderr || stdout}`);
  const text = await readFile(out, "utf8");
  return text
    .split("\n")
    .slice(0, -1)
    .map((line) => [...new Set(line.split(" ").filter(Boolean))].sort());
}
