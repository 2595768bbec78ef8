// Prints completion scripts for shells. They are generated from the command table, so that a
// command's options are defined only once.
import { fail } from "../../../model/error.ts";
import {
  type CliCommand,
  COMMON_OPTIONS,
  EXIT_CODES,
  type Options,
  type Option,
} from "../../support/command.ts";
import { print, printJson } from "../../format/terminal.ts";

/** Escapes text for a specification, in which brackets and colons separate fields. */
const escapeZsh = (text: string): string => oneLine(text).replace(/[[\]:\\]/g, "\\$&");

const optionSpecs = (options: Options): string =>
  Object.entries(options)
    .flatMap(([name, option]) => {
      const value =
        option.placeholder === undefined
          ? ""
          : `:${escapeZsh(option.placeholder)}:${takesPath(option) ? "_files" : " "}`;
      const star = option.isRepeatable ? "*" : "";
      return [...(option.short === undefined ? [] : [`-${option.short}`]), `--${name}`].map(
        (flag) => `      '${star}${flag}[${escapeZsh(option.description)}]${value}'`,
      );
    })
    .join(" \\\n");

const commandDescriptions = (commands: readonly CompletedCommand[]): string =>
  commands.map((each) => `'${lastWord(each)}:${escapeZsh(each.summary)}'`).join(" ");

/** Returns the specifications of options and positional arguments. */
const zshArguments = (options: Options, words: string): string =>
  `      _arguments \\\n${optionSpecs(options)} \\\n      '*: :${words}'`;

function zshScript(commands: readonly CompletedCommand[]): string {
  const values = commands.map(
    (each) => `    ${each.name}) valued=(${flagsWithValue(each).join(" ")}) ;;`,
  );
  const cases = commands.flatMap(({ name, options, subcommands }) => [
    ...subcommands.map((part) => `    '${part.name}')\n${zshArguments(part.options, "_files")} ;;`),
    subcommands.length > 0
      ? `    '${name} '*)\n      parts=(${commandDescriptions(subcommands)})\n${zshArguments(options, "{ _describe command parts }")} ;;`
      : `    '${name} '*)\n${zshArguments(options, "_files")} ;;`,
  ]);
  return `#compdef tollgate
_tollgate() {
  local name=$words[2] part='' i=3
  local -a valued parts
  if (( CURRENT == 2 )); then
    parts=(${commandDescriptions(commands)})
${zshArguments(defaultCommandOptions(commands), "{ _describe command parts }")}
    return
  fi
  [[ $name == -* ]] && name=${DEFAULT_COMMAND} i=2
  case $name in
${values.join("\n")}
  esac
  for (( ; i < CURRENT; i++ )); do
    if (( $valued[(Ie)$words[i]] )); then
      (( i++ ))
    elif [[ $words[i] != -* ]]; then
      part=$words[i]
      break
    fi
  done
  case "$name $part" in
${cases.join("\n")}
  esac
}
if [[ $zsh_eval_context == *loadautofunc* ]]; then _tollgate "$@"; else compdef _tollgate tollgate; fi
`;
}

/**
 * Returns the functions of the script. `__tollgate_at keys create` succeeds if the arguments before
 * the cursor name that subcommand, `__tollgate_at keys` if they name the command and no subcommand.
 */
const fishFunctions = (commands: readonly CompletedCommand[]): string => `# tollgate completion fish
function __tollgate_words
  set -l typed (commandline -opc)
  set -e typed[1]
  set -q typed[1]; or return
  set -l name ${DEFAULT_COMMAND}
  if not string match -q -- '-*' $typed[1]
    set name $typed[1]
    set -e typed[1]
  end
  set -l valued
  switch $name
${commands.map((each) => `    case ${each.name}\n      set valued ${flagsWithValue(each).join(" ")}`).join("\n")}
  end
  echo $name
  set -l value no
  for word in $typed
    if test $value = yes
      set value no
    else if contains -- $word $valued
      set value yes
    else if not string match -q -- '-*' $word
      echo $word
      return
    end
  end
end
function __tollgate_at
  set -l first (commandline -opc)[2]
  string match -q -- '-*' $first; and set first ${DEFAULT_COMMAND}
  test "$first" = $argv[1]; or return
  set -l typed (__tollgate_words)
  set -q argv[2]; and test "$typed[2]" = "$argv[2]"; and return
  not set -q argv[2]; and not contains -- "$typed[2]" (__tollgate_parts $argv[1])
end
function __tollgate_parts
  switch "$argv"
${commands
  .filter(({ subcommands }) => subcommands.length > 0)
  .map(
    ({ name, subcommands }) =>
      `    case ${name}\n      string split ' ' '${subcommands.map(lastWord).join(" ")}'`,
  )
  .join("\n")}
  end
end
complete -c tollgate -f`;

function fishScript(commands: readonly CompletedCommand[]): string {
  const first = "test -z (__tollgate_words | string collect -a)";
  return [
    fishFunctions(commands),
    ...completeCommands(commands, first),
    ...completeOptions(defaultCommandOptions(commands), first),
    ...commands.flatMap(({ name, options, subcommands }) => [
      ...completeCommands(subcommands, `__tollgate_at ${name}`),
      ...completeOptions(options, `__tollgate_at ${name}`),
      ...subcommands.flatMap((part) => completeOptions(part.options, `__tollgate_at ${part.name}`)),
    ]),
    "",
  ].join("\n");
}

const completeCommands = (
  commands: readonly CompletedCommand[],
  where: string,
): readonly string[] =>
  commands.map(
    (each) =>
      `complete -c tollgate -n '${where}' -a ${lastWord(each)} -d '${oneLine(each.summary)}'`,
  );

const completeOptions = (options: Options, where: string): readonly string[] =>
  Object.entries(options).map(([name, option]) => {
    const short = option.short === undefined ? "" : ` -s ${option.short}`;
    const value = option.placeholder === undefined ? "" : takesPath(option) ? " -r -F" : " -x";
    return `complete -c tollgate -n '${where}' -l ${name}${short}${value} -d '${oneLine(option.description)}'`;
  });

const quoteWords = (words: readonly string[]): string => `' ${words.join(" ")} '`;

function bashScript(commands: readonly CompletedCommand[]): string {
  const values = commands.map(
    (each) =>
      `    ${each.name}) valued=${quoteWords(flagsWithValue(each))} paths=${quoteWords(pathFlags(each))} ;;`,
  );
  const cases = commands.flatMap(({ name, options, subcommands }) => [
    ...subcommands.map(
      (part) => `    '${part.name}') words=${quoteWords(optionFlags(part.options))} ;;`,
    ),
    `    '${name} '*) words=${quoteWords([...subcommands.map(lastWord), ...optionFlags(options)])} ;;`,
  ]);
  return `# tollgate completion bash
_tollgate() {
  local current=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]}
  # An option's value after "=" is a word of its own here, and so is the "=".
  if [[ $current == = ]]; then
    current=
  elif [[ $before == = ]]; then
    before=\${COMP_WORDS[COMP_CWORD-2]}
  fi
  local name=\${COMP_WORDS[1]} i=2 part= valued= paths= words=
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    words=${quoteWords([...commands.map(lastWord), ...optionFlags(defaultCommandOptions(commands))])}
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    return
  fi
  [[ $name == -* ]] && name=${DEFAULT_COMMAND} i=1
  case $name in
${values.join("\n")}
  esac
  if [[ $paths == *" $before "* ]]; then
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
    return
  fi
  [[ $valued == *" $before "* ]] && return
  for (( ; i < COMP_CWORD; i++)); do
    case \${COMP_WORDS[i]} in
      =) ((i++)) ;;
      -*) [[ $valued == *" \${COMP_WORDS[i]} "* && \${COMP_WORDS[i+1]} != = ]] && ((i++)) ;;
      *) part=\${part:-\${COMP_WORDS[i]}} ;;
    esac
  done
  case "$name $part" in
${cases.join("\n")}
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -o filenames -F _tollgate tollgate
`;
}

const SHELLS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;

type CommandTable = Readonly<
  Record<
    string,
    { readonly summary: string; readonly load: () => Promise<{ readonly command: CliCommand }> }
  >
>;

/**
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

// Data that the completion scripts of all shells are generated from.

/** A command with the parts that a shell completes. */
export interface CompletedCommand {
  /** Full name: "keys create". */
  readonly name: string;
  readonly summary: string;
  readonly options: Options;
  readonly subcommands: readonly CompletedCommand[];
}

/** Returns each command, followed by its subcommands. */
export const flattenCommands = (
  commands: readonly CompletedCommand[],
): readonly CompletedCommand[] => commands.flatMap((command) => [command, ...command.subcommands]);

/** Returns the flags of all options: "--config", "-c". */
export const optionFlags = (options: Options): readonly string[] =>
  Object.entries(options).flatMap(([name, { short }]) => [
    `--${name}`,
    ...(short === undefined ? [] : [`-${short}`]),
  ]);

/**
 * Returns the flags of a command and its subcommands that take a value. Flags can precede the
 * subcommand, so the flags of all subcommands are included.
 */
const flagsWithValue = (command: CompletedCommand): readonly string[] =>
  flagsMatching(command, ({ placeholder }) => placeholder !== undefined);

export const takesPath = ({ placeholder }: Option): boolean =>
  placeholder === "file" || placeholder === "directory";

/** Returns the flags that take a path. */
const pathFlags = (command: CompletedCommand): readonly string[] =>
  flagsMatching(command, takesPath);

const flagsMatching = (
  command: CompletedCommand,
  are: (option: Option) => boolean,
): readonly string[] => [
  ...new Set(
    flattenCommands([command]).flatMap(({ options }) =>
      Object.entries(options).flatMap(([name, option]) =>
        are(option) ? optionFlags({ [name]: option }) : [],
      ),
    ),
  ),
];

/** Command whose options apply if no command is given. */
const DEFAULT_COMMAND = "serve";
/** Option that is valid only as the first argument. */
const VERSION_OPTION: Options = { version: { description: "Print the version" } };

export const defaultCommandOptions = (commands: readonly CompletedCommand[]): Options => ({
  ...commands.find(({ name }) => name === DEFAULT_COMMAND)!.options,
  ...VERSION_OPTION,
});

/** Returns the last word of a command's name. */
export const lastWord = ({ name }: CompletedCommand): string => name.split(" ").at(-1)!;

/** Returns a sentence on one line, safe in a single-quoted shell word. */
const oneLine = (text: string): string => text.replace(/\s+/g, " ").replaceAll("'", "’").trim();
