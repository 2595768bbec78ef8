import type { Options } from "../command.ts";
import { type CompletedCommand, isPath, last, oneLine } from "./words.ts";

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

export function zsh(commands: readonly CompletedCommand[]): string {
  const cases = commands.flatMap(({ name, options, parts }) => [
    ...parts.map(
      (part) =>
        `    '${part.name}')\n      _arguments \\\n${specification(part.options)} \\\n      '*: :_files' ;;`,
    ),
    parts.length > 0
      ? `    '${name}' | '${name} '*)\n      local -a parts=(${described(parts)})\n      _describe 'command' parts ;;`
      : `    '${name}' | '${name} '*)\n      _arguments \\\n${specification(options)} \\\n      '*: :_files' ;;`,
  ]);
  return `#compdef tollgate
_tollgate() {
  local -a commands=(${described(commands)})
  local -a said=(\${\${words[2,CURRENT-1]}:#-*})
  if (( $#said == 0 )); then
    _describe 'command' commands
    return
  fi
  case "\${said[1,2]}" in
${cases.join("\n")}
  esac
}
if [[ $zsh_eval_context == *loadautofunc* ]]; then _tollgate "$@"; else compdef _tollgate tollgate; fi
`;
}
