// What a command is: a few words for people, its options, and the work.
export interface CliCommand {
  /** After "tollgate": "explain <model>". */
  readonly usage: string;
  /** What it does, in one to three sentences. */
  readonly description: string;
  readonly options: Options;
  /** How many words may follow; none by default. */
  readonly positionals?: { readonly least: number; readonly most: number };
  readonly examples: readonly string[];
  /** Commands of two words: this one's name, then theirs. Their words are those after both. */
  readonly subcommands?: Readonly<Record<string, Subcommand>>;
  /** Which of them is meant when none is named. */
  readonly defaultSubcommand?: string;
  /** The command that is meant, where words alone do not say which options it takes. Help is of that one too. */
  resolveCommand?(given: CliInput): Promise<CliCommand>;
  /** The exit code: 0 fine, 1 failed, 78 gateway.yaml has errors. */
  run(given: CliInput): Promise<number>;
}

export interface Subcommand extends CliCommand {
  /** One line. */
  readonly summary: string;
}

/** A command of two words that is nothing but its parts, and the one of them that is meant when none is named. */
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
  // It is not called: the part is found before it.
  run: () => Promise.reject(new Error("one of its parts runs")),
});

export type Options = Readonly<Record<string, Option>>;

export interface Option {
  /** The word for the option's value in help: "file". Absent: the option takes no value. */
  readonly placeholder?: string;
  readonly short?: string;
  readonly description: string;
  /** May be given several times. */
  readonly isRepeatable?: true;
}

export interface CliInput {
  readonly positionals: readonly string[];
  readonly json: boolean;
  /** The value of an option, if it was given. */
  getText(name: string): string | undefined;
  getTexts(name: string): readonly string[];
  has(name: string): boolean;
}

export const EXIT_CODES = { ok: 0, failed: 1, config: 78 } as const;

/** Every command takes these. */
export const COMMON_OPTIONS: Options = {
  json: { description: "print JSON" },
  help: { short: "h", description: "show this" },
};

/** Shared by all that read a gateway.yaml. */
export const CONFIG_OPTIONS: Options = {
  config: {
    short: "c",
    placeholder: "file",
    description: "the gateway.yaml to use; ./gateway.yaml by default",
  },
};

/** Shared by all that may talk to a running gateway. */
export const STATE_OPTIONS: Options = {
  "state-dir": {
    placeholder: "directory",
    description: "state directory, in place of the config's",
  },
};

/** Of commands that may talk to a running gateway, or work on what its gateway.yaml names. */
export const GATEWAY_OPTIONS: Options = { ...CONFIG_OPTIONS, ...STATE_OPTIONS };
