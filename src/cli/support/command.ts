// A command: its help, options, and implementation.
export interface CliCommand {
  /** Usage after "tollgate": "explain <model>". */
  readonly usage: string;
  /** Description in one to three sentences. */
  readonly description: string;
  readonly options: Options;
  /** Number of positional arguments. Default: none. */
  readonly positionals?: { readonly least: number; readonly most: number };
  readonly examples: readonly string[];
  /** Commands of two words. Their positional arguments follow both words. */
  readonly subcommands?: Readonly<Record<string, Subcommand>>;
  /** Subcommand that runs if the operator names no subcommand. */
  readonly defaultSubcommand?: string;
  /**
   * Returns the command that the positional arguments select. Used if only the arguments determine
   * its options. It is also used for help.
   */
  resolveCommand?(given: CliInput): Promise<CliCommand>;
  /**
   * Runs the command and returns the exit code: 0 success, 1 failure, 78 errors in gateway.yaml.
   */
  run(given: CliInput): Promise<number>;
}

export interface Subcommand extends CliCommand {
  /** One line. */
  readonly summary: string;
}

/** Creates a command that only has subcommands. */
export const createCommandGroup = (
  name: string,
  about: string,
  parts: Readonly<Record<string, Subcommand>>,
  usual?: string,
): CliCommand => ({
  usage: `${name} ${usual === undefined ? "<command>" : "[command]"} [options]`,
  description: about,
  options: {},
  subcommands: parts,
  ...(usual !== undefined && { defaultSubcommand: usual }),
  examples: Object.values(parts).map(({ examples }) => examples[0]!),
  // Never called, because a subcommand is resolved first.
  run: () => Promise.reject(new Error("only subcommands can run")),
});

export type Options = Readonly<Record<string, Option>>;

export interface Option {
  /** Placeholder of the option's value in help: "file". Unset if the option takes no value. */
  readonly placeholder?: string;
  readonly short?: string;
  readonly description: string;
  /** Whether the option may be repeated. */
  readonly isRepeatable?: true;
}

export interface CliInput {
  readonly positionals: readonly string[];
  readonly json: boolean;
  /** Returns the value of an option, or undefined if it was not given. */
  getText(name: string): string | undefined;
  getTexts(name: string): readonly string[];
  has(name: string): boolean;
}

export const EXIT_CODES = { ok: 0, failed: 1, config: 78 } as const;

/** Options of every command. */
export const COMMON_OPTIONS: Options = {
  json: { description: "Print JSON" },
  help: { short: "h", description: "Show this help" },
};

/** Options of all commands that read gateway.yaml. */
export const CONFIG_OPTIONS: Options = {
  config: {
    short: "c",
    placeholder: "file",
    description: "Path of gateway.yaml (default: ./gateway.yaml)",
  },
};

/** Options of all commands that may call a running gateway. */
export const STATE_OPTIONS: Options = {
  "state-dir": {
    placeholder: "directory",
    description: "State directory of the running gateway. Overrides the config",
  },
};

/** Options of commands that either call a running gateway or use the config in gateway.yaml. */
export const GATEWAY_OPTIONS: Options = { ...CONFIG_OPTIONS, ...STATE_OPTIONS };
