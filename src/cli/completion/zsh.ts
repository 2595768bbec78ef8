import type { Options } from "../support/command.ts";
import {
  type CompletedCommand,
  takesPath,
  lastWord,
  oneLine,
  DEFAULT_COMMAND,
  defaultCommandOptions,
  flagsWithValue,
} from "./completion-data.ts";

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

export function zshScript(commands: readonly CompletedCommand[]): string {
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
