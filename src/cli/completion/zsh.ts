import type { Options } from "../command.ts";
import { type CompletedCommand, isPath, last, oneLine, UNNAMED, unnamed, valued } from "./words.ts";

/** Brackets and colons part the fields of a specification. */
const said = (text: string): string => oneLine(text).replace(/[[\]:\\]/g, "\\$&");

const specification = (options: Options): string =>
  Object.entries(options)
    .flatMap(([name, option]) => {
      const value =
        option.value === undefined
          ? ""
          : `:${said(option.value)}:${isPath(option) ? "_files" : " "}`;
      const star = option.many ? "*" : "";
      return [...(option.short === undefined ? [] : [`-${option.short}`]), `--${name}`].map(
        (flag) => `      '${star}${flag}[${said(option.about)}]${value}'`,
      );
    })
    .join(" \\\n");

const described = (commands: readonly CompletedCommand[]): string =>
  commands.map((each) => `'${last(each)}:${said(each.summary)}'`).join(" ");

/** Options, and what other words may be. */
const asked = (options: Options, words: string): string =>
  `      _arguments \\\n${specification(options)} \\\n      '*: :${words}'`;

export function zsh(commands: readonly CompletedCommand[]): string {
  const values = commands.map((each) => `    ${each.name}) valued=(${valued(each).join(" ")}) ;;`);
  const cases = commands.flatMap(({ name, options, parts }) => [
    ...parts.map((part) => `    '${part.name}')\n${asked(part.options, "_files")} ;;`),
    parts.length > 0
      ? `    '${name} '*)\n      parts=(${described(parts)})\n${asked(options, "{ _describe command parts }")} ;;`
      : `    '${name} '*)\n${asked(options, "_files")} ;;`,
  ]);
  return `#compdef tollgate
_tollgate() {
  local name=$words[2] part='' i=3
  local -a valued parts
  if (( CURRENT == 2 )); then
    parts=(${described(commands)})
${asked(unnamed(commands), "{ _describe command parts }")}
    return
  fi
  [[ $name == -* ]] && name=${UNNAMED} i=2
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
