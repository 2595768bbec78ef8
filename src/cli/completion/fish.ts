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

/**
 * Returns the functions of the script. `__tollgate_at keys create` succeeds if the arguments before
 * the cursor name that subcommand, `__tollgate_at keys` if they name the command and no subcommand.
 */
const fishFunctions = (commands: readonly CompletedCommand[]): string => `# tollgate completion fish
function __tollgate_said
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
  set -l said (__tollgate_said)
  set -q argv[2]; and test "$said[2]" = "$argv[2]"; and return
  not set -q argv[2]; and not contains -- "$said[2]" (__tollgate_parts $argv[1])
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

export function fishScript(commands: readonly CompletedCommand[]): string {
  const first = "test -z (__tollgate_said | string collect -a)";
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
