// What the scripts of all shells are made of.
import type { Option, Options } from "../support/command.ts";

/** A command as a shell sees it. */
export interface CompletedCommand {
  /** "keys create" */
  readonly name: string;
  readonly summary: string;
  readonly options: Options;
  readonly subcommands: readonly CompletedCommand[];
}

/** Each command, and after it those of two words. */
export const flattenCommands = (
  commands: readonly CompletedCommand[],
): readonly CompletedCommand[] => commands.flatMap((command) => [command, ...command.subcommands]);

/** "--config", "-c" */
export const optionFlags = (options: Options): readonly string[] =>
  Object.entries(options).flatMap(([name, { short }]) => [
    `--${name}`,
    ...(short === undefined ? [] : [`-${short}`]),
  ]);

/** Flags that take a value, of a command and its parts: which part is meant is not known before them. */
export const flagsWithValue = (command: CompletedCommand): readonly string[] =>
  flagsMatching(command, ({ placeholder }) => placeholder !== undefined);

export const takesPath = ({ placeholder }: Option): boolean =>
  placeholder === "file" || placeholder === "folder";

/** Those that take a path. */
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

/** Options before any command are those of `serve`. */
export const DEFAULT_COMMAND = "serve";
/** At the first word alone. */
export const VERSION_OPTION: Options = { version: { description: "print the version" } };

export const defaultCommandOptions = (commands: readonly CompletedCommand[]): Options => ({
  ...commands.find(({ name }) => name === DEFAULT_COMMAND)!.options,
  ...VERSION_OPTION,
});

/** The last word of a name. */
export const lastWord = ({ name }: CompletedCommand): string => name.split(" ").at(-1)!;

/** A sentence on one line, as a single-quoted word of a shell can hold it. */
export const oneLine = (text: string): string =>
  text.replace(/\s+/g, " ").replaceAll("'", "’").trim();
