import { type CompletedCommand, flags, last, paths, valued } from "./words.ts";

export function bash(commands: readonly CompletedCommand[]): string {
  const cases = commands.flatMap(({ name, options, parts }) => [
    ...parts.map((part) => `    "${part.name}") words='${flags(part.options).join(" ")}' ;;`),
    `    "${name}" | "${name} "*) words='${[...parts.map(last), ...flags(options)].join(" ")}' ;;`,
  ]);
  return `# tollgate completion bash
_tollgate() {
  local current=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]}
  local valued=' ${valued(commands).join(" ")} ' paths=' ${paths(commands).join(" ")} '
  COMPREPLY=()
  if [[ $paths == *" $before "* ]]; then
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
    return
  fi
  [[ $valued == *" $before "* ]] && return
  local said=() i words
  for ((i = 1; i < COMP_CWORD; i++)); do
    case \${COMP_WORDS[i]} in
      -*) [[ $valued == *" \${COMP_WORDS[i]} "* ]] && ((i++)) ;;
      *) said+=("\${COMP_WORDS[i]}") ;;
    esac
  done
  case "\${said[*]:0:2}" in
    "") words='${commands.map(last).join(" ")} --help --version' ;;
${cases.join("\n")}
    *) return ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -o filenames -F _tollgate tollgate
`;
}
