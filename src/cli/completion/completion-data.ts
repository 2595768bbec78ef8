// Data that the completion scripts of all shells are generated from.
import type { Option, Options } from "../support/command.ts";

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
 * subcommand, so all of them are included.
 */
export const flagsWithValue = (command: CompletedCommand): readonly string[] =>
  flagsMatching(command, ({ placeholder }) => placeholder !== undefined);

export const takesPath = ({ placeholder }: Option): boolean =>
  placeholder === "file" || placeholder === "directory";

/** Returns the flags that take a path. */
export const pathFlags = (command: CompletedCommand): readonly string[] =>
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
export const DEFAULT_COMMAND = "serve";
/** Option that is valid only as the first argument. */
export const VERSION_OPTION: Options = { version: { description: "Print the version" } };

export const defaultCommandOptions = (commands: readonly CompletedCommand[]): Options => ({
  ...commands.find(({ name }) => name === DEFAULT_COMMAND)!.options,
  ...VERSION_OPTION,
});

/** Returns the last word of a command's name. */
export const lastWord = ({ name }: CompletedCommand): string => name.split(" ").at(-1)!;

/** Returns a sentence on one line, safe in a single-quoted shell word. */
export const oneLine = (text: string): string =>
  text.replace(/\s+/g, " ").replaceAll("'", "’").trim();
